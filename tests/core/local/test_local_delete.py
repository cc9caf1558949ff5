"""DELETE without Spark, against a model that goes through the rows one by one."""

from __future__ import annotations

import logging

import deltalake
import pyarrow as pa
import pytest
from deltalake import QueryBuilder
from hypothesis import given
from hypothesis import strategies as st

from command_rows import conditions, counted, is_true, rows_strategy
from local_tables import (
    PROPERTIES,
    Fate,
    changes_since,
    counted_changes,
    live_rows,
    make,
    metrics_of,
    opened,
    sixty_rows,
)
from optimist.core import col
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    SchemaError,
    TableError,
    UsageError,
)
from optimist.core.runtime import progress as progress_module
from optimist.core.runtime.progress import FileProgress
from optimist.core.testing import ManualClock


@given(
    st.lists(rows_strategy(), min_size=1, max_size=3),
    st.lists(conditions(), max_size=3),
    PROPERTIES,
)
@pytest.mark.parametrize("fate", list(Fate))
def test_delete_after_delete_leaves_the_rows_of_the_model(
    tmp_path_factory, fate, files, steps, properties
):
    log = make(tmp_path_factory.mktemp("model") / "t", fate, files, **properties)
    model = [row for rows in files for row in rows]
    model = live_rows(log) if fate.partition_by else model  # empty text is null in a partition
    for condition in steps:
        gone = [row for row in model if is_true(condition, row)]
        model = [row for row in model if not is_true(condition, row)]
        before = log.snapshot().version
        assert log.delete(condition.sql).num_deleted == len(gone)
        assert counted(live_rows(log)) == counted(model), condition.sql
        if properties:
            expected = counted_changes(("delete", row) for row in gone)
            assert changes_since(log, before) == expected, condition.sql
    assert log.count() == len(model)


@pytest.mark.parametrize("has_vectors", [True, False])
def test_only_files_with_matching_rows_change(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    steps = []
    done = log.delete("id < 25 AND s <> 'n3'", user_metadata="why", progress=steps.append)
    assert (done.num_deleted, done.num_copied) == (24, 0 if has_vectors else 16)
    found = ("numRemovedFiles", "numAddedFiles", "numDeletionVectorsAdded", "numDeletedRows")
    assert metrics_of(log, *found) == ((0, 0, 2, 24) if has_vectors else (2, 1, 0, 24))
    info = log.history(1)[0].info
    assert info.operation == "DELETE"
    assert info.operation_parameters == {"predicate": "[\"id < 25 AND s <> 'n3'\"]"}
    assert info.user_metadata == "why"
    assert steps[:2] == [FileProgress("search", 1, 2), FileProgress("search", 2, 2)]
    assert steps[2:] == ([] if has_vectors else [FileProgress("rewrite", 2, 2)])
    assert ids_read_by_another_engine(tmp_path / "t") == [3, *range(25, 60)]


def ids_read_by_another_engine(path):
    engine = QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    return pa.table(engine.execute("SELECT id FROM t ORDER BY id").read_all())["id"].to_pylist()


@pytest.mark.parametrize("has_vectors", [True, False])
def test_whole_files_are_removed_without_a_look_at_them(tmp_path, has_vectors):
    log = opened(tmp_path / "t", has_vectors=has_vectors)
    for first in (0, 10):
        ids = list(range(first, first + 10))
        log.append(pa.table({"id": ids, "p": [i % 2 for i in ids]}), partition_by=["p"])
    for file in (tmp_path / "t").rglob("*.parquet"):
        file.unlink()
    assert log.delete("p = 1").num_deleted == 10
    assert metrics_of(log, "numRemovedFiles", "numAddedFiles", "numDeletedRows") == (2, 0, 10)
    assert log.delete().num_deleted == 10
    assert log.snapshot().num_files == 0
    assert log.delete().commit is None


def test_what_nobody_matches_is_not_committed(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    before = log.snapshot().version
    for predicate in ("id = 1000", "s = 'm'", col("id") == 77, "NULL"):
        assert log.delete(predicate).commit is None
    assert log.snapshot().version == before


def test_a_replay_deletes_nothing(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    assert log.delete("id = 1", txn=("app", 1)).num_deleted == 1
    again = log.delete("id = 2", txn=("app", 1))
    assert (again.commit, again.num_deleted) == (None, 0)
    assert log.count() == 59


@pytest.mark.parametrize("has_vectors", [True, False])
@pytest.mark.parametrize(
    ("predicate", "part"),
    [("id > 1 AND soundex(s) = '2'", "(soundex(s) = '2')"), ("cbrt(id) = 2", "(cbrt(id) = 2)")],
)
def test_a_predicate_that_only_spark_evaluates_is_refused(tmp_path, has_vectors, predicate, part):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    with pytest.raises(UsageError, match="Nothing was written") as caught:
        log.delete(predicate)
    assert (caught.value.kind, caught.value.fields["part"]) == ("OPTIMIST_NEEDS_SPARK", part)
    with pytest.raises(SchemaError):
        log.delete("nowhere = 1")
    assert log.snapshot().version == 2


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_commit_that_adds_matching_rows_is_a_conflict(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)

    def intrude(id_):
        def step(done):
            if done.files_done == 1 and done.step == "search":
                log.append(pa.table({"id": [id_], "p": pa.array([0], pa.int32()), "s": ["new"]}))

        return step

    assert log.delete("id < 5", progress=intrude(1000)).num_deleted == 5  # it can't match
    before = files_below(tmp_path / "t")
    with pytest.raises(DeltaConcurrentModificationException):
        log.delete("id < 10", progress=intrude(7))
    assert len(files_below(tmp_path / "t") - before) == 1, "only the intruder's file is new"
    assert log.count() == 57


def files_below(path):
    return {str(file) for file in path.rglob("*") if file.suffix in (".parquet", ".bin")}


def test_files_that_were_written_are_removed_if_a_step_fails(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    before = files_below(tmp_path / "t")

    def interrupt(done):
        if done.step == "rewrite":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log.delete("s LIKE '%1'", progress=interrupt)
    assert files_below(tmp_path / "t") == before
    assert not [item for item in (tmp_path / "t").iterdir() if item.name.startswith("data-")]


def test_a_file_that_is_gone_is_an_error_and_nothing_is_written(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    next((tmp_path / "t").glob("*.parquet")).unlink()
    with pytest.raises(TableError) as caught:
        log.delete("s LIKE '%9%'")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"


def test_long_work_is_told_in_the_log(tmp_path, caplog):
    clock = ManualClock()
    report = progress_module.ProgressReport(clock, None, "DELETE")
    with caplog.at_level(logging.INFO, progress_module.__name__):
        report.tell(FileProgress("search", 1, 3))
        clock.advance(11)
        report.tell(FileProgress("search", 2, 3))
        report.tell(FileProgress("search", 3, 3))
    assert [record.getMessage() for record in caplog.records] == ["DELETE, search: 2 of 3 files"]
