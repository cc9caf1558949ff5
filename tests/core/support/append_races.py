"""Writers who append to one table at the same time, and what must stand there afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.protocol.group_tags import transactions_of

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


def ensure_every_append_is_there_once(
    path: Path, *, writers: int, appends: int, grouped: bool = False
) -> None:
    """By deltalake's reading of the rows, and by ours of the log."""
    log = DeltaLog.for_path(str(path))
    assert log.snapshot().version == writers * appends or grouped
    rows = deltalake.DeltaTable(str(path)).to_pyarrow_table()
    found = sorted(zip(rows["writer"].to_pylist(), rows["number"].to_pylist(), strict=True))
    expected = [(-1, -1), *((w, n) for w in range(writers) for n in range(appends))]
    assert found == expected
    sizes = [
        int((record.info.tags or {}).get("optimist.group.size", 1)) for record in log.history()
    ]
    assert sum(sizes) == writers * appends + 1
    txn_ids = [transactions_of(record.info) for record in log.history()]
    groups = sum(size > 1 for size in sizes)  # a group's commit has an id besides those in it
    assert len(frozenset().union(*txn_ids)) == writers * appends + 1 + groups
