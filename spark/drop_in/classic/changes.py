"""Statements that change a table: what Spark's analyzer gets in their place.

Whatever Spark's SQL and its writers do to a table that is there comes here as a node of the plan,
with the table as its target. A node becomes a command once Spark has resolved what the command
needs, and the command runs when Spark executes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.statements.result_columns import MERGED, NO_COLUMNS, ROWS_AFFECTED
from optimist.spark.drop_in.classic.opened_table import opened_table
from optimist.spark.drop_in.classic.relations import path_name
from optimist.spark.drop_in.classic.row_commands import delete_rows, merge_rows, update_rows
from optimist.spark.drop_in.classic.writes import append_rows, overwrite_partitions, overwrite_rows
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.planes.sources import plan_sources
from optimist.spark.rows.local_rows import spark_columns
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["change_rows", "insert_into_rows"]

_NO_ROWS, _AFFECTED, _MERGED = map(spark_columns, (NO_COLUMNS, ROWS_AFFECTED, MERGED))


def change_rows(spark: SparkSession, node: Any, relation: Any) -> Any:
    """Return the command in place of a statement, or None if Spark must resolve more of it.

    Args:
        spark: The session.
        node: The statement, a node of a plan.
        relation: The table that it changes, a Java `DataSourceV2Relation`; or a view.

    Raises:
        UsageError: It is a view over a table of ours (kind `DELTA_UNSUPPORTED_SOURCE`), or see
            `OpenedTable.ensure_changeable`.
    """
    statement = _STATEMENTS[str(node.getClass().getSimpleName())]
    if str(relation.getClass().getSimpleName()) == "View":
        _ensure_not_ours(relation, statement)
        return None
    table = opened_table(relation.table())
    table.ensure_changeable(statement.verb)
    if not statement.is_ready(Jvm.of(spark), node):
        return None

    def run(session: SparkSession) -> DataFrame | None:
        return statement.run(session, node, table)

    title = f"{statement.verb} {table.name}"
    return python_command(spark, title, statement.rows, run, node.origin())


def _ensure_not_ours(view: Any, statement: _Statement) -> None:
    name = str(view.desc().identifier().quotedString())
    if plan_sources(view):
        raise UsageError(
            f"{statement.verb} can't change the view {shown(name)}: its destination must be a "
            "Delta table. Nothing was written. Name the table that the view is made of.",
            kind="DELTA_UNSUPPORTED_SOURCE",
            name=name,
        )


def insert_into_rows(_spark: SparkSession, rows: Any, _more: Any) -> None:
    """Refuse an INSERT into a temporary view over a table of ours.

    To Spark it is a folder with files: INSERT would put some there that are in no version, and
    INSERT OVERWRITE would remove the table with its log.

    Raises:
        UsageError: It is refused (kind `DELTA_UNSUPPORTED_SOURCE`).
    """
    path = next((source.path for source in plan_sources(rows)), "")
    raise UsageError(
        f"INSERT can't change a view over the table {shown(path)}: its destination must be a "
        f"Delta table. Nothing was written. Name the table: INSERT INTO {path_name(path)}.",
        kind="DELTA_UNSUPPORTED_SOURCE",
        name=path,
    )


def _is_resolved(jvm: Jvm, node: Any) -> bool:  # noqa: ARG001 - see `_Statement`
    return bool(node.resolved())


def _has_condition_and_names(jvm: Jvm, node: Any) -> bool:
    """Return whether an UPDATE is resolved, but perhaps for names of session variables.

    Where a name is all that is missing, the command finds it, as that of a MERGE does.
    """
    if node.resolved():
        return True
    condition = node.condition()
    if not node.childrenResolved() or (condition.isDefined() and not condition.get().resolved()):
        return False
    patterns = jvm.root.org.apache.spark.sql.catalyst.trees.TreePattern
    later = (patterns.PARAMETER(), patterns.PLAN_EXPRESSION(), patterns.UNRESOLVED_FUNCTION())
    return all(
        one.key().resolved() and not any(map(one.value().containsPattern, later))
        for one in iterate(node.assignments())
    )


def _has_rows(jvm: Jvm, node: Any) -> bool:  # noqa: ARG001 - see `_Statement`
    """Return whether the rows are resolved, whose columns `writes` finds."""
    return bool(node.query().resolved())


def _has_rows_and_condition(jvm: Jvm, node: Any) -> bool:
    return _has_rows(jvm, node) and bool(node.deleteExpr().resolved())


def _has_tables_and_parameters(jvm: Jvm, node: Any) -> bool:
    """Return whether the tables of a MERGE are resolved, and it has no parameters."""
    parameter = jvm.root.org.apache.spark.sql.catalyst.trees.TreePattern.PARAMETER()
    return bool(node.childrenResolved()) and not node.containsPattern(parameter)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One kind of statement.

    Attributes:
        verb: What EXPLAIN calls it.
        run: Runs it on the table; gives its rows.
        rows: The columns of these rows.
        is_ready: Whether Spark has resolved what `run` needs.
    """

    verb: str
    run: Callable[[SparkSession, Any, Any], DataFrame | None]
    rows: StructType
    is_ready: Callable[[Jvm, Any], bool]


_STATEMENTS: Mapping[str, _Statement] = MappingProxyType(
    {
        "DeleteFromTable": _Statement("DELETE FROM", delete_rows, _AFFECTED, _is_resolved),
        "UpdateTable": _Statement("UPDATE", update_rows, _AFFECTED, _has_condition_and_names),
        "MergeIntoTable": _Statement("MERGE INTO", merge_rows, _MERGED, _has_tables_and_parameters),
        "AppendData": _Statement("INSERT INTO", append_rows, _NO_ROWS, _has_rows),
        "OverwriteByExpression": _Statement(
            "INSERT OVERWRITE", overwrite_rows, _NO_ROWS, _has_rows_and_condition
        ),
        "OverwritePartitionsDynamic": _Statement(
            "INSERT OVERWRITE", overwrite_partitions, _NO_ROWS, _has_rows
        ),
    }
)
"""By the class of the node in Spark's plan."""
