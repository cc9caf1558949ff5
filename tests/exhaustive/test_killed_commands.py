"""DELETE, UPDATE and MERGE without Spark, killed between any two steps: before or after, whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from optimist.core import DeltaLog

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
log.update().files
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
BEFORE = {0: 0, 1: 0, 2: 0, 3: 3, 4: 3, 5: 3}
AFTER = {
    "delete": {0: 0, 2: 0, 3: 3, 5: 3},
    "update": {**BEFORE, 1: 10, 4: 13},
    "merge": {0: 0, 2: 0, 3: 3, 4: 101, 5: 3, 7: 102},
}
CHANGES = {
    "delete": [("delete", 1, 0), ("delete", 4, 3)],
    "update": [
        *(("update_preimage", 1, 0), ("update_postimage", 1, 10)),
        *(("update_preimage", 4, 3), ("update_postimage", 4, 13)),
    ],
    "merge": [
        *(("delete", 1, 0), ("insert", 7, 102)),
        *(("update_preimage", 4, 3), ("update_postimage", 4, 101)),
    ],
}
MOST_STEPS = 40


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


def ensure_whole(path, command):
    log = DeltaLog.for_path(str(path))
    version = log.update().version
    assert version in (1, 2)
    rows = {row["id"]: row["v"] for row in log.to_arrow().to_pylist()}
    assert rows == (AFTER[command] if version == 2 else BEFORE)
    if version == 2:
        found = log.changes(columns=["_change_type", "id", "v"], starting_version=2)
        assert Counter(map(tuple, map(dict.values, found.to_pylist()))) == Counter(CHANGES[command])
    for file in Path(path).rglob("*.parquet"):
        parts = file.relative_to(path).parts
        hidden = [part for part in parts if part.startswith(("_", "."))]
        assert hidden in ([], ["_change_data"]), "vacuum would not find it"
    assert log.delete("id = 5").num_deleted == 1
