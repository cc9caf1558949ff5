"""Optimized writes: the rows of a partition go to few files, whichever tasks had them."""

from __future__ import annotations

from collections import Counter

import pytest
from deltalake import DeltaTable as OtherTable
from pyspark.sql import functions as sf

from optimist.core.log.file_table import add_files
from optimist.spark import DeltaTable, read, write, write_stream

SESSION = "spark.databricks.delta.optimizeWrite.enabled"
BIN_SIZE = "spark.databricks.delta.optimizeWrite.binSize"
PROPERTY = "delta.autoOptimize.optimizeWrite"

pytestmark = pytest.mark.usefixtures("plane")


@pytest.fixture
def rows(spark):
    """Of each of 8 tasks, some rows of each of 4 partitions, one of which is null."""
    odd = "CASE WHEN id % 4 = 0 THEN NULL ELSE concat('a b=', id % 4) END"
    return spark.range(0, 800, 1, 8).select("id", sf.expr(odd).alias("P.`q`"))


def files_of(path, log_of, version=None):
    """How many files each partition has."""
    files = add_files(log_of(path).snapshot(version=version).files)
    return sorted(Counter(str(add.partition_values) for add in files).values())


@pytest.mark.again
def test_each_partition_gets_one_file_and_keeps_its_rows(rows, table_path, log_of, rows_of):
    write(rows, table_path, partitionBy="P.`q`", optimizeWrite=True)
    assert files_of(table_path, log_of) == [1, 1, 1, 1]
    assert rows_of(read(rows.sparkSession, table_path)) == rows_of(rows)
    assert OtherTable(table_path).count() == 800
    write(rows, table_path, mode="append")
    assert files_of(table_path, log_of) == [9, 9, 9, 9]


@pytest.mark.again
def test_without_partitions_small_rows_make_one_file(rows, table_path, log_of, rows_of):
    write(rows, table_path, optimizeWrite="true")
    assert files_of(table_path, log_of) == [1]
    assert rows_of(read(rows.sparkSession, table_path)) == rows_of(rows)


@pytest.mark.again
def test_files_are_cut_at_about_the_size_of_a_bin(spark, table_path, log_of, conf):
    conf(BIN_SIZE, "256k")
    text = sf.sha2(sf.col("id").cast("string"), 512).alias("s")
    long = spark.range(0, 20000, 1, 8).select("id", text)
    write(long, table_path, optimizeWrite=True)
    sizes = [add.size for add in add_files(log_of(table_path).snapshot().files)]
    assert 5 < len(sizes) < 40
    assert min(sizes) * 8 > max(sizes)
    assert read(spark, table_path).distinct().count() == 20000


@pytest.mark.again
def test_the_call_is_asked_first_then_the_session_then_the_table(rows, table_path, log_of, conf):
    write(rows, table_path, partitionBy="P.`q`", **{PROPERTY: "true"})
    assert files_of(table_path, log_of) == [1] * 4
    conf(SESSION, "false")
    write(rows, table_path, mode="overwrite")
    assert files_of(table_path, log_of) == [8] * 4
    write(rows, table_path, mode="overwrite", optimizeWrite=True)
    assert files_of(table_path, log_of) == [1] * 4
    conf(SESSION, "true")
    write(rows, table_path, mode="overwrite", optimizeWrite=False)
    assert files_of(table_path, log_of) == [8] * 4


def test_sessions_that_do_not_adapt_plans_balance_rows_all_the_same(rows, table_path, log_of, conf):
    conf("spark.sql.adaptive.enabled", "false")
    conf("spark.sql.adaptive.coalescePartitions.enabled", "false")
    write(rows, table_path, partitionBy="P.`q`", optimizeWrite=True)
    assert files_of(table_path, log_of) == [1] * 4
    assert rows.sparkSession.conf.get("spark.sql.adaptive.enabled") == "false"


@pytest.mark.again
@pytest.mark.parametrize("has_feed", [False, True], ids=["plain", "feed"])
def test_rows_that_commands_change_are_brought_together_too(
    spark, rows, table_path, log_of, rows_of, conf, has_feed
):
    feed = str(has_feed).lower()
    write(rows, table_path, partitionBy="P.`q`", **{"delta.enableChangeDataFeed": feed})
    conf(SESSION, "true")
    table = DeltaTable.forPath(spark, table_path)
    table.update("id % 3 = 0", {"id": "id + 1000"})
    assert files_of(table_path, log_of) == [1] * 4
    source = spark.range(700, 900, 1, 8).select("id", sf.lit("a b=1").alias("P.`q`"))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    changed = [row[0] + (1000 if row[0] % 3 == 0 else 0) for row in rows.collect()]
    kept = [value for value in changed if not 700 <= value < 900]
    added = [value for value in range(700, 900) if value not in changed]
    found = [row.id for row in read(spark, table_path).select("id").collect()]
    assert sorted(found) == sorted(kept + added)
    if has_feed:
        kinds = read(spark, table_path, readChangeFeed=True, startingVersion=2)
        counts = {row[0]: row[1] for row in kinds.groupBy("_change_type").count().collect()}
        gone = len(changed) - len(kept)
        assert counts == {"delete": gone, "insert": len(added)}
    table.optimize().executeCompaction()
    assert sorted(row.id for row in read(spark, table_path).collect()) == sorted(kept + added)


@pytest.mark.again
def test_streams_bring_the_rows_of_a_batch_together(
    spark, rows, table_path, log_of, rows_of, tmp_path
):
    source = str(tmp_path / "source")
    rows.write.parquet(source)
    stream = spark.readStream.schema(rows.schema).parquet(source)
    query = write_stream(
        stream,
        table_path,
        checkpointLocation=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
        partitionBy="P.`q`",
        optimizeWrite=True,
    )
    query.awaitTermination()
    assert files_of(table_path, log_of) == [1] * 4
    assert rows_of(read(spark, table_path)) == rows_of(rows)
