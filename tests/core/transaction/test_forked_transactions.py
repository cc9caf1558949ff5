"""A transaction that is open while its process forks is the parent's, which may commit it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.protocol.actions import AddFile
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.conflicts.operations import Operation

WRITE = Operation.write("Append")


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"a": [1]}))
    return log


def added(name: str) -> AddFile:
    return AddFile(name, {}, size=1, modification_time=1, data_change=True)


def in_child(work) -> str:
    """Run the work in a forked child, and return what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return json.loads(said.read())


def test_two_processes_do_not_commit_one_transaction(log):
    """Whoever came second took the commit of the first for its own, as both have one id."""
    txn = log.start_transaction()

    def commit():
        try:
            return txn.commit([added("child")], WRITE).version
        except UsageError as error:
            return error.kind

    assert in_child(commit) == "OPTIMIST_TRANSACTION_FAILED"
    assert txn.commit([added("parent")], WRITE).version == 1
    assert "parent" in log.snapshot().files["path"].to_pylist()


def test_a_child_begins_transactions_of_its_own(log):
    commit = in_child(lambda: log.start_transaction().commit([added("child")], WRITE).version)
    assert commit == 1
    assert log.append(pa.table({"a": [2]})).version == 2


def test_a_child_neither_removes_nor_releases_the_files_of_its_parent(log):
    files = CommitFiles(log.table, log.snapshot())
    path = Path(log.table_path, "vectors.bin")
    files.register_path(str(path))
    path.write_bytes(b"x")

    def settle():
        files.settle(CommitOutcome.NOT_COMMITTED)
        return len(list(Path(log.table_path, "_optimist_intents").glob("*")))

    assert in_child(settle) == 1
    assert path.exists()
    files.settle(CommitOutcome.NOT_COMMITTED)
    assert not path.exists()
