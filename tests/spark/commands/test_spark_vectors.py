"""DELETE and UPDATE by deletion vectors, on both planes, against a model in memory."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as OtherTable
from deltalake import QueryBuilder
from pyspark.sql import functions as sf

from optimist.core.commands.marked_files import MarkedFiles
from optimist.core.errors import ConcurrentDeleteReadException
from optimist.core.log.file_table import add_files
from optimist.spark import DeltaTable, read, write
from read_back import ids
from sixty_rows import ROWS, ids_for_which, write_sixty_rows
from table_contents import read_locally

PLANE = "spark.optimist.spark.plane"
DEFAULTS = "spark.databricks.delta.properties.defaults."
CONDITIONS = ["id < 25", "p = 1 OR x IS NULL", "P = 2 AND t.id < 40"]
UNDECIDED = "length(s) + id > 40"  # not one that our predicates evaluate


@pytest.fixture
def with_vectors(conf):
    conf(f"{DEFAULTS}enableDeletionVectors", "true")


@pytest.fixture
def table(spark, copied, plane, with_vectors):
    """Sixty rows, a file for each partition and each half of them."""
    return copied("sixty rows with vectors", partial(write_sixty_rows, spark))


@pytest.fixture(scope="module")
def model(spark):
    return ids_for_which(spark, [*CONDITIONS, UNDECIDED])


def metrics_of(log):
    return log.history(1)[0].info.operation_metrics


def chosen(metrics, *names):
    return tuple(int(metrics[name]) for name in names)


VECTORS = tuple(f"numDeletionVectors{what}" for what in ("Added", "Removed", "Updated"))


def data_files(path):
    return {str(file) for file in Path(path).rglob("*.parquet") if "_delta_log" not in str(file)}


@pytest.mark.again
@pytest.mark.parametrize("condition", [*CONDITIONS, UNDECIDED])
def test_commands_agree_with_the_model_and_copy_no_row(
    spark, table, model, condition, rows_of, log_of
):
    hit = model[condition]
    log, target = log_of(table), DeltaTable.forPath(spark, table).alias("t")
    target.update(condition, {"s": sf.concat(sf.lit("u"), "s"), "p": "coalesce(p, 0) + 1"})
    expected = sorted(
        ((i, (p or 0) + 1, x, f"u{s}") if i in hit else (i, p, x, s) for i, p, x, s in ROWS),
        key=repr,
    )
    assert rows_of(read(spark, table)) == expected
    assert chosen(metrics_of(log), "numUpdatedRows", "numCopiedRows") == (len(hit), 0)
    before = data_files(table)
    target.delete("id % 2 = 0")
    left = [row for row in expected if row[0] % 2]
    assert rows_of(read(spark, table)) == left
    assert chosen(metrics_of(log), "numDeletedRows", "numCopiedRows") == (30, 0)
    assert data_files(table) == before
    assert sorted(read_locally(table)["id"].to_pylist()) == sorted(row[0] for row in left)
    engine = QueryBuilder().register("t", OtherTable(table))
    found = pa.table(engine.execute("SELECT id, s FROM t ORDER BY id").read_all())
    assert found["s"].to_pylist() == [s for _, _, _, s in sorted(left)]


@pytest.mark.again
def test_each_vector_holds_the_one_before_and_a_file_without_rows_goes(spark, table, log_of):
    log, target = log_of(table), DeltaTable.forPath(spark, table)
    num_files = log.snapshot().num_files
    target.delete("id IN (0, 3)")
    assert chosen(metrics_of(log), *VECTORS) == (1, 0, 0)
    target.delete("id IN (0, 3, 9, 30)")
    assert chosen(metrics_of(log), "numDeletedRows", *VECTORS) == (2, 2, 1, 1)
    assert target.delete("id = 9") is None
    assert log.snapshot().version == 3
    target.delete("id < 30 AND (p = 0 OR id = 1)")
    assert chosen(metrics_of(log), "numRemovedFiles", *VECTORS) == (1, 1, 1, 0)
    assert log.snapshot().num_files == num_files - 1
    gone = {0, 3, 9, 30, 1, *(i for i, p, _, _ in ROWS if p == 0 and i < 30)}
    assert ids(read(spark, table)) == [i for i in range(60) if i not in gone]
    target.update("id >= 30 AND p = 0", {"s": "'all'"})
    assert chosen(metrics_of(log), "numRemovedFiles", "numAddedFiles", *VECTORS) == (1, 1, 0, 1, 0)
    target.delete("100 / (id - 1) = 100")  # for the row that is deleted it would fail
    assert chosen(metrics_of(log), "numDeletedRows", *VECTORS) == (1, 1, 0, 0)


@pytest.mark.again
def test_conditions_on_partitions_alone_and_none_remove_whole_files(spark, table, log_of):
    log, target = log_of(table), DeltaTable.forPath(spark, table)
    target.delete("p = 1")
    assert chosen(metrics_of(log), "numRemovedFiles", *VECTORS) == (2, 0, 0, 0)
    target.update("p = 2", {"s": "'x'"})
    assert chosen(metrics_of(log), "numRemovedFiles", *VECTORS) == (2, 0, 0, 0)
    target.delete()
    assert log.snapshot().num_files == 0


@pytest.mark.again
@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_vectors_can_be_switched_off_for_a_command(spark, table, conf, log_of):
    log = log_of(table)
    DeltaTable.forPath(spark, table).delete("id = 1")
    conf("spark.databricks.delta.delete.deletionVectors.persistent", "false")
    DeltaTable.forPath(spark, table).delete("id = 4")
    assert chosen(metrics_of(log), "numRemovedFiles", *VECTORS) == (1, 0, 1, 0)
    conf("spark.databricks.delta.update.deletionVectors.persistent", "false")
    DeltaTable.forPath(spark, table).update("id = 7", {"x": "7"})
    assert chosen(metrics_of(log), "numRemovedFiles", *VECTORS) == (1, 0, 0, 0)
    assert ids(read(spark, table)) == [i for i in range(60) if i not in (1, 4)]


@pytest.mark.again
def test_the_feed_tells_what_vectors_deleted_and_rows_keep_their_ids(
    spark, table_path, plane, with_vectors, conf, log_of
):
    conf(f"{DEFAULTS}enableChangeDataFeed", "true")
    conf(f"{DEFAULTS}enableRowTracking", "true")
    write(spark.range(10).coalesce(1), table_path)
    target = DeltaTable.forPath(spark, table_path)
    target.delete("id IN (2, 5)")
    target.delete("id = 7")
    new = spark.range(100, 102).coalesce(1)
    write(new, table_path, mode="overwrite", replaceWhere="id IN (8, 9) OR id >= 100")
    feed = read(spark, table_path, readChangeFeed=True, startingVersion=1)
    changes = feed.select("_commit_version", "_change_type", "id").collect()
    assert sorted(map(tuple, changes)) == [
        *((1, "delete", i) for i in (2, 5)),
        (2, "delete", 7),
        *((3, "delete", i) for i in (8, 9)),
        *((3, "insert", i) for i in (100, 101)),
    ]
    rows = log_of(table_path).to_arrow("id < 100", ["id", "_metadata.row_id"]).to_pylist()
    assert [row["id"] for row in rows] == [row["_metadata.row_id"] for row in rows]
    assert len(list(Path(table_path).glob("data-*"))) == 2
    target.update("id = 3", {"id": "30"})
    feed = read(spark, table_path, readChangeFeed=True, startingVersion=4)
    assert sorted(tuple(row) for row in feed.select("_change_type", "id").collect()) == [
        ("update_postimage", 30),
        ("update_preimage", 3),
    ]
    moved = log_of(table_path).to_arrow("id = 30", ["_metadata.row_id"])
    assert moved.to_pydict() == {"_metadata.row_id": [3]}


@pytest.mark.again
def test_rows_of_large_files_are_found_in_every_part_of_them(
    spark, table_path, plane, with_vectors, conf
):
    conf(PLANE, "native")
    hadoop = spark._jsc.hadoopConfiguration()
    hadoop.set("parquet.block.size", "100000")
    rows = spark.range(60_000).coalesce(1)
    write(rows, table_path)
    hadoop.unset("parquet.block.size")
    (file,) = data_files(table_path)
    assert pq.read_metadata(file).num_row_groups > 3
    conf(PLANE, plane)
    conf("spark.sql.files.maxPartitionBytes", "100000")
    conf("spark.sql.files.openCostInBytes", "0")
    target = DeltaTable.forPath(spark, table_path)
    target.delete("id % 1000 = 1 OR id BETWEEN 32700 AND 32800 OR id > 59900")
    target.update("hash(id) % 3 = 0 AND id < 40000", {"id": "-id"})
    plain = rows.where("NOT (id % 1000 = 1 OR id BETWEEN 32700 AND 32800 OR id > 59900)")
    expected = plain.selectExpr("IF(hash(id) % 3 = 0 AND id < 40000, -id, id) AS id")
    sums = [sf.count("*"), sf.sum("id"), sf.sum(sf.hash("id"))]
    assert target.toDF().agg(*sums).collect() == expected.agg(*sums).collect()


@pytest.mark.again
@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_an_update_writes_the_rows_that_it_marks_whatever_the_condition_says_by_then(
    spark, table, monkeypatch, tmp_path
):
    """A condition that asks for the time finds more rows in a second pass."""
    answer = tmp_path / "answer"
    answer.write_text("10")
    place, mark = str(answer), MarkedFiles.write

    def is_below(number):
        return number < int(Path(place).read_text())

    def mark_late(*arguments):
        answer.write_text("40")
        return mark(*arguments)

    monkeypatch.setattr(MarkedFiles, "write", mark_late)
    condition = sf.udf(is_below, "boolean")("id")
    DeltaTable.forPath(spark, table).update(condition, {"s": "'hit'"})
    frame = read(spark, table)
    assert ids(frame.where("s = 'hit'")) == list(range(10))
    assert ids(frame) == list(range(60))


@pytest.fixture
def meeting(monkeypatch):
    """Run something between the marking of a command's rows and its commit, once."""
    mark = MarkedFiles.write

    def arrange(between):
        pending = [between]

        def mark_then_meet(*arguments):
            marked = mark(*arguments)
            if pending:
                pending.pop()()
            return marked

        monkeypatch.setattr(MarkedFiles, "write", mark_then_meet)

    return arrange


@pytest.mark.again
@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_vectors_conflict_by_row_and_not_by_file(spark, table, meeting, log_of):
    target = DeltaTable.forPath(spark, table)
    meeting(lambda: target.delete("id = 1"))
    target.update("id = 4", {"x": "444"})
    assert [row.x for row in read(spark, table).where("id = 4").collect()] == [444]
    meeting(lambda: target.update("id = 7", {"id": "700"}))
    with pytest.raises(ConcurrentDeleteReadException, match="1 rows of 1 files"):
        target.delete("id = 7")
    target.update("id = 700", {"id": "7"})
    meeting(lambda: target.delete("id = 4 AND p = 1"))
    target.delete("id = 2 AND p = 2")
    assert ids(read(spark, table)) == [i for i in range(60) if i not in (1, 2, 4)]
    files = add_files(log_of(table).snapshot().files)
    wide = [file for file in files if json.loads(file.stats)["tightBounds"] is False]
    assert {file.path for file in wide} == {file.path for file in files if file.deletion_vector}
    assert len(wide) == 2
