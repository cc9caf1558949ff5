"""What users get wrong in DELETE, UPDATE and MERGE: one clear error, and nothing is written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable

ROWS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "n": pa.array(range(10), pa.int32()),
        "pos": pa.array([{"lat": float(i)} for i in range(10)]),
    }
)
VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}


def deleting(condition):
    return lambda table, source: table.delete(condition)


def updating(condition=None, **values):
    return lambda table, source: table.update(condition, values)


def merging(change, on="t.id = s.id"):
    return lambda table, source: change(table.merge(source, on)).execute()


def setting(condition=None, **values):
    return merging(lambda builder: builder.whenMatchedUpdate(condition, values))


def inserting(condition=None, **values):
    return merging(lambda builder: builder.whenNotMatchedInsert(condition, values))


def matching(on):
    return merging(lambda builder: builder.whenMatchedDelete(), on)


CASES = {
    "delete: no boolean": (deleting("id + 1"), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    "delete: no column": (deleting("nope = 1"), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    "delete: aggregate": (deleting("max(id) = 1"), "INVALID_WHERE_CONDITION"),
    "delete: random": (deleting("rand() > 0"), "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
    "delete: subquery": (deleting("id = (SELECT 1)"), "DELTA_UNSUPPORTED_SUBQUERY"),
    "update: no column": (updating("id = 1", nope="1"), "DELTA_COLUMN_NOT_FOUND"),
    "update: no struct": (updating(pos="1"), "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    "update: no number": (updating(n="concat('x', id)"), "CAST_INVALID_INPUT"),
    "update: too large": (updating("id = 3", n="id + 3000000000"), "CAST_OVERFLOW"),
    "update: aggregate": (updating(n="max(n)"), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "update: window": (
        updating(n="row_number() OVER (ORDER BY id)"),
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
    ),
    "update: generator": (updating(n="explode(array(1, 2))"), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "update: twice": (updating(n="1", N="2"), "DELTA_CONFLICT_SET_COLUMN"),
    "merge: no column": (matching("t.id = s.nope"), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    "merge: whose column": (matching("id = 1"), "AMBIGUOUS_REFERENCE"),
    "merge: no boolean": (matching("t.id + s.id"), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    "merge: random": (
        matching("t.id = s.id AND rand() > 0"),
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    ),
    "set: no column": (setting(nope="1"), "DELTA_COLUMN_NOT_FOUND"),
    "set: no number": (setting(n="s.text"), "CAST_INVALID_INPUT"),
    "set: aggregate": (setting(n="max(s.id)"), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "set: window": (setting(n="sum(s.id) OVER ()"), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "insert: the table's row": (inserting(id="t.id"), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    "insert: no number": (inserting(n="s.text"), "CAST_INVALID_INPUT"),
    "insert: aggregate": (inserting(n="count(*)"), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "insert: generator": (inserting(n="explode(array(1))"), "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    "by source: the source's row": (
        merging(lambda builder: builder.whenNotMatchedBySourceDelete("s.id = 1")),
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    ),
}


@pytest.fixture
def table(spark, copied, plane):
    return copied("bad commands", append_rows)


def append_rows(path):
    DeltaLog.for_path(path, VECTORS).append(ROWS)


@pytest.mark.parametrize(("run", "kind"), CASES.values(), ids=CASES)
def test_a_mistake_is_named_and_writes_nothing(spark, table, run, kind):
    rows = pa.table({"id": pa.array([3, 99], pa.int64()), "text": ["x", "y"]})
    source = spark.createDataFrame(rows).alias("s")
    with pytest.raises((OptimistError, PySparkException)) as caught:
        run(DeltaTable.forPath(spark, table).alias("t"), source)
    error = caught.value
    found = error.kind if isinstance(error, OptimistError) else error.getCondition()
    assert found == kind
    assert DeltaLog.for_path(table, {}).update().version == 0


def test_values_may_come_from_a_source_that_aggregates(spark, table):
    source = spark.sql("SELECT 3L AS id, max(x) AS top FROM VALUES (1), (7) AS (x)").alias("s")
    merge = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"n": "s.top"})
    merge.whenNotMatchedInsert(values={"n": "top"}).execute()
    assert DeltaLog.for_path(table, {}).to_arrow("id = 3")["n"].to_pylist() == [7]
