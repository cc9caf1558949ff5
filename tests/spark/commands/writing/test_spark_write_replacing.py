"""Overwriting a part of a table: by `replaceWhere`, or the partitions that are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from optimist.core.errors import ConcurrentAppendException, SchemaError
from optimist.spark import DeltaTable, read, write
from read_back import data_directories, ids


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_replace_where_on_a_partition_replaces_only_it(spark, numbers, table, log_of):
    rows = numbers.where("id = 1").withColumn("id", sf.lit(1000).cast("long"))
    write(rows, table, mode="overwrite", replaceWhere="p = 1")
    assert ids(read(spark, table)) == [*(i for i in range(20) if i % 4 != 1), 1000]
    info = log_of(table).history(1)[0].info
    assert info.operation_parameters["predicate"] == "p = 1"
    counted = ("numDeletedRows", "numCopiedRows", "numAddedChangeFiles", "numOutputRows")
    assert [info.operation_metrics[name] for name in counted] == ["5", "0", "0", "1"]


@pytest.mark.usefixtures("plane")
def test_replace_where_refuses_rows_that_it_would_not_replace(spark, numbers, table):
    before = data_directories(table)
    with pytest.raises(SchemaError) as caught:
        write(numbers.where("p = 2"), table, mode="overwrite", replaceWhere="p = 1")
    assert caught.value.kind == "DELTA_REPLACE_WHERE_MISMATCH"
    assert read(spark, table).count() == 20
    assert data_directories(table) == before


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_replace_where_on_data_columns_replaces_matching_rows_in_one_commit(
    spark, numbers, table, log_of
):
    rows = numbers.where("id = 15").withColumn("name", sf.lit("new"))
    result = write(rows, table, mode="overwrite", replaceWhere="id >= 10 AND p = 3")
    assert ids(read(spark, table)) == [i for i in range(20) if i not in (11, 19)]
    assert read(spark, table).where("name = 'new'").count() == 1
    assert result.version == 1
    metrics = log_of(table).history(1)[0].info.operation_metrics
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("3", "2")


def test_replace_where_that_does_not_resolve_is_refused(numbers, table):
    with pytest.raises(Exception, match="month"):
        write(numbers, table, mode="overwrite", replaceWhere="month = 1")


def test_dynamic_overwrite_replaces_the_partitions_that_are_written(spark, numbers, table):
    rows = numbers.where("id IN (1, 2)")
    write(rows, table, mode="overwrite", partitionOverwriteMode="dynamic")
    assert ids(read(spark, table)) == sorted([1, 2, *(i for i in range(20) if i % 4 in (0, 3))])


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_dynamic_overwrite_with_the_null_partition_replaces_it(spark, table_path):
    frame = spark.createDataFrame([(1, None), (2, "a"), (3, "b")], "id long, p string")
    write(frame, table_path, partitionBy="p")
    changed = spark.createDataFrame([(10, ""), (20, "a")], "id long, p string")
    write(changed, table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert ids(read(spark, table_path)) == [3, 10, 20]


@pytest.mark.again
def test_dynamic_overwrite_of_a_table_without_partitions_replaces_all(spark, table_path):
    write(spark.range(5), table_path)
    write(spark.range(1), table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert ids(read(spark, table_path)) == [0]


@pytest.mark.again
@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"replaceWhere": "id = 1"}, {"predicate": "id = 1"}),
        ({"replaceWhere": "nope = 1"}, {"predicate": "nope = 1"}),
        (
            {"replaceWhere": "id = 1", "overwriteSchema": True},
            {"predicate": "id = 1", "canOverwriteSchema": True},
        ),
        ({"replaceOn": "nope = 1"}, {"replaceOnCond": "nope = 1"}),
        ({"replaceUsing": "id"}, {"replaceUsingCols": "(id)"}),
    ],
    ids=str,
)
def test_an_append_replaces_nothing_and_its_history_tells_what_was_asked_for(
    spark, table_path, log_of, option, told
):
    write(spark.range(3), table_path)
    write(spark.range(1, 3), table_path, mode="append", **option)
    assert sorted(row.id for row in read(spark, table_path).collect()) == [0, 1, 1, 2, 2]
    parameters = log_of(table_path).history()[0].info.operation_parameters
    assert told.items() <= parameters.items()
    assert parameters["mode"] == "Append"


def test_overwrite_schema_beside_replace_where_changes_no_schema(spark, table_path, log_of):
    write(spark.sql("SELECT 1L AS id, 'a' AS s UNION ALL SELECT 2L, 'b'"), table_path)
    both = {"mode": "overwrite", "replaceWhere": "id = 2", "overwriteSchema": True}
    write(spark.sql("SELECT 2L AS id, 'new' AS s"), table_path, **both)
    assert sorted(read(spark, table_path).collect()) == [(1, "a"), (2, "new")]
    assert log_of(table_path).history()[0].info.operation_parameters["canOverwriteSchema"] is True
    wider = spark.sql("SELECT 2L AS id, 'newer' AS s, 1 AS more")
    for rows, more in ((wider, {}), (spark.range(2, 3), {"partitionBy": "id"})):
        with pytest.raises(SchemaError):
            write(rows, table_path, **both, **more)
    assert read(spark, table_path).columns == ["id", "s"]
    write(wider, table_path, **both, mergeSchema=True)
    assert sorted(read(spark, table_path).collect()) == [(1, "a", None), (2, "newer", 1)]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize(
    "by", [{"replaceOn": "t.id >= 0", "targetAlias": "t"}, {"replaceUsing": "p"}], ids=str
)
def test_rows_of_the_table_itself_that_are_stored_first_conflict_with_later_ones(
    spark, numbers, table, by
):
    own = read(spark, table).where("p = 1").alias("s")
    write(numbers.where("id = 9").withColumn("id", sf.lit(1000).cast("long")), table, mode="append")
    with pytest.raises(ConcurrentAppendException):
        write(own, table, mode="overwrite", **by)
    assert ids(read(spark, table)) == [*range(20), 1000]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("text", ["true", "1 = 1 OR id = 3"])
def test_a_condition_that_is_always_true_reads_no_row(spark, numbers, table, text):
    for path in data_directories(table):
        for file in (Path(table) / path).rglob("*.parquet"):
            file.unlink()
    write(numbers.where("id = 1"), table, mode="overwrite", replaceWhere=text)
    assert ids(read(spark, table)) == [1]
    DeltaTable.forPath(spark, table).delete(text)
    assert ids(read(spark, table)) == []
