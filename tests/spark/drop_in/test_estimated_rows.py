"""What Spark's cost-based optimizer is told of the rows that a scan reads."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog

ROWS = """SELECT id, CAST(id % 4 AS int) AS p, date_add(DATE'2024-01-01', int(id)) AS d,
  CAST(id AS decimal(9,2)) AS m, timestamp_seconds(id * 3600) AS t, id % 2 = 0 AS b,
  IF(id < 10, null, id * 0.5D) AS x, string(id) AS s FROM range(0, 40, 1, 2)"""
MINUTE = 60 * 10**6
COLUMNS = ["id", "p", "d", "m", "t", "b", "x", "s"]


@pytest.fixture
def costs(conf):
    conf("spark.sql.cbo.enabled", "true")


@pytest.fixture(params=["plain", pytest.param("mapped", marks=pytest.mark.again)])
def rows(enabled, table_path, request, costs):
    writer = enabled.sql(ROWS).write.format("delta").partitionBy("p")
    if request.param == "mapped":
        writer = writer.option("delta.columnMapping.mode", "name")
    writer.save(table_path)
    return enabled.read.format("delta").load(table_path)


def told(frame):
    """The rows that the whole query gives, and of each named column what is known."""
    found = frame._jdf.queryExecution().optimizedPlan().stats()
    columns = {}
    entries = found.attributeStats().iterator()
    while entries.hasNext():
        entry = entries.next()
        each = entry._2()
        parts = (each.min(), each.max(), each.nullCount(), each.distinctCount())
        columns[str(entry._1().name())] = [None if p.isEmpty() else str(p.get()) for p in parts]
    number = found.rowCount()
    return (None if number.isEmpty() else int(str(number.get()))), columns


def compared(frame):
    """A query that compares all columns, and leaves out no row."""
    return frame.where(" AND ".join(f"coalesce({name} = {name}, true)" for name in COLUMNS))


def test_the_log_tells_what_analyze_finds(enabled, rows, costs):
    number, columns = told(compared(rows))
    enabled.sql(ROWS).write.saveAsTable("analyzed")
    try:
        enabled.sql("ANALYZE TABLE analyzed COMPUTE STATISTICS FOR ALL COLUMNS")
        expected, found = told(compared(enabled.table("analyzed")))
    finally:
        enabled.sql("DROP TABLE analyzed")
    assert number == expected == 40
    low, high = found["t"][:2]
    # Bounds of times are as wide as their texts may mean; the log has none of booleans.
    found |= {"t": [str(int(low) - MINUTE), str(int(high) + MINUTE), "0"], "b": [None, None, "0"]}
    assert sorted(map(str, (each[:3] for each in columns.values()))) == sorted(
        map(str, (each[:3] for each in found.values()))
    )
    assert [each[3] for each in columns.values() if each[3]] == ["4"]  # those of the partitions


def test_the_figures_are_those_of_the_files_left(rows):
    assert told(rows)[0] == 40
    assert told(rows.where("p = 1"))[0] == 10
    assert told(rows.where("p = 1 AND id < 1000"))[0] == 10
    assert told(rows.where("id < 10"))[0] < 40


@pytest.mark.parametrize("partition", ["id", "n"])
def test_columns_of_types_that_spark_has_no_figures_of_are_left_out(
    enabled, table_path, costs, partition
):
    rows = "SELECT id, timestamp_ntz'2024-01-01 00:00:00' AS n FROM range(4)"
    enabled.sql(rows).write.format("delta").partitionBy(partition).save(table_path)
    frame = enabled.read.format("delta").load(table_path)
    for condition in ("n > timestamp_ntz'2023-01-01 00:00:00'", "n IS NOT NULL AND id >= 0"):
        assert told(frame.where(condition))[0] is not None
        assert frame.where(condition).count() == 4
    assert frame.groupBy("n").count().collect()[0]["count"] == 4


@pytest.mark.again
def test_deleted_rows_are_left_out(enabled, rows, table_path):
    DeltaLog.for_path(table_path).alter.set_properties({"delta.enableDeletionVectors": "true"})
    DeltaLog.for_path(table_path).delete("id IN (1, 5, 8)")
    frame = enabled.read.format("delta").load(table_path)
    assert frame.count() == 37
    children = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    found = [children.apply(at).stats().rowCount().get() for at in range(children.length())]
    assert sum(int(str(each)) for each in found) == 37


def innermost_join(frame):
    """The columns of the first join that runs, in order of their names."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    found = None
    while found is None or any(has_join(child) for child in children(plan)):
        plan = next(child for child in children(plan) if has_join(child))
        found = plan if plan.nodeName() == "Join" else found
    return sorted(found.output().apply(at).name() for at in range(found.output().length()))


def children(plan):
    return [plan.children().apply(at) for at in range(plan.children().length())]


def has_join(plan):
    return plan.nodeName() == "Join" or any(map(has_join, children(plan)))


def test_joins_begin_with_the_tables_of_few_rows(enabled, tmp_path, conf):
    for name, number in (("big", 2000), ("some", 40), ("few", 3)):
        frame = enabled.range(number).selectExpr(f"id AS {name}", f"string(id) AS {name}_text")
        frame.write.format("delta").save(str(tmp_path / name))

    def joined():
        big, some, few = (
            enabled.read.format("delta").load(str(tmp_path / name))
            for name in ("big", "some", "few")
        )
        return big.join(some, sf.expr("big = some")).join(few, sf.expr("some = few"))

    conf("spark.sql.cbo.joinReorder.enabled", "true")
    assert "big" in innermost_join(joined())
    conf("spark.sql.cbo.enabled", "true")
    assert innermost_join(joined()) == ["few", "few_text", "some", "some_text"]
    assert joined().count() == 3


def test_without_the_cost_based_optimizer_nothing_is_asked(enabled, table_path, conf):
    enabled.range(3).write.format("delta").save(table_path)
    frame = enabled.read.format("delta").load(table_path)
    assert told(frame)[0] is None
    conf("spark.sql.cbo.enabled", "true")
    assert told(enabled.read.format("delta").load(table_path))[0] == 3


@pytest.mark.again
def test_a_table_by_name_keeps_its_name(enabled, conf, costs):
    enabled.sql("CREATE TABLE named USING delta AS SELECT id FROM range(7)")
    try:
        frame = enabled.table("named").where("id >= 0")
        assert told(frame)[0] == 7
        assert "named" in frame._jdf.queryExecution().optimizedPlan().toString()
        enabled.sql("INSERT INTO named VALUES (9)")
        assert told(enabled.table("named"))[0] == 8
    finally:
        enabled.sql("DROP TABLE named")
