"""DELETE, UPDATE and MERGE INTO: from Spark's own plan of the statement to the commands.

Spark has parsed the statement and found its tables, parameters, variables and functions. A DELETE
and an UPDATE come resolved. A MERGE comes with its expressions as they were written, because what
its stars and values mean depends on the schema that it leaves.

A command reads the table's newest version by frames of its own, so references to the table are
taken by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.spark.commands.delete import delete
from optimist.spark.commands.merge.builder import DeltaMergeBuilder
from optimist.spark.commands.merge.run import OWN_ALIAS
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.commands.update import update
from optimist.spark.drop_in.classic.expressions import TargetExpressions, qualifier_of
from optimist.spark.drop_in.classic.opened_table import OpenedTable
from optimist.spark.rows.local_rows import numbers_frame
from optimist.spark.session.conf import open_log, reset_session_version
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["delete_rows", "merge_rows", "update_rows"]

_AFFECTED = "num_affected_rows"
_CLAUSES = ("Matched", "NotMatched", "NotMatchedBySource")


def delete_rows(spark: SparkSession, node: Any, table: OpenedTable) -> DataFrame:
    """DELETE FROM; one row with the number of rows."""
    expressions = TargetExpressions(spark, node.table())
    condition = expressions.condition(node.condition())
    log = open_log(spark, table.path)
    num_affected = delete(spark, log, condition)
    reset_session_version(spark, log.options)
    return numbers_frame(spark, {_AFFECTED: num_affected})


def update_rows(spark: SparkSession, node: Any, table: OpenedTable) -> DataFrame:
    """UPDATE; one row with the number of rows."""
    expressions = TargetExpressions(spark, node.table())
    condition = expressions.optional(node.condition())
    assignments = expressions.assignments(node.assignments())
    log = open_log(spark, table.path)
    num_affected = update(spark, log, condition, assignments)
    reset_session_version(spark, log.options)
    return numbers_frame(spark, {_AFFECTED: num_affected})


def merge_rows(spark: SparkSession, node: Any, table: OpenedTable) -> DataFrame:
    """MERGE INTO; one row with the numbers of rows, as `DeltaMergeBuilder.execute` gives it."""
    target, source = node.targetTable(), node.sourceTable()
    alias = _alias(target, source)
    expressions = TargetExpressions(spark, target, alias)
    own = DeltaTable.forPath(spark, table.path).alias(alias)
    rows = Jvm.of(spark).frame(source)
    merge = own.merge(rows, expressions.column(node.mergeCondition()))
    if node.withSchemaEvolution():
        merge = merge.withSchemaEvolution()
    for kind in _CLAUSES:
        for action in iterate(getattr(node, f"{kind[0].lower()}{kind[1:]}Actions")()):
            merge = _with_clause(merge, kind, action, expressions)
    return merge.execute()


def _alias(target: Any, source: Any) -> str:
    """The name for the table's rows: its own, unless the source goes by the same."""
    own, other = qualifier_of(target), qualifier_of(source)
    is_shared = len(own) > 1 and other[-1:] and other[-1].lower() == own[-1].lower()
    return OWN_ALIAS if is_shared or not own else own[-1]


def _with_clause(
    merge: DeltaMergeBuilder, kind: str, action: Any, expressions: TargetExpressions
) -> DeltaMergeBuilder:
    """The MERGE with one more clause: `UpdateStarAction` adds `whenMatchedUpdateAll`."""
    name = str(action.getClass().getSimpleName()).removesuffix("Action")
    verb, takes_all = name.removesuffix("Star"), name.endswith("Star")
    arguments: list[Any] = [expressions.optional(action.condition())]
    if verb != "Delete" and not takes_all:
        values = expressions.assignments(action.assignments(), inserts=verb == "Insert")
        arguments.append(values)
    add: Callable[..., DeltaMergeBuilder]
    add = getattr(merge, f"when{kind}{verb}{'All' if takes_all else ''}")
    return add(*arguments)
