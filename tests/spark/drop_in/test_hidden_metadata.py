"""`_metadata` of tables whose rows are tracked or marked, where Spark tells two sides apart."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.spark import read

pytestmark = pytest.mark.skipif(
    pyspark.__version__ < "4.2", reason="an alias hides it for good before"
)


@pytest.fixture(params=["tracked", "marked"])
def table(enabled, tmp_path, request):
    path = str(tmp_path / "table")
    name = "enableRowTracking" if request.param == "tracked" else "enableDeletionVectors"
    writer = enabled.range(0, 8, 1, 2).write.format("delta").option(f"delta.{name}", "true")
    writer.save(path)
    if request.param == "marked":
        DeltaLog.for_path(path).delete("id IN (1, 6)")
    return path


FIELD = {"tracked": "row_id", "marked": "file_name"}


def told(frame):
    return sorted(map(tuple, frame.collect()))


@pytest.fixture
def field(request):
    return FIELD[request.node.callspec.params["table"]]


FRAMES = {
    "newest": lambda spark, path: spark.read.format("delta").load(path),
    "version": lambda spark, path: spark.read.format("delta").option("versionAsOf", 0).load(path),
    "read": lambda spark, path: read(spark, path).where("id >= 0"),
}


@pytest.mark.again
@pytest.mark.parametrize("how", FRAMES)
def test_both_sides_of_a_self_join_have_their_own(enabled, table, field, how):
    frame = FRAMES[how](enabled, table)
    one = dict(told(frame.select("id", f"_metadata.{field}")))
    joined = frame.alias("a").join(frame.alias("b"), sf.expr("a.id = b.id + 1"))
    found = joined.selectExpr("a.id", f"a._metadata.{field}", f"b._metadata.{field}")
    assert told(found) == [(n, one[n], one[n - 1]) for n in sorted(one) if n - 1 in one]
    assert joined.columns == ["id", "id"]
    filtered = joined.where(f"a._metadata.{field} = b._metadata.{field}")
    assert told(filtered.selectExpr("a.id")) == [
        (n,) for n in sorted(one) if n - 1 in one and one[n] == one[n - 1]
    ]


@pytest.mark.again
def test_sides_that_were_changed_and_cached_have_their_own(enabled, table, field):
    frame = enabled.read.format("delta").load(table).where("id > 0")
    one = dict(told(frame.select("id", f"_metadata.{field}")))
    cached = frame.select("id", sf.col(f"_metadata.{field}").alias("of_it")).cache()
    try:
        joined = frame.alias("a").join(cached.alias("b"), sf.expr("a.id = b.id"))
        assert told(joined.selectExpr("a.id", f"a._metadata.{field}", "of_it")) == [
            (n, one[n], one[n]) for n in sorted(one)
        ]
        assert "InMemoryTableScan" in joined._jdf.queryExecution().executedPlan().toString()
    finally:
        cached.unpersist(blocking=True)


def test_it_is_found_under_an_alias_and_shown_by_no_star(enabled, table, field):
    frame = enabled.read.format("delta").load(table)
    assert told(frame.alias("a").select(f"a._metadata.{field}")) == told(
        frame.select(f"_metadata.{field}")
    )
    assert frame.alias("a").select("a.*").columns == ["id"]


@pytest.mark.again
def test_rows_that_came_meanwhile_have_theirs(enabled, table, field):
    frame = enabled.read.format("delta").load(table)
    joined = frame.alias("a").join(frame.alias("b"), sf.expr("a.id = b.id"))
    chosen = joined.selectExpr("a.id", f"a._metadata.{field}", f"b._metadata.{field}")
    before = told(chosen.where("true"))
    enabled.range(20, 22).write.format("delta").mode("append").save(table)
    after = told(chosen.where("true"))  # a query of its own
    assert len(after) == len(before) + 2
    assert all(one == other for _, one, other in after)
