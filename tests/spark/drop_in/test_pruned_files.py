"""What Spark is told of a table's size once a query's filters are known, and what follows."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.spark import file_selections
from optimist.spark.native.index import TableFileIndex

THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
ODD = ["a b", "100%", "ä/ö", "x=y", None]


@pytest.fixture(params=["plain", "mapped", "vectors"])
def months(enabled, tmp_path, request):
    """Twenty rows in five partitions, two files in each; of every third file a row is deleted."""
    path = str(tmp_path / "months")
    properties = {
        "plain": {},
        "mapped": {"delta.columnMapping.mode": "name"},
        "vectors": {"delta.enableDeletionVectors": "true"},
    }[request.param]
    log = DeltaLog.for_path(path)
    writer = enabled.sql("SELECT id, id % 5 AS p, string(id) AS s FROM range(0, 20, 1, 1)").write
    writer = writer.format("delta").partitionBy("p")
    for key, value in properties.items():
        writer = writer.option(key, value)
    writer.save(path)
    more = enabled.sql("SELECT id, id % 5 AS p, string(id) AS s FROM range(20, 40, 1, 1)")
    more.write.format("delta").mode("append").save(path)
    if request.param == "vectors":
        log.delete("id IN (3, 21)")
    return enabled.read.format("delta").load(path)


def size_of(frame):
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def physical(frame):
    return frame._jdf.queryExecution().sparkPlan().toString()


@pytest.mark.again
@pytest.mark.parametrize(
    ("condition", "num_files"),
    [("p = 1", 2), ("id < 2", 2), ("p = 1 AND id > 30", 1), ("p > 9", 0)],
)
def test_sizes_and_files_are_those_that_the_filters_leave(months, condition, num_files):
    frame = months.where(condition)
    assert 0 < size_of(months) < 10**6
    assert size_of(frame) < size_of(months)
    assert len(frame.inputFiles()) == num_files
    assert set(frame.inputFiles()) < set(months.inputFiles())
    told = file_selections(frame)
    assert sum(each.num_files for each in told) == num_files
    assert sum(each.num_files_total for each in told) == len(months.inputFiles()) == 10


@pytest.mark.again
def test_a_table_without_a_filter_is_no_larger_than_its_files(months):
    assert 0 < size_of(months) <= sum(each.size_bytes for each in file_selections(months))


@pytest.mark.again
def test_a_join_with_what_is_left_of_a_table_is_a_broadcast(months, conf):
    conf(THRESHOLD, str(size_of(months) // 2))
    conf("spark.sql.adaptive.enabled", "false")
    left, right = months.where("p = 1").alias("l"), months.alias("r")
    joined = left.join(right, sf.expr("l.id = r.id"))
    assert "BroadcastHashJoin" in physical(joined)
    assert joined.count() == months.where("p = 1").count()
    both = months.alias("l").join(right, sf.expr("l.id = r.id"))
    assert "SortMergeJoin" in physical(both)
    assert both.count() == months.count()


@pytest.mark.again
def test_one_table_with_several_filters_is_read_by_each_of_them(months):
    def ids(frame):
        return sorted(row[0] for row in frame.select("id").collect())

    every = ids(months)
    ones, twos = months.where("p = 1"), months.where("p = 2 OR id = 4")
    assert ids(ones.unionAll(twos)) == sorted(ids(ones) + ids(twos))
    assert ids(ones) == [n for n in every if n % 5 == 1]
    assert ids(twos) == [n for n in every if n % 5 == 2 or n == 4]
    assert ones.alias("a").join(twos.alias("b"), sf.expr("a.id + 1 = b.id")).count() == len(
        [n for n in ids(ones) if n + 1 in ids(twos)]
    )
    most = months.agg(sf.max("id")).first()[0]
    months.createOrReplaceTempView("pruned_months")
    session = months.sparkSession
    found = session.sql(
        "SELECT id FROM pruned_months WHERE p = 1 AND id <= (SELECT max(id) - 10 FROM"
        " pruned_months WHERE p = 4) AND id IN (SELECT id FROM pruned_months WHERE id < 30)"
    )
    assert ids(found) == [n for n in every if n % 5 == 1 and n <= most - 10 and n < 30]
    session.catalog.dropTempView("pruned_months")


@pytest.mark.again
def test_partitions_that_a_subquery_names_are_found_while_it_runs(months):
    months.createOrReplaceTempView("pruned_months")
    found = months.sparkSession.sql(
        "SELECT id FROM pruned_months WHERE p = (SELECT max(p) - 3 FROM pruned_months) AND id > 10"
    )
    assert sorted(row.id for row in found.collect()) == [
        row.id for row in months.where("p = 1 AND id > 10").orderBy("id").collect()
    ]
    months.sparkSession.catalog.dropTempView("pruned_months")


@pytest.mark.again
@pytest.mark.parametrize("column", ["p", "id"])
def test_functions_of_python_see_every_row_that_other_filters_leave(months, column):
    is_one = sf.udf(lambda value: value % 5 == 1, "boolean")
    found = months.where(is_one(column)).where("id > 10")
    assert sorted(row.id for row in found.collect()) == [
        row.id for row in months.where("p = 1 AND id > 10").orderBy("id").collect()
    ]
    assert found.count() == months.where("p = 1 AND id > 10").count()


@pytest.mark.again
def test_partitions_that_a_join_leaves_are_found_while_it_runs(months, conf):
    conf("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    few = months.sparkSession.createDataFrame([(1, "x"), (9, "y")], "p long, t string")
    found = months.where("id < 30").join(sf.broadcast(few.where("t = 'x'")), "p")
    assert sorted(row.id for row in found.collect()) == [
        row.id for row in months.where("id < 30 AND p = 1").orderBy("id").collect()
    ]


@pytest.mark.again
def test_a_query_runs_where_it_can_not_be_told_what_is_left(months, monkeypatch):
    def fail(*_):
        raise TableError("Nobody knows.", kind="OPTIMIST_TEST")

    wanted = sorted(months.where("id < 12").collect())
    monkeypatch.setattr(TableFileIndex, "apply", fail)
    frame = months.where("id < 12")
    assert size_of(frame) > 0
    assert sorted(frame.collect()) == wanted


@pytest.mark.again
def test_what_is_cached_of_a_filter_is_found_again(months):
    frame = months.where("p = 1").cache()
    try:
        assert frame.count() == months.where("p = 1").count()
        again = months.where("p = 1")
        assert "InMemoryTableScan" in physical(again)
        assert size_of(again) > 0
    finally:
        frame.unpersist(blocking=True)


@pytest.mark.again
def test_files_are_pruned_once_for_a_query(months, monkeypatch):
    made = []
    prune = TableFileIndex._mask_of_filters
    monkeypatch.setattr(
        TableFileIndex,
        "_mask_of_filters",
        lambda index, *about: made.append(index) or prune(index, *about),
    )
    frame = months.where("p = 1 AND id > 3")
    frame.collect()
    assert len(made) == len({id(index) for index in made}) > 0
    made.clear()
    frame.inputFiles()
    file_selections(frame)
    assert made == []


@pytest.mark.again
def test_an_older_version_is_as_large_as_it_was(enabled, months, tmp_path):
    older = enabled.read.format("delta").option("versionAsOf", 0).load(str(tmp_path / "months"))
    assert len(older.where("p = 1").inputFiles()) == 1
    assert len(months.where("p = 1").inputFiles()) == 2
    assert size_of(older.where("p = 1")) < size_of(older)


def test_files_of_odd_partitions_are_named_as_without_a_filter(enabled, tmp_path):
    path = str(tmp_path / "odd names, 100%")
    rows = [(number, value) for number, value in enumerate(ODD)]
    frame = enabled.createDataFrame(rows, "n long, p string")
    frame.write.format("delta").partitionBy("p").save(path)
    frame = enabled.read.format("delta").load(path)
    named = set()
    for value in ODD:
        (file,) = frame.where(sf.col("p").eqNullSafe(value)).inputFiles()
        named.add(file)
    assert named == set(frame.inputFiles())
