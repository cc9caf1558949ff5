"""Writers who append to one table at the same time, and what must stand there afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa

from optimist.core import DeltaLog

__all__ = ["append_in_processes", "create_table", "ensure_every_append_is_there_once"]

_WRITER = """
import sys
import pyarrow as pa
from optimist.core import DeltaLog
path, writer, appends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.stdin.readline()
log = DeltaLog.for_path(path)
for number in range(appends):
    log.append(pa.table({"writer": [writer], "number": [number]}))
"""


def create_table(path: Path) -> None:
    """Version 0, with one row of nobody's."""
    DeltaLog.for_path(str(path)).append(pa.table({"writer": [-1], "number": [-1]}))


def append_in_processes(path: Path, *, writers: int, appends: int, timeout_s: float) -> None:
    """So many interpreters, each with so many appends, all at once."""
    arguments = [sys.executable, "-c", _WRITER, str(path)]
    started = [
        subprocess.Popen(
            [*arguments, str(writer), str(appends)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for writer in range(writers)
    ]
    for process in started:  # all of them, before the first is waited for
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    problems = [process.communicate(timeout=timeout_s)[1] for process in started]
    assert [process.returncode for process in started] == [0] * writers, problems


def ensure_every_append_is_there_once(path: Path, *, writers: int, appends: int) -> None:
    """By deltalake's reading of the rows, and by ours of the log."""
    log = DeltaLog.for_path(str(path))
    assert log.update().version == writers * appends
    rows = deltalake.DeltaTable(str(path)).to_pyarrow_table()
    found = sorted(zip(rows["writer"].to_pylist(), rows["number"].to_pylist(), strict=True))
    expected = [(-1, -1), *((w, n) for w in range(writers) for n in range(appends))]
    assert found == expected
    txn_ids = [record.info.txn_id for record in log.history()]
    assert len(set(txn_ids)) == writers * appends + 1
