"""Files with deletion vectors on the native plane, and the set of their deleted rows."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.sql import functions as sf

from grown_tables import ID, NAME, GrownTable, numbers
from hand_made_tables import field, inline_vector
from optimist.core import DeltaLog
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import read_deletion_vector
from optimist.core.errors import TableError
from optimist.core.log.file_table import add_files, files_table
from optimist.spark import DeltaTable, read, write
from optimist.spark.native.file_selection import file_selections
from optimist.spark.native.frame import scan_frame
from optimist.spark.native.row_sets import DenseRows, SparseRows, is_sparse
from optimist.spark.session.jvm import Jvm
from read_back import ids

_MIN_FILES = 100  # below this, no files are told apart
DELETED = {0, 1, 63, 64, 999, 1000, 2500, 4999}


@pytest.fixture
def holes(tmp_path):
    """Five row groups with deleted rows, a file without, and one whose last rows are gone."""
    table = GrownTable(tmp_path / "holes", [ID, NAME], enableDeletionVectors="true")
    table.add("a", numbers(0, 5000), deleted=DELETED)
    table.add("b", numbers(5000, 100))
    table.add("c", numbers(6000, 100), deleted=set(range(90, 100)))
    return table


LIVE = sorted((set(range(5000)) - DELETED) | set(range(5000, 5100)) | set(range(6000, 6090)))


def test_deleted_rows_are_gone_and_all_others_are_there(spark, holes):
    assert ids(read(spark, holes.path)) == LIVE


@pytest.mark.parametrize("kind", [DenseRows, SparseRows])
def test_a_query_may_be_serialised_while_another_adds_deleted_rows(spark, kind):
    jvm, width = Jvm.of(spark), 1024
    rows = kind(jvm)
    rows.add([BitMap64(range(100 * width))], 0, [100 * width])
    copied = rows.contains(jvm.tree(sf.lit(0).cast(rows.position_type)))

    def add_all():
        for at in range(100, 200):
            rows.add([BitMap64(range(width))], at * width, [width])

    with ThreadPoolExecutor(1) as pool:
        adding, times = pool.submit(add_all), 0
        while times < 3 or not adding.done():
            jvm.root.org.apache.commons.lang3.SerializationUtils.clone(copied)
            times += 1
        adding.result()


@pytest.mark.again
@pytest.mark.parametrize("condition", ["id >= 999", "id % 64 = 0", "name = 'n64'", "id IN (63, 5)"])
def test_filters_over_files_with_vectors_leave_the_right_rows(spark, holes, condition):
    plain = spark.range(7000).withColumn("name", sf.concat(sf.lit("n"), "id"))
    wanted = sorted(set(ids(plain.where(condition))) & set(LIVE))
    assert ids(read(spark, holes.path).where(condition)) == wanted


@pytest.mark.again
def test_files_with_vectors_are_split_and_read_by_rows_alike(spark, holes, conf):
    conf("spark.sql.files.maxPartitionBytes", "8000")
    conf("spark.sql.files.openCostInBytes", "1")
    assert read(spark, holes.path).rdd.getNumPartitions() > 5
    assert ids(read(spark, holes.path)) == LIVE
    conf("spark.sql.parquet.enableVectorizedReader", "false")
    conf("spark.sql.codegen.wholeStage", "false")
    assert ids(read(spark, holes.path)) == LIVE


@pytest.mark.again
def test_one_frame_serves_query_after_query_with_the_vectors_it_needs(spark, holes):
    frame = read(spark, holes.path)
    assert frame.where("id >= 6000").count() == 90
    assert frame.where("id < 100").count() == 96
    assert frame.count() == len(LIVE)
    assert frame.alias("x").join(frame.alias("y"), "id").count() == len(LIVE)
    assert frame.where("id = 0").unionAll(frame.where("id = 2")).count() == 1


def test_only_files_with_a_vector_pay_for_it(spark, holes, capsys):
    frame = read(spark, holes.path)
    assert sorted(each.num_files for each in file_selections(frame)) == [1, 2]
    frame.explain()
    assert capsys.readouterr().out.count("BitSet@") == 1


@pytest.mark.again
def test_a_cached_frame_with_vectors_serves_another_of_the_same_version(spark, holes):
    cached = read(spark, holes.path).cache()
    assert cached.count() == len(LIVE)
    again = read(spark, holes.path).where("id < 10")
    assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
    assert again.count() == 8
    cached.unpersist(blocking=True)


@pytest.mark.again
def test_columns_and_metadata_stay_as_they_are_without_vectors(spark, holes):
    frame = read(spark, holes.path)
    assert frame.columns == ["id", "name"]
    found = frame.select("id", "_metadata.file_name", "_metadata.row_index").where("id = 6002")
    assert [tuple(row) for row in found.collect()] == [(6002, "c.parquet", 2)]
    assert frame.groupBy("_metadata.file_name").count().count() == 3


@pytest.mark.again
def test_partitions_are_pruned_below_vectors(spark, tmp_path):
    table = GrownTable(
        tmp_path / "parts",
        [ID, NAME, field("p", "date")],
        partitions=["p"],
        enableDeletionVectors="true",
    )
    for day in (1, 2, 3):
        table.add(f"f{day}", numbers(10 * day, 10), deleted={day}, values={"p": f"1500-01-0{day}"})
    table.add("g", numbers(90, 10), values={"p": None})
    frame = read(spark, table.path).where("p = '1500-01-02'")
    assert sum(each.num_files for each in file_selections(frame)) == 1
    assert ids(frame) == [20, 21, 23, 24, 25, 26, 27, 28, 29]
    assert ids(read(spark, table.path).where("p IS NULL")) == list(range(90, 100))


@pytest.mark.again
def test_a_vector_is_read_only_when_its_file_is(spark, holes):
    gone = replace(
        inline_vector({1}), storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", offset=1
    )
    holes.add(
        "d",
        numbers(9000, 10),
        vector=gone,
        stats={"minValues": {"id": 9000}, "maxValues": {"id": 9009}, "nullCount": {"id": 0}},
    )
    frame = read(spark, holes.path)
    assert frame.where("id = 50").count() == 1
    with pytest.raises(Exception, match="deletion_vector_"):
        frame.count()
    with pytest.raises(TableError) as caught:
        write(frame, holes.path + "-copy")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"


def test_a_damaged_vector_is_an_error_and_never_a_wrong_answer(spark, holes):
    holes.add("d", numbers(9000, 10), vector=replace(inline_vector({1}), cardinality=2))
    with pytest.raises(Exception, match="DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"):
        read(spark, holes.path).collect()


def test_a_vector_that_names_rows_past_the_end_of_its_file_is_refused(spark, holes, every_plane):
    holes.add("d", numbers(9000, 10), vector=inline_vector({1, 10}))
    with pytest.raises(Exception, match="OPTIMIST_MALFORMED_DELETION_VECTOR"):
        read(spark, holes.path).collect()
    table, before = DeltaTable.forPath(spark, holes.path), DeltaLog.for_path(holes.path).snapshot()
    with pytest.raises(Exception, match="OPTIMIST_MALFORMED_DELETION_VECTOR"):
        table.delete("id = 9003")
    assert DeltaLog.for_path(holes.path).snapshot().version == before.version


def metrics_of(table):
    return DeltaLog.for_path(table.path).history(1)[0].info.operation_metrics


def last_actions(table, key):
    name = f"{table.version:020d}.json"
    lines = (table.root / "_delta_log" / name).read_text().splitlines()
    return [action[key] for action in map(json.loads, lines) if key in action]


@pytest.mark.again
@pytest.mark.parametrize("by_vectors", ["true", "false"])
def test_delete_takes_the_rows_of_a_file_that_has_a_vector(spark, holes, conf, by_vectors):
    conf("spark.databricks.delta.delete.deletionVectors.persistent", by_vectors)
    DeltaTable.forPath(spark, holes.path).delete("id BETWEEN 2 AND 10")
    wanted = [number for number in LIVE if not 2 <= number <= 10]
    assert ids(read(spark, holes.path)) == wanted
    (removed,), (added,) = last_actions(holes, "remove"), last_actions(holes, "add")
    assert removed["path"] == "a.parquet"
    assert removed["deletionVector"]["cardinality"] == len(DELETED)
    assert metrics_of(holes)["numDeletionVectorsRemoved"] == "1"
    if by_vectors == "true":
        assert added["path"] == "a.parquet"
        assert added["deletionVector"]["cardinality"] == len(DELETED) + 9
    else:
        assert "deletionVector" not in added


def test_delete_of_rows_that_are_gone_already_changes_nothing(spark, holes):
    DeltaTable.forPath(spark, holes.path).delete("id = 0")
    assert DeltaLog.for_path(holes.path).snapshot().version == holes.version - 1


@pytest.mark.again
def test_update_does_not_bring_deleted_rows_back(spark, holes):
    DeltaTable.forPath(spark, holes.path).update("id % 2 = 0", {"name": "'even'"})
    frame = read(spark, holes.path)
    assert ids(frame) == LIVE
    assert frame.where("name = 'even'").count() == sum(1 for i in LIVE if i % 2 == 0)
    assert metrics_of(holes)["numDeletionVectorsRemoved"] == "2"


def test_commands_find_rows_of_an_aliased_table_with_vectors(spark, holes):
    table = DeltaTable.forPath(spark, holes.path).alias("t")
    table.delete("t.id >= 5000")
    assert ids(read(spark, holes.path)) == [i for i in LIVE if i < 5000]


def test_a_few_deleted_rows_in_very_many_files_are_gone(spark, tmp_path, log_of):
    table = GrownTable(tmp_path / "many", [ID])
    table.add("a", numbers(0, 70_000).select(["id"]), deleted={5, 69_999})
    snapshot = log_of(table.path).snapshot()
    (add,) = add_files(snapshot.files)
    copies = []
    for number in range(_MIN_FILES):
        copy = table.root / f"copy-{number}.parquet"
        copy.hardlink_to(table.root / "a.parquet")
        copies.append(replace(add, path=copy.name))
    frame = scan_frame(spark, snapshot, files_table(copies))
    assert " as int)" not in frame._jdf.queryExecution().analyzed().toString()
    counted = frame.agg(sf.count("*"), sf.count_if(sf.expr("id IN (5, 69999)"))).first()
    assert tuple(counted) == (_MIN_FILES * 69_998, 0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [({5, 69_999}, True), (set(range(0, 70_000, 100)), False), (set(range(60_000)), False)],
    ids=["two", "one in a hundred", "a long run"],
)
def test_vectors_of_few_rows_are_told_from_others_by_their_description(rows, expected):
    vector = inline_vector(rows)
    row = {"sizeInBytes": vector.size_in_bytes, "cardinality": vector.cardinality}
    assert is_sparse(pa.array([row] * _MIN_FILES)).to_pylist() == [expected] * _MIN_FILES
    assert not any(is_sparse(pa.array([row] * (_MIN_FILES - 1))).to_pylist())


def test_rows_from_far_beyond_what_fits_are_refused_and_not_forgotten(spark, holes):
    holes.add("d", numbers(9000, 10), deleted={2**40}, stats={"numRecords": 2**41})
    with pytest.raises(Exception, match="OPTIMIST_TOO_MANY_ROWS_WITH_VECTORS"):
        read(spark, holes.path).collect()


def test_vectors_that_are_inline_here_are_what_the_reader_takes_them_for():
    assert set(read_deletion_vector(inline_vector({3, 2**33}), DataPaths.of("/nowhere"))) == {
        3,
        2**33,
    }
