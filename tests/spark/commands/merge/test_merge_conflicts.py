"""What a MERGE depends on, when others commit meanwhile."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import (
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
)
from optimist.spark import DeltaTable, read
from small_merges import numbers, target, upsert


def only_insert(spark, path, source):
    return target(spark, path).merge(source, "t.id = s.id").whenNotMatchedInsertAll()


@pytest.mark.again
@pytest.mark.usefixtures("every_plane")
@pytest.mark.parametrize("merge", [upsert, only_insert])
def test_a_merge_conflicts_with_rows_that_have_its_keys_and_no_others(
    spark, table, source, meeting, merge
):
    log = DeltaLog.for_path(table, {})
    meeting(lambda: log.append(numbers(500, 510)))
    merge(spark, table, source).execute()
    assert log.snapshot().version == 4
    late = source.withColumn("id", sf.col("id") + 500).alias("s")
    meeting(lambda: log.append(numbers(599, 600)))
    with pytest.raises(ConcurrentAppendException):
        merge(spark, table, late).execute()
    assert log.snapshot().version == 5


@pytest.mark.again
@pytest.mark.usefixtures("every_plane")
def test_a_merge_by_source_depends_on_every_row(spark, table, source, meeting):
    log = DeltaLog.for_path(table, {})
    meeting(lambda: log.append(numbers(500, 510)))
    builder = target(spark, table).merge(source, "t.id = s.id")
    with pytest.raises(ConcurrentAppendException):
        builder.whenNotMatchedBySourceDelete("t.id = 3").execute()


@pytest.mark.again
@pytest.mark.usefixtures("every_plane")
def test_rows_made_of_the_tables_own_depend_on_those(spark, table, meeting):
    made = read(spark, table).where("id < 2").selectExpr("id + 1000 AS id", "v").alias("s")
    meeting(lambda: DeltaTable.forPath(spark, table).delete("id = 1"))
    with pytest.raises(DeltaConcurrentModificationException):
        upsert(spark, table, made).execute()
    assert read(spark, table).where("id > 1000").count() == 0


@pytest.mark.again
def test_a_merge_of_a_table_with_itself_depends_on_what_it_read(spark, table):
    stale = read(spark, table).where("id < 2").selectExpr("id", "'old' AS v").alias("s")
    target(spark, table).update("id = 29", {"v": "'new'"})
    with pytest.raises(ConcurrentAppendException):
        upsert(spark, table, stale).execute()
    pinned = read(spark, table, versionAsOf=0).where("id < 2").selectExpr("id", "'old' AS v")
    upsert(spark, table, pinned.alias("s")).execute()
    newest = read(spark, table).where("v = 'old'").selectExpr("id + 100 AS id", "v").alias("s")
    upsert(spark, table, newest).execute()
    assert sorted(row.id for row in read(spark, table).where("v = 'old'").collect()) == [
        *(0, 1, 100, 101),
    ]
