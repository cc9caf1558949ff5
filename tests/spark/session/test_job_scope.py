"""What stops the jobs of a session, a group or a tag stops those of our calls."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark import TaskContext
from pyspark.sql import functions as sf

from optimist.spark import DeltaTable, read, write
from optimist.spark.session.job_scope import described, in_scope_of_caller, stopped_with

POOL = "spark.scheduler.pool"


@pytest.fixture
def held(tmp_path):
    """A function for rows that waits, what waits until a task has called it, what lets it go."""
    begun, go = tmp_path / "begun", tmp_path / "go"
    os.mkfifo(begun)
    os.mkfifo(go)

    def wait(value):
        with begun.open("w"):
            pass
        with go.open():
            return value

    def until_begun():
        with begun.open():
            pass

    def release():
        os.close(os.open(go, os.O_RDWR | os.O_NONBLOCK))

    return sf.udf(wait, "long"), until_begun, release


@pytest.mark.again
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("optimizes", [False, True])
def test_a_write_is_stopped_with_its_session(spark, held, table_path, optimizes):
    write(spark.range(3), table_path)
    wait, until_begun, release = held
    rows = spark.range(0, 1, 1, 1).select(wait("id").alias("id"))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write, rows, table_path, mode="append", optimizeWrite=optimizes)
        until_begun()
        stopped = spark.interruptAll()
        release()
        failed = writing.exception()
    assert stopped
    assert "cancelled" in str(failed)
    assert read(spark, table_path).count() == 3


def test_optimize_by_jobs_has_the_group_and_the_tags_of_its_caller(spark, jobs, table_path, conf):
    conf("spark.optimist.spark.driverShortcut.maxBytes", "0")
    rows = spark.range(0, 8, 1, 2).selectExpr("id", "id % 2 AS p")
    write(rows, table_path, partitionBy="p")
    spark.addTag("of the test")
    tag = spark._jsparkSession.managedJobTags().get().get("of the test").get()
    before = jobs()
    DeltaTable.forPath(spark, table_path).optimize().executeCompaction()
    spark.removeTag("of the test")
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    assert len(tracker.getJobIdsForTag(tag)) == 2
    assert jobs() - before >= 2


def test_work_of_another_thread_has_the_properties_of_its_caller_and_leaves_none(spark):
    context = spark.sparkContext
    context.setLocalProperty(POOL, "of the caller")
    found = in_scope_of_caller(spark, lambda key: (context.getLocalProperty(key), tags(context)))
    context.setLocalProperty(POOL, None)
    own = str(spark._jsparkSession.sessionJobTag())
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(found, POOL).result() == ("of the caller", {own})
        assert pool.submit(tags, context).result() == set()


def test_tags_that_were_there_before_stay(spark):
    context = spark.sparkContext
    own = str(spark._jsparkSession.sessionJobTag())
    context.addJobTag(own)
    with stopped_with(spark), stopped_with(spark):
        assert tags(context) == {own}
    assert tags(context) == {own}
    context.removeJobTag(own)
    with stopped_with(spark):
        assert tags(context) == {own}
    assert tags(context) == set()


def tags(context):
    return set(context.getJobTags())


DESCRIPTION = "spark.job.description"


@pytest.fixture
def descriptions(spark):
    """The descriptions of the jobs that are started in the block, as a task sees them."""
    context = spark.sparkContext
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, None)
    seen = sf.udf(lambda _: TaskContext.get().getLocalProperty(DESCRIPTION) or "", "string")
    yield seen
    assert context.getLocalProperty(DESCRIPTION) is None
    context.setLocalProperty(DESCRIPTION, before)


def test_a_job_says_which_command_of_which_table_it_serves(spark, descriptions, table_path):
    rows = spark.range(0, 2, 1, 1)
    write(rows.select("id", descriptions("id").alias("d")), table_path)
    found = {row.d for row in read(spark, table_path).collect()}
    assert found == {f"WRITE: {table_path}"}


@pytest.mark.again
def test_the_jobs_of_each_command_for_rows_say_what_they_serve(
    spark, descriptions, table_path, conf
):
    conf("spark.optimist.spark.driverShortcut.maxBytes", "0")
    write(spark.range(0, 2, 1, 1).selectExpr("id", "'' AS d"), table_path)
    table = DeltaTable.forPath(spark, table_path)
    table.update("id = 1", {"d": descriptions("id")})
    found = {row.id: row.d for row in read(spark, table_path).collect()}
    assert found == {0: "", 1: f"UPDATE: {table_path}"}
    table.delete(descriptions("id") == f"DELETE: {table_path}")
    assert read(spark, table_path).count() == 0
    rows = spark.range(0, 2, 1, 1).alias("s")
    merge = table.alias("t").merge(rows, "t.id = s.id")
    merge.whenNotMatchedInsert(values={"id": "s.id", "d": descriptions(sf.col("s.id"))}).execute()
    assert {row.d for row in read(spark, table_path).collect()} == {f"MERGE: {table_path}"}


def test_a_description_of_the_callers_own_stays(spark, descriptions):
    spark.sparkContext.setLocalProperty(DESCRIPTION, "mine")
    try:
        with described(spark, "WRITE", "/t"):
            assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "mine"
        assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "mine"
    finally:
        spark.sparkContext.setLocalProperty(DESCRIPTION, None)


def test_a_description_shows_no_secret_and_ends_with_an_error(spark, descriptions):
    with pytest.raises(ValueError), described(spark, "WRITE", "s3://me:hidden@bucket/t"):
        assert "hidden" not in spark.sparkContext.getLocalProperty(DESCRIPTION)
        raise ValueError
