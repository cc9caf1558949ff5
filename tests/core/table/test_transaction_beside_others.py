"""Several operations in one commit beside other writers: what conflicts, and what passes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from block_tables import data_files, ids_of, kind_of, rows, table
from local_tables import sixty_rows
from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import (
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    UsageError,
)


def test_blind_appends_meet_no_conflict_and_land_after_another_commit(tmp_path):
    log = table(tmp_path / "t", 1)
    with log.transaction() as txn:
        txn.append(rows(2))
        log.append(rows(3))
        txn.append(rows(4))
    assert log.history(1)[0].info.is_blind_append
    assert (txn.result.version, ids_of(log)) == (2, [1, 2, 3, 4])


def test_a_change_of_other_files_meanwhile_is_passed(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    with log.transaction() as txn:
        txn.delete("id = 1")
        txn.append(pa.table({"id": [100], "p": pa.array([1], pa.int32()), "s": ["new"]}))
        txn.delete("id = 2")
        log.delete("id = 50")
        log.delete("id = 10")  # another row of the same file
    assert sorted(set(range(60)) - set(ids_of(log))) == [1, 2, 10, 50]
    assert 100 in ids_of(log)


@pytest.mark.parametrize("step", [0, 1])
def test_what_any_step_has_read_conflicts_with_what_another_commit_changed(tmp_path, step):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    before = data_files(tmp_path / "t")
    with pytest.raises(DeltaConcurrentModificationException), log.transaction() as txn:
        txn.delete("id = 1")
        txn.delete("p = 0 AND id > 20")
        written = data_files(tmp_path / "t") - before
        log.delete("id = 1" if step == 0 else "id = 21")
    assert written
    assert written.isdisjoint(data_files(tmp_path / "t"))
    assert len(ids_of(log)) == 59


def test_a_read_of_the_block_is_a_read_of_its_commit(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with pytest.raises(ConcurrentAppendException), log.transaction() as txn:
        number = txn.count("id < 100")
        log.append(rows(3))
        txn.append(rows(number))
    assert ids_of(log) == [1, 2, 3]


def test_a_read_of_rows_that_the_block_itself_has_written_conflicts_with_nobody_else(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    with log.transaction() as txn:
        txn.append(pa.table({"id": [100], "p": pa.array([1], pa.int32()), "s": ["new"]}))
        txn.update(set={"s": "'x'"}, predicate="id = 100")
        log.delete("id < 50")
    assert ids_of(log) == [*range(50, 60), 100]


def test_a_step_that_failed_and_was_caught_has_read_all_the_same(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with pytest.raises(ConcurrentAppendException), log.transaction() as txn:
        with pytest.raises(UsageError):
            txn.update(set={"id": "abs(CAST(s AS INT))"}, predicate="id < 100")
        txn.count("id < 100")
        log.append(rows(3))
        txn.append(rows(4))


def test_reads_by_new_columns_conflict_with_any_new_file(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with pytest.raises(MetadataChangedException), log.transaction() as txn:
        txn.alter.add_columns([NewColumn("z", "int")])
        log.alter.add_columns([NewColumn("y", "int")])
    with pytest.raises(ConcurrentAppendException), log.transaction() as txn:
        txn.alter.add_columns([NewColumn("z", "int")])
        txn.update(set={"z": "1"}, predicate="z IS NULL AND id = 1")
        log.append(rows(3))


def test_a_transaction_is_not_run_again_after_a_conflict(tmp_path):
    table(tmp_path / "t", 1, 2)
    log = DeltaLog.for_path(str(tmp_path / "t"), {"optimist.conflict.retry": "true"})
    with pytest.raises(DeltaConcurrentModificationException), log.transaction() as txn:
        txn.delete("id = 1", retry=True)
        DeltaLog.for_path(str(tmp_path / "t")).delete("id = 1")
    assert ids_of(log) == [2]


def test_rows_of_a_version_that_came_after_the_beginning_are_refused(tmp_path):
    log = table(tmp_path / "t", 1)
    with log.transaction() as txn:
        txn.append(rows(2))
        txn.ensure_sources_fit([0, 1])  # the next number is the block's own
        log.append(rows(3))
        with pytest.raises(UsageError) as error:
            txn.ensure_sources_fit([0, 1])
        assert kind_of(error) == "OPTIMIST_STEPS_OUT_OF_ORDER"
        txn.ensure_sources_fit([0])
    assert ids_of(log) == [1, 2, 3]


@pytest.mark.parametrize(("where", "fits"), [("id = 30", True), ("id = 1", False)])
def test_of_two_blocks_that_race_both_land_unless_they_touch_the_same_rows(tmp_path, where, fits):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    first, second = log.transaction(), log.transaction()
    with first as one:
        one.delete("id = 1")
        one.update(set={"s": "'one'"}, predicate="id = 2")
        second.__enter__()
        second.delete(where)
        second.update(set={"s": "'two'"}, predicate="id = 3")
    if fits:
        second.__exit__(None, None, None)
        assert sorted(set(range(60)) - set(ids_of(log))) == [1, 30]
        assert log.to_arrow("id IN (2, 3)", ["s"]).num_rows == 2
    else:
        with pytest.raises(DeltaConcurrentModificationException):
            second.__exit__(None, None, None)
        assert log.count("s = 'two'") == 0
    assert log.count("s = 'one'") == 1
