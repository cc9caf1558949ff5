"""A writer is killed between any two steps of a commit: nothing is lost, nothing doubled."""

from __future__ import annotations

import signal
import subprocess
import sys

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog

# Counts the calls that change the disk, and dies before the n-th of them.
WRITER = """
import os, signal, sys
path, die_before = sys.argv[1], int(sys.argv[2])
import pyarrow as pa
from optimist.core import DeltaLog
log = DeltaLog.for_path(path)
log.append(pa.table({"id": [0]}))
log.append(pa.table({"id": [1]}))
log.snapshot().files
calls = 0
def dying(function):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == die_before:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call
for name in ("open", "write", "fsync", "link", "unlink", "remove", "replace", "rename"):
    setattr(os, name, dying(getattr(os, name)))
log.append(pa.table({"id": [2]}))
print("survived after", calls)
"""


def run_writer(path, die_before):
    command = [sys.executable, "-c", WRITER, str(path), str(die_before)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def ids_of(path):
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table().column("id").to_pylist())


@pytest.mark.parametrize("die_before", range(1, 25))
def test_a_killed_writer_leaves_a_whole_table(tmp_path, die_before):
    path = tmp_path / "table"
    done = run_writer(path, die_before)
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr
    log = DeltaLog.for_path(str(path))
    version = log.snapshot().version
    found = ids_of(path)
    assert found == ([0, 1, 2] if version == 2 else [0, 1])
    if done.returncode == 0:
        assert version == 2
    assert log.append(pa.table({"id": [3]})).version == version + 1
    assert ids_of(path) == [*found, 3]


def test_the_deaths_cover_every_step_of_a_commit(tmp_path):
    done = run_writer(tmp_path / "table", 1_000_000)
    steps = int(done.stdout.split()[-1])
    assert 4 <= steps < 24, done.stdout
