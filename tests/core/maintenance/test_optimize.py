"""OPTIMIZE without Spark: what it puts together, and what it does beside other writers."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from threading import Event

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import Column, DeltaLog, Identity, NewColumn
from optimist.core.errors import MetadataChangedException, TableError, UsageError
from optimist.core.local import row_writer
from optimist.core.local.compaction import LocalBins
from optimist.core.local.row_writer import RowFiles
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.optimize.optimize import optimize

DEFAULTS = "spark.databricks.delta.properties.defaults."
VECTORS = {f"{DEFAULTS}enableDeletionVectors": "true"}
TRACKED = {f"{DEFAULTS}enableRowTracking": "true"}
FEED = {f"{DEFAULTS}enableChangeDataFeed": "true"}


def made(path: Path, options: dict[str, str] | None = None, *, commits: int = 6) -> DeltaLog:
    """Ten rows a commit, in two partitions."""
    log = DeltaLog.for_path(str(path / "t"), options)
    for first in range(0, 10 * commits, 10):
        rows = {"id": range(first, first + 10), "p": [i % 2 for i in range(10)]}
        log.append(pa.table(rows, pa.schema([("id", pa.int64()), ("p", pa.int64())])), **PARTED)
    return log


PARTED = {"partition_by": ["p"]}


def ids(log: DeltaLog) -> list[int]:
    return sorted(log.to_arrow(columns=["id"])["id"].to_pylist())


def tracked(log: DeltaLog) -> dict[int, tuple[int, int]]:
    wanted = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    rows = log.to_arrow(columns=wanted).to_pylist()
    return {
        row["id"]: (row["_metadata.row_id"], row["_metadata.row_commit_version"]) for row in rows
    }


def by_row_id(log: DeltaLog) -> list[dict[str, object]]:
    wanted = [*log.snapshot().schema.names, "_metadata.row_id", "_metadata.row_commit_version"]
    rows = log.to_arrow(columns=wanted)
    return rows.sort_by("_metadata.row_id").to_pylist()


def run_beside(log: DeltaLog, between):
    """OPTIMIZE, with something that happens once its (first) files are written."""
    pending = [between]

    def write(txn, bins, files, order):
        written = LocalBins()(txn, bins, files, order)
        if pending:
            pending.pop()()
        return written

    return optimize(lambda: log.start_transaction(log.snapshot()), write, Rearrangement())


def data_files(log: DeltaLog) -> set[str]:
    root = Path(log.table_path)
    return {
        str(path.relative_to(root)) for path in root.rglob("*.parquet") if "_log" not in str(path)
    }


def test_small_files_become_one_in_each_partition(tmp_path):
    log = made(tmp_path)
    before = ids(log)
    done = log.optimize()
    assert (done.removed.num_files, done.added.num_files, done.num_partitions) == (12, 2, 2)
    assert ids(log) == before
    assert log.snapshot().num_files == 2
    found = deltalake.DeltaTable(log.table_path).to_pyarrow_table()["id"].to_pylist()
    assert sorted(found) == before
    newest = log.history(1)[0].info
    assert newest.operation == "OPTIMIZE"
    assert newest.operation_metrics["numRemovedFiles"] == "12"
    assert log.optimize().version is None  # there is nothing left to do


def test_a_predicate_chooses_partitions(tmp_path):
    log = made(tmp_path)
    done = log.optimize("p = 1")
    assert (done.removed.num_files, done.added.num_files) == (6, 1)
    assert log.snapshot().scan("p = 0").files.num_rows == 6


def test_a_predicate_over_data_is_refused(tmp_path):
    log = made(tmp_path)
    with pytest.raises(UsageError) as caught:
        log.optimize("id = 1")
    assert caught.value.kind == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    assert log.snapshot().version == 5


@pytest.mark.parametrize(
    "predicate",
    [
        "length(soundex(p)) = 2",
        "nosuch(p) = 1",
        "p = 1 AND length(soundex(p)) = 1",
        "p = 0 OR crc32(p) = 0",
        "current_date() > 0",
    ],
)
def test_a_predicate_that_only_spark_can_evaluate_rewrites_nothing(tmp_path, predicate):
    log = made(tmp_path, VECTORS, commits=2)
    log.delete("id IN (1, 2)")
    for rewrite in (log.optimize, log.purge, log.recompute_statistics):
        with pytest.raises(UsageError) as caught:
            rewrite(predicate)
        assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert log.snapshot().version == 2


def test_a_predicate_without_columns_is_for_all_partitions_or_none(tmp_path):
    for number, parted in enumerate((PARTED, {})):
        log = DeltaLog.for_path(str(tmp_path / f"t{number}"))
        for _ in range(2):
            log.append(pa.table({"id": [1], "p": [1]}), **parted)
        assert log.optimize("1 = 2").version is None
        assert log.optimize("1 = 1").removed.num_files == 2


def test_values_of_partitions_that_are_odd_stay_apart(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    values = [None, "", "a b", "a%20b", "é/ü", "=", "__HIVE_DEFAULT_PARTITION__x"]
    for _ in range(3):
        log.append(pa.table({"id": range(len(values)), "q": values}), partition_by=["q"])
    before = sorted(map(str, log.to_arrow().to_pylist()))
    done = log.optimize()
    assert sorted(map(str, log.to_arrow().to_pylist())) == before
    # As in every Delta table the empty text is null.
    assert done.added.num_files == len(values) - 1


def test_times_of_partitions_without_a_zone_stay_without_one_and_apart_from_others(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    hour = pa.array([dt.datetime(2024, 1, 1, 1)], pa.timestamp("us", "UTC"))
    for number in range(4):
        log.append(pa.table({"id": [number], "p": hour}), partition_by=["p"])
    zoned, plain = "2024-01-01T01:00:00.000000Z", "2024-01-01 01:00:00"
    with_log_changed(log, [(zoned, each) for each in (zoned, zoned, plain, plain)])
    log = DeltaLog.for_path(log.table_path)
    log.optimize()
    # In a session of another zone than UTC, these are two hours.
    found = [dict(values)["p"] for values in log.snapshot().files["partitionValues"].to_pylist()]
    assert sorted(found) == [plain, zoned]


def test_deleted_rows_are_purged_and_ids_and_versions_of_rows_are_kept(tmp_path):
    log = made(tmp_path, {**VECTORS, **TRACKED})
    log.delete("id IN (3, 14, 25)")
    before = tracked(log)
    done = log.optimize()
    assert (done.num_vectors_removed, done.num_rows_purged) == (3, 3)
    assert tracked(log) == before
    assert log.snapshot().files["deletionVector"].null_count == 2


def test_a_large_file_is_written_again_only_if_many_of_its_rows_are_deleted(tmp_path):
    small = {"spark.databricks.delta.optimize.minFileSize": "1", **VECTORS}
    log = made(tmp_path, small, commits=2)
    assert log.optimize().version is None
    log.delete("id < 20 AND p = 0")  # whole files
    log.delete("id IN (1, 11)")
    assert log.optimize().removed.num_files == 2


def test_a_batch_is_a_commit(tmp_path):
    log = made(tmp_path, {"spark.databricks.delta.optimize.batchSize": "1"})
    done = log.optimize()
    assert (done.num_batches, log.snapshot().version) == (2, 7)


@pytest.mark.parametrize("gone", ["id IN (1, 3, 5)", "id = 1"])
def test_what_happens_between_two_batches_is_not_undone(tmp_path, gone):
    key = {"spark.databricks.delta.optimize.batchSize": "1"}
    log = made(tmp_path, {**key, **(VECTORS if "IN" in gone else {})})
    other = DeltaLog.for_path(log.table_path)
    calls = []

    def write(txn, bins, files, order):
        if len(calls) == 1:
            # The second batch has begun: what came before it must be seen.
            assert txn.read_version == log.snapshot().version
        calls.append(txn.read_version)
        return LocalBins()(txn, bins, files, order)

    def begin():
        if calls and len(calls) == 1:
            other.delete(gone)
        return log.start_transaction(log.snapshot())

    optimize(begin, write, Rearrangement())
    deleted = {1, 3, 5} if "IN" in gone else {1}
    assert len(calls) == 2
    assert ids(log) == [i for i in range(60) if i not in deleted]


def test_purging_writes_again_what_has_vectors_and_nothing_else(tmp_path):
    log = made(tmp_path, {**VECTORS, **TRACKED})
    log.delete("id IN (3, 14)")
    before, files = tracked(log), set(log.snapshot().files["path"].to_pylist())
    done = log.purge()
    assert (done.removed.num_files, done.num_rows_purged) == (2, 2)
    assert tracked(log) == before
    now = log.snapshot().files
    assert now["deletionVector"].null_count == now.num_rows == 12
    assert len(files & set(now["path"].to_pylist())) == 10
    newest = log.history(1)[0].info
    assert (newest.operation, newest.operation_parameters["applyPurge"]) == ("REORG", True)
    assert log.purge().version is None


@pytest.mark.parametrize("mode", ["name", "id"])
def test_purging_writes_again_what_holds_a_dropped_column(tmp_path, mode):
    kind = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    schema = pa.schema([("id", pa.int64()), ("s", kind), ("x", pa.int64())])
    mapped = {f"{DEFAULTS}columnMapping.mode": mode, **TRACKED, **VECTORS}
    log = DeltaLog.for_path(str(tmp_path / "t"), mapped)
    row = {"id": [1], "s": [{"a": 1, "b": 2}], "x": [3]}
    log.append(pa.table(row, schema))
    assert log.purge().version is None
    for gone, left in (("x", {"id", "s"}), ("s.b", {"id", "s"})):
        log.alter.drop_columns([gone])
        log.append(log.to_arrow().slice(0, 1))
        before, new = by_row_id(log), log.snapshot().files["path"].to_pylist()
        done = log.purge()
        # All but that which was written after the drop.
        assert done.removed.num_files == len(new) - 1
        assert len(set(new) & set(log.snapshot().files["path"].to_pylist())) == 1
        assert by_row_id(log) == before
        assert set(log.to_arrow().schema.names) == left
        assert log.purge().version is None


@pytest.mark.parametrize("options", [{}, VECTORS, {**VECTORS, **TRACKED}])
@pytest.mark.parametrize("gone", ["id IN (1, 3, 35)", "id < 45", "id >= 0"])
def test_what_is_deleted_between_two_batches_stays_deleted(tmp_path, options, gone):
    log = made(tmp_path, options)
    batched = DeltaLog.for_path(
        log.table_path, {"spark.databricks.delta.optimize.batchSize": "1", **options}
    )
    left = log.to_arrow(columns=["id"], predicate=f"NOT ({gone})")["id"].to_pylist()
    before = tracked(log) if TRACKED.items() <= options.items() else {}
    run_beside(batched, lambda: log.delete(gone))
    assert ids(batched) == sorted(left)
    if before:
        assert tracked(batched) == {i: before[i] for i in left}


def test_no_bin_is_larger_than_asked_for(tmp_path):
    log = made(tmp_path)
    size = log.snapshot().files["size"][0].as_py()
    key = "spark.databricks.delta.optimize.maxFileSize"
    limited = DeltaLog.for_path(log.table_path, {key: str(2 * size + size // 2)})
    done = limited.optimize()
    assert (done.num_bins, done.added.num_files) == (6, 6)


def test_the_change_feed_tells_of_no_change(tmp_path):
    log = made(tmp_path, FEED)
    version = log.optimize().version
    assert log.changes(starting_version=version).num_rows == 0


def test_rows_that_are_deleted_meanwhile_are_deleted_in_the_new_files(tmp_path):
    log = made(tmp_path, {**VECTORS, **TRACKED})
    log.delete("id IN (0, 1, 22)")
    other = DeltaLog.for_path(log.table_path)
    done = run_beside(log, lambda: other.delete("id IN (2, 3, 21, 24, 59)"))
    gone = {0, 1, 22, 2, 3, 21, 24, 59}
    assert ids(log) == [i for i in range(60) if i not in gone]
    assert done.added.num_files == 2
    assert log.snapshot().num_files == 2


def test_rows_that_are_deleted_before_each_attempt_stay_deleted(tmp_path):
    log = made(tmp_path, {**VECTORS, **TRACKED})
    other = DeltaLog.for_path(log.table_path)
    deleting = [{1, 12}, {13, 30}, {15, 31}]
    gone = set().union(*deleting)

    def delete_some():
        if deleting:
            other.delete(f"id IN ({', '.join(map(str, sorted(deleting.pop())))})")

    def write(txn, bins, files, order):
        written = LocalBins()(txn, bins, files, order)
        delete_some()
        return written

    def begin():
        txn = log.start_transaction(log.snapshot())
        if len(deleting) < 3:
            delete_some()  # so that this attempt meets another commit, too
        return txn

    done = optimize(begin, write, Rearrangement())
    assert done.added.num_files == 2
    assert ids(log) == [i for i in range(60) if i not in gone]
    assert log.snapshot().num_files == 2


def test_a_bin_whose_rows_are_all_deleted_meanwhile_adds_no_file(tmp_path):
    log = made(tmp_path, VECTORS)
    other = DeltaLog.for_path(log.table_path)
    odd = [i for i in range(60) if i % 2]

    def delete_all_but_one_then_it():
        other.delete(f"id IN ({', '.join(map(str, odd[:-1]))})")

    run_beside(log, delete_all_but_one_then_it)
    assert ids(log) == sorted([*range(0, 60, 2), odd[-1]])


def test_a_bin_of_which_a_file_is_gone_is_dropped_and_the_others_land(tmp_path):
    log = made(tmp_path)
    other = DeltaLog.for_path(log.table_path)
    done = run_beside(log, lambda: other.delete("id = 3"))  # by copy on write, in partition 1
    assert done.added.num_files == 1
    assert ids(log) == [i for i in range(60) if i != 3]
    live = set(log.snapshot().files["path"].to_pylist())
    history = data_files(log)
    # The new file of the dropped bin is gone; those of older versions are kept.
    assert len(history) == 12 + 1 + 1
    assert live <= history


def with_log_changed(log: DeltaLog, changes: list[tuple[str, str]]) -> None:
    """A text in each of the commits is another one, as of a foreign or a faulty writer."""
    for version, (old, new) in enumerate(changes):
        file = Path(log.log_path) / f"{version:020d}.json"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))


def test_rows_deleted_meanwhile_are_found_though_the_log_counts_the_rows_of_files_wrongly(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), VECTORS)
    for first in (0, 5):
        log.append(pa.table({"id": range(first, first + 5)}))
    wrong = [(r"\"numRecords\":5", rf"\"numRecords\":{count}") for count in (6, 4)]
    with_log_changed(log, wrong)
    log = DeltaLog.for_path(log.table_path)
    done = run_beside(log, lambda: DeltaLog.for_path(log.table_path).delete("id IN (0, 5)"))
    assert done.added.num_files == 1
    assert ids(log) == [1, 2, 3, 4, 6, 7, 8, 9]


def test_a_vacuum_that_took_an_old_vector_meanwhile_costs_its_bin_and_no_more(tmp_path):
    unchecked = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    log = DeltaLog.for_path(str(tmp_path / "t"), {**VECTORS, **unchecked})
    scattered = [each for each in range(3_000) if each * each % 7 == 1]
    for part in "ab":
        for first in (0, 3_000):
            ids = range(first, first + 3_000)
            log.append(pa.table({"p": [part] * 3_000, "id": ids}), partition_by=["p"])
    log.delete(f"p = 'a' AND id IN ({', '.join(map(str, scattered))})")
    assert list((tmp_path / "t").rglob("*.bin"))  # the vector is too large for the log

    def between() -> None:
        log.delete("p = 'a' AND id = 0")
        log.vacuum(0)

    run_beside(log, between)
    left = [each for each in range(1, 6_000) if each not in scattered]
    assert sorted(log.to_arrow("p = 'a'")["id"].to_pylist()) == left
    assert log.snapshot().scan("p = 'b'").files.num_rows == 1  # its bin was committed
    assert log.snapshot().scan("p = 'a'").files.num_rows == 2


def test_appends_meanwhile_cost_nothing(tmp_path):
    log = made(tmp_path)
    other = DeltaLog.for_path(log.table_path)
    more = pa.table({"id": pa.array([100], pa.int64()), "p": pa.array([1], pa.int64())})
    done = run_beside(log, lambda: other.append(more))
    assert done.added.num_files == 2
    assert ids(log) == [*range(60), 100]


def test_numbers_that_are_given_out_meanwhile_are_no_change_of_the_schema(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), VECTORS)
    log.create([Column("id", "bigint", identity=Identity()), Column("p", "bigint")])
    rows = pa.table({"p": pa.array([1, 1], pa.int64())})
    for _ in range(3):
        log.append(rows)
    other = DeltaLog.for_path(log.table_path)
    # The DELETE makes a second attempt necessary.
    done = run_beside(log, lambda: (other.append(rows), other.delete("id = 2")))
    assert done.added.num_files == 1
    assert ids(log) == [1, *range(3, 9)]


def test_a_change_of_the_schema_meanwhile_is_a_conflict_and_no_file_is_left(tmp_path):
    log = made(tmp_path)
    other = DeltaLog.for_path(log.table_path)
    before, column = data_files(log), [NewColumn("c", "int")]
    with pytest.raises(MetadataChangedException):
        run_beside(log, lambda: (other.delete("id = 3"), other.alter.add_columns(column)))
    assert ids(log) == [i for i in range(60) if i != 3]
    # Only the file that the DELETE wrote is new.
    assert len(data_files(log) - before) == 1


def test_numbers_of_an_identity_column_given_out_meanwhile_are_no_change_of_the_schema(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), VECTORS)
    log.create([Column("n", "bigint", identity=Identity()), Column("v", "bigint")])
    for _ in range(3):
        log.append(pa.table({"v": [0, 0]}))
    other = DeltaLog.for_path(log.table_path)
    run_beside(log, lambda: (other.append(pa.table({"v": [0]})), other.delete("n = 2")))
    log.append(pa.table({"v": [0]}))
    assert log.snapshot().num_files == 3
    assert sorted(log.to_arrow()["n"].to_pylist()) == [1, 3, 4, 5, 6, 7, 8]


def test_files_that_lack_rows_are_not_committed(tmp_path):
    log = made(tmp_path)
    before = data_files(log)

    def write(txn, bins, files, order):
        first, *others = LocalBins()(txn, bins, files, order)
        return [replace(first, written=(), after=()), *others]

    with pytest.raises(TableError) as caught:
        optimize(lambda: log.start_transaction(log.snapshot()), write, Rearrangement())
    assert caught.value.kind == "DELTA_NUM_RECORDS_MISMATCH"
    assert data_files(log) == before
    assert log.snapshot().version == 5


def test_small_files_of_very_many_rows_are_not_read_far_ahead(tmp_path, monkeypatch):
    """A file of a few kilobytes can hold any number of rows that are alike."""
    log = DeltaLog.for_path(str(tmp_path))
    for number in range(20):
        alike = pa.table({"x": pa.repeat(pa.scalar(number, pa.int64()), 1_000_000)})
        pq.write_table(alike, tmp_path / f"{number}.parquet")
    log.convert()
    read_files, write_rows = row_writer.read_located_batches, RowFiles.write
    num_read, is_far_ahead = [0], Event()

    def read(part, layout):
        for batch, positions in read_files(part, layout):
            num_read[0] += batch.num_rows
            if num_read[0] > 6_000_000:
                is_far_ahead.set()
            yield batch, positions

    def write(files, *given):
        waited.append(waited or is_far_ahead.wait(1))
        write_rows(files, *given)

    waited = []
    monkeypatch.setattr(row_writer, "read_located_batches", read)
    monkeypatch.setattr(RowFiles, "write", write)
    log.optimize()
    assert waited[0] is False
    assert log.count() == 20_000_000


def test_an_error_while_files_are_written_leaves_nothing(tmp_path):
    log = made(tmp_path)
    before = data_files(log)

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_beside(log, fail)
    assert data_files(log) == before
    assert log.snapshot().version == 5


@pytest.mark.again
@settings(deadline=None, max_examples=25)
@given(
    steps=st.lists(st.sets(st.integers(0, 59), max_size=20), max_size=3),
    meanwhile=st.lists(st.sets(st.integers(0, 59), max_size=40), min_size=1, max_size=2),
    tracks=st.booleans(),
)
def test_whatever_is_deleted_before_and_meanwhile_is_gone_and_nothing_else(
    tmp_path_factory, steps, meanwhile, tracks
):
    path = tmp_path_factory.mktemp("optimized")
    log = made(path, {**VECTORS, **(TRACKED if tracks else {})})
    other = DeltaLog.for_path(log.table_path)

    def delete(several):
        for chosen in several:
            if chosen:
                other.delete(f"id IN ({', '.join(map(str, sorted(chosen)))})")

    delete(steps)
    before = tracked(log) if tracks else {}
    run_beside(log, lambda: delete(meanwhile))
    left = [i for i in range(60) if not any(i in chosen for chosen in (*steps, *meanwhile))]
    assert ids(log) == left
    if tracks:
        assert tracked(log) == {i: before[i] for i in left}


@pytest.mark.parametrize("options", [{}, VECTORS])
def test_only_small_files_and_those_with_vectors_are_looked_at(tmp_path, read_in_part, options):
    small = {"optimist.checkpoint.rowGroupRows": "2"}
    log = made(tmp_path, {**options, **small})
    log.append(pa.table({"id": range(60, 2060), "p": [i % 2 for i in range(2000)]}))
    log.checkpoint()
    log.delete("id = 3")
    sizes = [
        size for batch in log.snapshot().iter_files(9) for size in batch.column("size").to_pylist()
    ]
    least = {"spark.databricks.delta.optimize.minFileSize": str(sorted(sizes)[-2])}
    large = DeltaLog.for_path(log.table_path, {**options, **small, **least})
    done = large.optimize()
    assert done.num_considered == len(sizes)
    assert done.removed.num_files == len(sizes) - 2
    assert ids(log) == [number for number in range(2060) if number != 3]
