"""A stream that merges in batches, killed after its commits: each batch counts once."""

import os
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from connect_process import environment
from optimist.core import DeltaLog

SCRIPT = Path(__file__).with_name("killed_merge_script.py")
BATCHES = [[1, 2], [2, 3], [1, 1, 4]]
COUNTS = [(1, 3), (2, 2), (3, 1), (4, 1)]
NEVER = ("-1", "")


def drive(folder, kind, batch, step):
    """Run the driver in a group of its own; how it ended, and what it said."""
    driver = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(folder), kind, batch, step],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(on_connect=kind == "connect"),
    )
    _, said = driver.communicate(timeout=200)
    return driver.returncode, said


def rows(path):
    return [tuple(row.values()) for row in DeltaLog.for_path(path, {}).to_arrow().to_pylist()]


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_each_batch_counts_once_whatever_was_committed_before_the_kill(tmp_path, kind):
    (tmp_path / "in").mkdir()
    for number, batch in enumerate(BATCHES):
        lines = "".join(f'{{"id": {value}}}\n' for value in batch)
        file = tmp_path / "in" / f"{number}.json"
        file.write_text(lines)
        os.utime(file, (1_700_000_000 + number,) * 2)
    schema = pa.schema([("id", pa.int64()), ("count", pa.int64())])
    DeltaLog.for_path(tmp_path / "counts", {}).append(schema.empty_table())
    for kill in (("0", "merge"), ("1", "write"), ("2", "merge")):
        code, said = drive(tmp_path, kind, *kill)
        assert code == -signal.SIGKILL, said
    code, said = drive(tmp_path, kind, *NEVER)
    assert code == 0, said
    assert sorted(rows(tmp_path / "counts")) == COUNTS
    assert sorted(rows(tmp_path / "audit")) == [(row,) for row in sorted(chain(*BATCHES))]
    merges = [each.info.operation for each in DeltaLog.for_path(tmp_path / "counts", {}).history()]
    assert merges.count("MERGE") == len(BATCHES)
