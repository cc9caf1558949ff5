"""DELETE, UPDATE and MERGE INTO: from Spark's own plan of the statement to the commands.

Spark has parsed the statement and found its tables, parameters, variables and functions. A DELETE
and an UPDATE come resolved. A MERGE comes with its expressions as they were written, because what
its stars and values mean depends on the schema that it leaves.

A command reads the table's newest version by frames of its own, so references to the table are
taken by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.expressions.plain_text import tokens_between
from optimist.core.requests.merge_clauses import Action, Clause, Kind
from optimist.core.statements.result_rows import affected_rows
from optimist.spark.commands.dml.delete import delete
from optimist.spark.commands.dml.target import TARGET_ALIAS
from optimist.spark.commands.dml.update import update
from optimist.spark.commands.merge.request import MergeClause, MergeRequest
from optimist.spark.commands.merge.run import merge
from optimist.spark.conditions.bound_condition import BoundCondition, has_subquery
from optimist.spark.conditions.own_names import alias_beside
from optimist.spark.drop_in.classic.expressions import TargetExpressions, qualifier_of
from optimist.spark.drop_in.classic.opened_table import OpenedTable
from optimist.spark.rows.local_rows import result_frame
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["delete_rows", "merge_rows", "update_rows"]

_ACTIONS: Mapping[Kind, str] = {
    "MATCHED": "matchedActions",
    "NOT MATCHED": "notMatchedActions",
    "NOT MATCHED BY SOURCE": "notMatchedBySourceActions",
}
"""For each kind of clauses, what gives them of Spark's plan of a MERGE."""
_VERBS: tuple[Action, ...] = ("update", "delete", "insert")


def delete_rows(spark: SparkSession, node: Any, table: OpenedTable) -> DataFrame:
    """Run DELETE FROM, and return one row with the number of rows."""
    expressions = TargetExpressions(spark, node.table())
    condition = _condition(expressions, node, node.condition())
    num_affected = delete(spark, open_log(spark, table.path), condition)
    return result_frame(spark, affected_rows(num_affected))


def update_rows(spark: SparkSession, node: Any, table: OpenedTable) -> DataFrame:
    """Run UPDATE, and return one row with the number of rows."""
    expressions = TargetExpressions(spark, node.table())
    given = node.condition()
    condition = _condition(expressions, node, given.get()) if given.isDefined() else None
    assignments = expressions.assignments(node.assignments())
    num_affected = update(spark, open_log(spark, table.path), condition, assignments)
    return result_frame(spark, affected_rows(num_affected))


@original_errors()
def merge_rows(spark: SparkSession, node: Any, table: OpenedTable) -> DataFrame:
    """Run MERGE INTO, and return the row of `DeltaMergeBuilder.execute`."""
    target, source = node.targetTable(), node.sourceTable()
    alias = alias_beside(qualifier_of(target), source.output(), TARGET_ALIAS)
    expressions = TargetExpressions(spark, target, alias, source.output())
    request = MergeRequest(
        Jvm.of(spark).frame(source),
        expressions.merge_condition(node.mergeCondition()),
        tuple(
            _clause(kind, action, _of_kind(kind, expressions))
            for kind, actions in _ACTIONS.items()
            for action in iterate(getattr(node, actions)())
        ),
        evolves_schema=bool(node.withSchemaEvolution()),
        target_attributes=target.output() if _asks_subqueries(spark, node) else None,
    )
    return merge(spark, open_log(spark, table.path), request, alias)


def _condition(
    expressions: TargetExpressions, node: Any, expression: Any
) -> Column | BoundCondition | None:
    """Return the condition of a DELETE or an UPDATE, as Spark resolved its subqueries."""
    spark = expressions.spark
    if not has_subquery(Jvm.of(spark), expression):
        return expressions.condition(expression)
    text = _where(node) or str(expression.sql())
    return BoundCondition(spark, expression, expressions.table.output(), text)


def _where(node: Any) -> str | None:
    """Return the text behind WHERE of a DELETE or an UPDATE, or None if it is not known."""
    origin = node.origin()
    text, first, last = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if not (text.isDefined() and first.isDefined() and last.isDefined()):
        return None
    written = str(text.get())[int(first.get()) : int(last.get()) + 1]
    depth, start = 0, None
    for token in tokens_between(written, 0, len(written)):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind == "word" and token.text.upper() == "WHERE":
            start = token.end
    return None if start is None else written[start:].strip()


def _of_kind(kind: Kind, expressions: TargetExpressions) -> TargetExpressions:
    """Return the expressions for a kind of clause, which sees the rows of one or both sides."""
    if kind == "MATCHED":
        return expressions
    if kind == "NOT MATCHED":
        return replace(expressions, sees_table=False)
    return replace(expressions, source=None)


def _asks_subqueries(spark: SparkSession, node: Any) -> bool:
    """Return whether a condition of a MERGE holds a subquery."""
    jvm = Jvm.of(spark)
    actions = (action for name in _ACTIONS.values() for action in iterate(getattr(node, name)()))
    given = [action.condition().get() for action in actions if action.condition().isDefined()]
    return any(has_subquery(jvm, item) for item in (node.mergeCondition(), *given))


def _clause(kind: Kind, action: Any, expressions: TargetExpressions) -> MergeClause:
    """Read one clause of an action of Spark's, such as `UpdateStarAction`."""
    name = str(action.getClass().getSimpleName())
    verb = next(verb for verb in _VERBS if name.lower().startswith(verb))
    values: dict[str, Column | str] | None = None
    if verb != "delete" and not name.endswith("StarAction"):
        values = expressions.assignments(action.assignments(), inserts=verb == "insert")
    return Clause(kind, verb, expressions.optional_merge_condition(action.condition()), values)
