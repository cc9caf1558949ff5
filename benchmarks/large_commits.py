"""RESTORE and shallow CLONE of a table of very many files, beside the time to open it.

`python benchmarks/large_commits.py [NUM_FILES] [FOLDER]` makes the log of the table once, without
data files, and prints seconds and peak memory of each step, each in a process of its own. Whether
the files of the older version are there is therefore not asked; `with-files` as a third argument
makes them, empty, and has it asked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from big_log import CHECKPOINT_VERSION, COMMITS_AFTER_CHECKPOINT, ensure_big_log
from open_once import peak_mib
from optimist.core import DeltaLog
from optimist.core.log.many_files import ManyFiles
from optimist.core.transaction.conflicts.operations import Operation

FULL = CHECKPOINT_VERSION + COMMITS_AFTER_CHECKPOINT
EMPTY = FULL + 1
IGNORES_MISSING = {"spark.sql.files.ignoreMissingFiles": "true"}


def main(num_files: str = "1000000", folder: str = "build/bench", files: str = "") -> None:
    """Make the tables and measure each step."""
    cache = Path(folder).absolute()
    cache.mkdir(parents=True, exist_ok=True)
    full = ensure_big_log(cache, int(num_files))
    emptied = _followed(full, "emptied", _empty)
    refilled = _followed(emptied, "refilled", lambda log: log.restore(FULL))
    if files:
        _make_files(emptied)
    for step, table in (
        ("open", full),
        ("list-files", full),
        ("shallow-clone", full),
        ("restore-all", emptied),
        ("restore-none", refilled),
    ):
        command = [sys.executable, __file__, "--once", step, str(table), files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{step} failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout)
        print(
            f"{step:<14} {found['seconds']:>7.2f} s, CPU {found['cpu_seconds']:>6.2f} s, "
            f"{found['peak_mib']:>6.0f} MiB",
            flush=True,
        )


def once(step: str, path: str, files: str = "") -> None:
    """Measure one step in this process, take back what it wrote, and print JSON."""
    log = DeltaLog.for_path(path, {} if files else IGNORES_MISSING)
    clone = Path(path).with_name("cloned")
    shutil.rmtree(clone, ignore_errors=True)
    log_files, hint = Path(path) / "_delta_log", Path(path) / "_delta_log" / "_last_checkpoint"
    before, hinted = set(log_files.iterdir()), hint.read_bytes()
    steps: dict[str, Callable[[], object]] = {
        "open": log.snapshot,
        "list-files": lambda: log.snapshot().files.num_rows,
        "shallow-clone": lambda: log.clone(str(clone), is_shallow=True),
        "restore-all": lambda: log.restore(FULL),
        "restore-none": lambda: log.restore(EMPTY),
    }
    work = steps[step]
    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    work()
    seconds, cpu_seconds = time.perf_counter() - started_s, time.process_time() - started_cpu_s
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": peak_mib()}))
    for written in set(log_files.iterdir()) - before:
        written.unlink()
    hint.write_bytes(hinted)


def _followed(table: Path, name: str, change: Callable[[DeltaLog], object]) -> Path:
    """Return the table after one more commit, made on the first call."""
    made = table.with_name(f"{table.name}-{name}")
    if not made.exists():
        unfinished = table.with_name(f".{made.name}.partial")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(table / "_delta_log", unfinished / "_delta_log")
        change(DeltaLog.for_path(str(unfinished), IGNORES_MISSING))
        unfinished.rename(made)
    return made


def _empty(log: DeltaLog) -> None:
    files = log.snapshot().files
    removed = ManyFiles(files.slice(0, 0), files, log.clock.now_ms())
    log.start_transaction().commit_large((), Operation("TRUNCATE"), files=removed)


def _make_files(table: Path) -> None:
    """Return the data files of the newest full version, all of them empty."""
    for path in DeltaLog.for_path(str(table)).snapshot(FULL).files["path"].to_pylist():
        file = table / path
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--once"]:
        once(*arguments[1:])
    else:
        main(*arguments)
