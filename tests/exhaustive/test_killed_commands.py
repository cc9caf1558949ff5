"""DELETE, UPDATE and MERGE without Spark, killed between any two steps: before or after, whole."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from whole_commands import AFTER, ensure_whole

# Counts the calls that change the disk, and dies before the n-th of them.
WRITER = """
import os, signal, sys
path, vectors, command, die_before = *sys.argv[1:4], int(sys.argv[4])
import pyarrow as pa
from optimist.core import DeltaLog
defaults = "spark.databricks.delta.properties.defaults."
properties = {"enableDeletionVectors": vectors, "enableChangeDataFeed": "true"}
log = DeltaLog.for_path(path, {defaults + name: value for name, value in properties.items()})
for first in (0, 3):
    log.append(pa.table({"id": [first, first + 1, first + 2], "v": [first] * 3}))
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
for name in ("open", "write", "fsync", "link", "unlink", "remove", "replace", "rename", "mkdir"):
    setattr(os, name, dying(getattr(os, name)))
if command == "delete":
    log.delete("id = 1 OR id = 4")
elif command == "update":
    log.update(set={"v": "v + 10"}, predicate="id = 1 OR id = 4")
else:
    rows = pa.table({"id": [1, 4, 7], "v": [100, 101, 102]})
    merge = log.merge(rows, ["id"]).when_matched_delete("s.v = 100")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
print("survived after", calls)
"""
MOST_STEPS = 60


def run_writer(path, vectors, command, die_before):
    given = [sys.executable, "-c", WRITER, str(path), vectors, command, str(die_before)]
    return subprocess.run(given, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("command", sorted(AFTER))
def test_a_killed_command_leaves_the_table_before_or_after(tmp_path, command, vectors):
    has_died = has_survived = False
    for die_before in range(1, MOST_STEPS):
        path = tmp_path / f"table {die_before}"
        done = run_writer(path, vectors, command, die_before)
        assert done.returncode in (-signal.SIGKILL, 0), done.stderr
        ensure_whole(path, command)
        has_survived |= done.returncode == 0
        has_died |= done.returncode != 0
        if has_survived:
            break
    assert has_died
    assert has_survived, "some steps were not reached"
