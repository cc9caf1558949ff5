"""What users get wrong in DELETE, UPDATE and MERGE, and how each mistake is told."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable

__all__ = ["MISTAKES", "append_rows", "kind_of_mistake"]

_ROWS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "n": pa.array(range(10), pa.int32()),
        "pos": pa.array([{"lat": float(i)} for i in range(10)]),
    }
)
_VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}


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


MISTAKES = {
    "delete: no boolean": (deleting("id + 1"), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    "delete: no column": (deleting("nope = 1"), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    "delete: aggregate": (deleting("max(id) = 1"), "INVALID_WHERE_CONDITION"),
    "delete: random": (deleting("rand() > 0"), "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
    "merge: subquery": (
        merging(
            lambda builder: builder.whenNotMatchedBySourceDelete(),
            "t.id = s.id AND t.id IN (SELECT 1)",
        ),
        "DELTA_UNSUPPORTED_SUBQUERY",
    ),
    "update: no column": (updating("id = 1", nope="1"), "DELTA_COLUMN_NOT_FOUND"),
    "update: no struct": (updating(pos="1"), "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    "update: no number": (updating(n="concat('x', id)"), "CAST_INVALID_INPUT"),
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
    "update: constraint": (updating("id = 3", n="-1"), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    "set: constraint": (setting(n="-s.id"), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    "insert: constraint": (
        inserting(id="s.id", n="-1"),
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    ),
    "merge: clauses in another order": (
        merging(lambda builder: builder.whenMatchedDelete().whenMatchedUpdate(set={"n": "1"})),
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "merge: no clause": (merging(lambda builder: builder), "DELTA_MERGE_MISSING_WHEN"),
    "merge: matches twice": (
        merging(lambda builder: builder.whenMatchedUpdate(set={"n": "1"}), "t.id < s.id"),
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    ),
}
"""A command each, and the kind or condition of the error that it ends with."""


def append_rows(path):
    """Make the table that the commands are for."""
    log = DeltaLog.for_path(path, _VECTORS)
    log.append(_ROWS)
    log.alter.add_constraint("counted", "n >= 0")


def kind_of_mistake(spark, path, run):
    """How a command ends: the kind or the condition of its error."""
    rows = pa.table({"id": pa.array([3, 99], pa.int64()), "text": ["x", "y"]})
    source = spark.createDataFrame(rows).alias("s")
    try:
        run(DeltaTable.forPath(spark, path).alias("t"), source)
    except OptimistError as error:
        return error.kind
    except PySparkException as error:
        return error.getCondition()
    return "nothing"
