"""The files of a commit: guarded from before they are written, and settled by its outcome."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS
from optimist.core.errors import StorageError, UsageError
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


def intents(log: DeltaLog) -> int:
    return len(list(Path(log.table_path, INTENTS).glob("*")))


def added(name: str) -> AddFile:
    return AddFile(name, {}, size=1, modification_time=1, data_change=True)


def write_all(log: DeltaLog, files: CommitFiles) -> list[Path]:
    """A file in a directory of its own, one among others, and one of vectors."""
    root = Path(log.table_path)
    files.register(str(root / "own"))
    (root / "own").mkdir()
    files.register_files([added("among.parquet")])
    files.register_path(str(root / "vectors.bin"))
    paths = [root / "own" / "f.parquet", root / "among.parquet", root / "vectors.bin"]
    for path in paths:
        path.write_bytes(b"x")
    return paths


@pytest.mark.parametrize(
    ("outcome", "files_stay", "intent_stays"),
    [
        (CommitOutcome.NOT_COMMITTED, False, False),
        (CommitOutcome.STAGED, True, True),
        (CommitOutcome.UNKNOWN, True, True),
        (CommitOutcome.COMMITTED, True, False),
    ],
)
def test_files_go_only_if_the_commit_has_failed_for_certain(log, outcome, files_stay, intent_stays):
    files = CommitFiles(log.table, log.snapshot())
    paths = write_all(log, files)
    assert intents(log) == 1
    files.settle(outcome)
    assert [path.exists() for path in paths] == [files_stay] * 3
    assert intents(log) == intent_stays


def test_files_of_a_part_are_guarded_by_the_intent_of_the_whole(log):
    whole = CommitFiles(log.table, log.snapshot())
    part = CommitFiles(log.table, log.snapshot(), whole)
    paths = write_all(log, part)
    assert intents(log) == 1
    whole.adopt(part)
    part.release()
    assert intents(log) == 1
    whole.settle(CommitOutcome.NOT_COMMITTED)
    assert not any(path.exists() for path in paths)
    assert intents(log) == 0


def test_no_file_is_registered_that_no_intent_guards(log, monkeypatch):
    def fail(*_: object) -> None:
        raise StorageError("The disk is full.", kind="OPTIMIST_STORAGE_FAILED", retryable=True)

    monkeypatch.setattr("optimist.core.transaction.commit_files.begin_intent", fail)
    files = CommitFiles(log.table, log.snapshot())
    for register in (files.register, files.register_path):
        with pytest.raises(StorageError):
            register(str(Path(log.table_path, "f")))
    files.remove()
    assert not files._directories
    assert not files._paths


def test_the_outcome_is_told_at_each_stage_and_a_transaction_is_used_once(log):
    txn = log.start_transaction()
    assert (txn.outcome, txn.may_be_in_table) == (CommitOutcome.NOT_COMMITTED, False)
    txn.commit([], WRITE)
    assert (txn.outcome, txn.has_landed) == (CommitOutcome.COMMITTED, True)
    with pytest.raises(UsageError, match="already committed") as told:
        txn.update_metadata(log.metadata)
    assert told.value.kind == "OPTIMIST_TRANSACTION_ALREADY_COMMITTED"


def test_a_staged_step_is_neither_committed_nor_open(log):
    with log.transaction() as block:
        block.append(pa.table({"a": [2]}))
        step = block.start_transaction()
        step.commit([], WRITE)
        assert step.outcome is CommitOutcome.STAGED
        assert not step.has_landed
        with pytest.raises(UsageError, match="one of several operations") as told:
            step.commit([], WRITE)
        assert told.value.kind == "OPTIMIST_TRANSACTION_FAILED"
    assert block.result is not None
    assert sorted(log.to_arrow()["a"].to_pylist()) == [1, 2]
