"""Seconds and peak memory to write a checkpoint, each measurement in a process of its own.

The time is that of the checkpoint alone, for a table that is open already. By then deltalake has
read all files; ours reads them while it writes. The memory is that of the whole process.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from big_log import METADATA, PROTOCOL
from engines import OURS, THEIRS

__all__ = ["CheckpointResult", "measure_checkpoints"]

SCRIPT = Path(__file__).with_name("checkpoint_once.py")
_V2 = {"minReaderVersion": 3, "minWriterVersion": 7}
_V2_FEATURES = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}


@dataclass(frozen=True, slots=True)
class _Layout:
    """A layout of checkpoints, the engines that write it, and what a table says to get it."""

    name: str
    engines: tuple[str, ...]
    configuration: Mapping[str, str]
    protocol: Mapping[str, object]


_AS_STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}
_LAYOUTS = (
    _Layout("classic", (OURS, THEIRS), {}, PROTOCOL),
    _Layout("classic, struct columns too", (OURS,), _AS_STRUCT, PROTOCOL),
    _Layout(
        "V2",
        (OURS,),
        {"delta.checkpointPolicy": "v2"},
        {**_V2, **_V2_FEATURES},
    ),
)


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """One checkpoint: wall time, and the peak memory of the whole process."""

    engine: str
    layout: str
    num_files: int
    seconds: float
    peak_mib: float


def measure_checkpoints(table: Path, scratch: Path, *, num_files: int) -> list[CheckpointResult]:
    """Write each layout of checkpoint for one table; best of two runs, on fresh copies.

    Raises:
        RuntimeError: A process failed, or wrote the wrong number of files.
    """
    results = []
    for layout in _LAYOUTS:
        for engine in layout.engines:
            runs = [_run(engine, layout, table, scratch) for _ in range(2)]
            if runs[0]["num_files"] != num_files:
                raise RuntimeError(f"{engine} wrote {runs[0]['num_files']} of {num_files} files.")
            results.append(
                CheckpointResult(
                    engine=engine,
                    layout=layout.name,
                    num_files=num_files,
                    seconds=min(run["seconds"] for run in runs),
                    peak_mib=min(run["peak_mib"] for run in runs),
                )
            )
    return results


def _run(engine: str, layout: _Layout, table: Path, scratch: Path) -> dict[str, float]:
    copy = scratch / "checkpointed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    _commit(copy / "_delta_log", layout)
    command = [sys.executable, str(SCRIPT), engine, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(copy)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _commit(log: Path, layout: _Layout) -> None:
    """One more commit, which gives the table the layout's protocol and properties."""
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    metadata = {**METADATA, "configuration": dict(layout.configuration)}
    lines = [{"protocol": dict(layout.protocol)}, {"metaData": metadata}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (log / f"{version:020d}.json").write_text(text)
