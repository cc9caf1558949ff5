"""Rows deleted by vectors, without Spark: the table, its statistics, its feed and its conflicts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from numbered_rows import vector_files
from optimist.core import DeltaLog
from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.marked_files import MarkedFiles, choose_rows, only_chosen
from optimist.core.commands.removed_files import RemovedFiles
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.errors import (
    ConcurrentDeleteReadException,
    TableError,
)
from optimist.core.log.file_table import add_files, files_table
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.transaction.conflicts.operations import Operation

DEFAULTS = "spark.databricks.delta.properties.defaults."
WITH_VECTORS = {f"{DEFAULTS}enableDeletionVectors": "true"}
ROWS, FILES = 60, 3


def opened(path, **properties):
    return DeltaLog.for_path(
        str(path), {**WITH_VECTORS, **{f"{DEFAULTS}{k}": v for k, v in properties.items()}}
    )


def make(path, **properties):
    """Three files of twenty rows; the ids of a file follow each other."""
    log = opened(path, **properties)
    for first in range(0, ROWS, ROWS // FILES):
        ids = range(first, first + ROWS // FILES)
        log.append(pa.table({"id": pa.array(ids, pa.int64()), "s": [f"n{i}" for i in ids]}))
    return log


def first_id(file):
    return json.loads(file.stats)["minValues"]["id"]


def delete(log, ids, txn=None):
    """What DELETE on Spark does, once it knows the rows."""
    txn = txn or log.start_transaction(log.snapshot())

    def work(pending):
        files, rows = [], []
        for file in add_files(txn.filter_files("id >= 0")):
            here = BitMap64(i - first_id(file) for i in ids if 0 <= i - first_id(file) < 20)
            if here:
                files.append(file)
                rows.append(here)
        txn.need_only(files_table(files), rows)
        found = MarkedFiles.write(txn.table, choose_rows(txn.table, files, rows), pending)
        rewrite = Rewrite(RemovedFiles.of(found.emptied), WrittenFiles(), len(ids), found.marked)
        operation = Operation.delete(["…"]).with_metrics(rewrite.metrics())
        return Changes(rewrite.actions(txn.table.clock.now_ms()), operation)

    return run_command(txn, work).commit


def ids_of(log):
    return sorted(log.to_arrow()["id"].to_pylist())


def metrics_of(log):
    found = log.history(1)[0].info.operation_metrics
    names = ("numRemovedFiles", "numDeletionVectorsAdded", "numDeletionVectorsRemoved")
    return tuple(int(found[name]) for name in (*names, "numDeletionVectorsUpdated"))


# What is left


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=40), min_size=1, max_size=4),
    st.booleans(),
)
def test_delete_after_delete_leaves_the_rows_of_the_model(tmp_path_factory, steps, has_small):
    log = make(tmp_path_factory.mktemp("model") / "t", enableChangeDataFeed="true")
    live, changed = set(range(ROWS)), Counter()
    limit = 256 if has_small else 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", limit)
        for step in steps:
            gone = step & live
            if not gone:
                continue
            version = delete(log, gone).version
            live -= gone
            changed.update((version, "delete", i) for i in gone)
    assert ids_of(log) == sorted(live)
    assert log.count() == len(live)
    if changed:
        names = ["_commit_version", "_change_type", "id"]
        feed = log.changes(columns=names, starting_version=FILES)
        assert Counter(tuple(row.values()) for row in feed.to_pylist()) == changed


def with_other_count(log, count):
    """Make the log say that the first file has so many rows."""
    commit = Path(log.log_path, f"{0:020d}.json")
    lines = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if "add" in line:
            stats = {**json.loads(line["add"]["stats"]), "numRecords": count}
            line["add"]["stats"] = json.dumps(stats)
    commit.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    for checksum in Path(log.log_path).glob("*.crc"):
        checksum.unlink()
    return opened(log.table_path, logRetentionDuration="interval 9 days")  # another handle


@pytest.mark.parametrize("count", [3, 8, 19])
def test_a_count_of_rows_that_is_too_low_takes_no_row_along(tmp_path, count):
    log = with_other_count(make(tmp_path / "t"), count)
    delete(log, set(range(3)))
    delete(log, set(range(3, 8)))
    assert ids_of(log) == list(range(8, ROWS))


@pytest.mark.parametrize("count", [8, 20])
def test_two_deletes_at_once_take_no_row_along_that_is_not_counted(tmp_path, count):
    log = with_other_count(make(tmp_path / "t"), count)
    txn = log.start_transaction(log.snapshot())
    delete(log, set(range(3)))
    delete(log, set(range(3, count)), txn)
    assert ids_of(log) == list(range(count, ROWS))
    assert log.snapshot().num_files == (FILES if count < 20 else FILES - 1)


def test_another_engine_reads_what_is_left(tmp_path, monkeypatch):
    log = make(tmp_path / "t")
    delete(log, {1, 2, 30})
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    delete(log, {3, *range(40, 59)})
    engine = QueryBuilder().register("t", DeltaTable(str(tmp_path / "t")))
    found = pa.table(engine.execute("SELECT id FROM t ORDER BY id").read_all())
    assert found["id"].to_pylist() == ids_of(log)
    assert len(vector_files(tmp_path / "t")) == 1


def test_a_file_is_removed_and_added_with_its_statistics_ids_and_tags(tmp_path):
    log = make(tmp_path / "t", enableRowTracking="true")
    (before, *_) = sorted(add_files(log.snapshot().files), key=first_id)
    delete(log, {0, 5})
    (after, *_) = sorted(add_files(log.snapshot().files), key=first_id)
    assert json.loads(after.stats) == {**json.loads(before.stats), "tightBounds": False}
    for name in ("path", "size", "modification_time", "base_row_id", "default_row_commit_version"):
        assert getattr(after, name) == getattr(before, name)
    assert metrics_of(log) == (0, 1, 0, 0)
    delete(log, {7})
    assert metrics_of(log) == (0, 1, 1, 1)
    rows = log.to_arrow("id < 20", ["id", "_metadata.row_id"]).to_pylist()
    assert [row["_metadata.row_id"] for row in rows] == [i for i in range(20) if i not in (0, 5, 7)]


def test_files_without_rows_are_removed_and_get_no_vector(tmp_path):
    log = make(tmp_path / "t")
    delete(log, {3})
    delete(log, set(range(40)) - {3})
    assert ids_of(log) == list(range(40, 60))
    assert metrics_of(log) == (2, 0, 1, 0)


def test_a_reader_of_the_chosen_rows_finds_these_alone(tmp_path):
    log = make(tmp_path / "t")
    delete(log, {0, 1})
    files = sorted(add_files(log.snapshot().files), key=first_id)
    rows = [BitMap64([2, 19]), BitMap64(range(20)), BitMap64([0])]
    chosen = choose_rows(log.table, files, rows)
    view = log.snapshot().with_other_files(log.metadata, only_chosen(chosen))
    found = sorted(to_arrow(view)["id"].to_pylist())
    assert found == [2, 19, *range(20, 40), 40]


# Row counts


def commit_stats(log, change):
    """Replace the statistics of all files."""
    txn = log.start_transaction(log.snapshot())
    files = add_files(txn.filter_files())
    txn.commit(
        [replace(file, stats=change(file.stats), data_change=False) for file in files],
        Operation("COMPUTE STATS"),
    )


@pytest.mark.parametrize("num_records", [None, 4, 1 << 62])
def test_a_count_that_is_missing_or_wrong_is_read_from_the_file(tmp_path, num_records):
    log = make(tmp_path / "t")

    def change(text):
        stats = json.loads(text)
        stats.pop("numRecords")
        return json.dumps(stats if num_records is None else {**stats, "numRecords": num_records})

    commit_stats(log, change)
    delete(log, {5, 25, *range(40, 60)})
    assert ids_of(log) == [i for i in range(40) if i not in (5, 25)]
    assert {json.loads(file.stats)["numRecords"] for file in add_files(log.snapshot().files)} == {
        20
    }


def test_a_file_that_can_not_tell_its_rows_is_an_error(tmp_path):
    log = make(tmp_path / "t")
    (file, *_) = sorted(add_files(log.snapshot().files), key=first_id)
    for rows, message in ((BitMap64([20]), "its footer says 20"), (BitMap64([21]), "gone")):
        if message == "gone":
            (tmp_path / "t" / file.path).unlink()
        with pytest.raises(TableError, match=message) as caught:
            choose_rows(log.table, [file], [rows])
        assert caught.value.kind == "OPTIMIST_UNREADABLE_DATA_FILE"


def test_rows_that_are_gone_already_can_not_be_deleted_again(tmp_path):
    log = make(tmp_path / "t")
    delete(log, {1, 2})
    with pytest.raises(TableError) as caught:
        delete(log, {2, 3})
    assert caught.value.kind == "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"
    assert ids_of(log) == [0, *range(3, ROWS)]


def test_no_row_is_chosen_of_a_file_whose_vector_names_rows_that_it_lacks(tmp_path):
    log = make(tmp_path / "t")
    (file, *_) = sorted(add_files(log.snapshot().files), key=first_id)
    odd = replace(file, deletion_vector=inline_vector(BitMap64(range(100, 119))))
    for rows in (BitMap64([0]), BitMap64(range(20))):
        with pytest.raises(TableError) as caught:
            choose_rows(log.table, [odd], [rows])
        assert caught.value.kind == "OPTIMIST_MALFORMED_DELETION_VECTOR"


# Other transactions


def test_two_vectors_with_one_row_conflict_and_the_loser_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = make(tmp_path / "t")
    late = log.start_transaction(log.snapshot())
    delete(log, {1})
    before = vector_files(tmp_path / "t")
    with pytest.raises(ConcurrentDeleteReadException, match="1 rows of 1 files"):
        delete(log, {1, 2}, late)
    assert vector_files(tmp_path / "t") == before
    assert len(before) == 1
    assert ids_of(log) == [0, *range(2, ROWS)]
    delete(log, {2})
    assert ids_of(log) == [0, *range(3, ROWS)]


def test_an_interrupted_commit_keeps_its_vectors_since_it_may_have_landed(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = make(tmp_path / "t")
    txn = log.start_transaction(log.snapshot())

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("optimist.core.transaction.commit_loop.create_version_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        delete(log, {2}, txn)
    assert len(vector_files(tmp_path / "t")) == 1


def test_rows_that_stay_are_not_guessed_where_positions_were_not_asked_for(tmp_path):
    log = opened(tmp_path / "t")
    log.append(pa.table({"id": range(3)}))
    files = log.files()
    assert TouchedFiles(files, None).others(log.table).num_rows == 0  # every row matches
    assert TouchedFiles(files.slice(0, 0), 0).others(log.table).num_rows == 0
    [kept] = add_files(TouchedFiles(files, 1, (BitMap64([1]),)).others(log.table))
    assert kept.deletion_vector == inline_vector(BitMap64([1]))
    with pytest.raises(ValueError, match="positions"):
        TouchedFiles(files, 1).others(log.table)
