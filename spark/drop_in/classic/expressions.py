"""Expressions of a statement that changes a table, as columns that any frame of the table has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from optimist.core.errors import UsageError
from optimist.core.requests.assigned_paths import ensure_apart
from optimist.spark.conditions.attributes import by_name
from optimist.spark.conditions.bound_condition import has_subquery
from optimist.spark.conditions.own_names import OwnNames, path_of
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["TargetExpressions", "qualifier_of"]

_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
_ALWAYS = "true"
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class TargetExpressions:
    """The expressions of one statement.

    Attributes:
        spark: A classic session.
        table: The statement's target: a relation, under the names by which it is known.
        alias: The alias under which the command reads the table; None if it reads nothing else, so
            that the names of columns are enough.
        source: What the expressions may name besides the table: the columns of the source of a
            MERGE, a Scala `Seq` of attributes.
        sees_table: Whether the expressions may name the table; those of INSERT see the source only.
    """

    spark: SparkSession
    table: Any
    alias: str | None = None
    source: Any = None
    sees_table: bool = True

    def column(self, expression: Any) -> Column:
        """Return the expression, which then takes columns of the table by name."""
        column = Jvm.of(self.spark).column(self._under_alias(expression))
        return by_name(self.spark, column, [self.table.output()], qualifier=self.alias)

    def merge_condition(self, expression: Any) -> Column:
        """Return a condition of a MERGE, which Spark may have resolved.

        One with a subquery stays bound to the table as far as it is resolved: names can't be put
        into the subquery.
        """
        jvm = Jvm.of(self.spark)
        if has_subquery(jvm, expression):
            return jvm.column(self._under_alias(expression))
        return self.column(expression)

    def condition(self, expression: Any) -> Column | None:
        """Return the condition, or None for one that is always true, as of a plain DELETE."""
        return None if str(expression.sql()) == _ALWAYS else self.column(expression)

    def optional_merge_condition(self, expression: Any) -> Column | None:
        """Return the condition of a clause, given in a Scala `Option`."""
        return self.merge_condition(expression.get()) if expression.isDefined() else None

    def assignments(self, assignments: Any, *, inserts: bool = False) -> dict[str, Column | str]:
        """Return the new values by the names of columns or of fields within structs.

        Args:
            assignments: Spark's expressions.
            inserts: Whether new rows are made of them.

        Raises:
            UsageError: Two of them contradict each other.
        """
        pairs = [(self._path(one.key()), self._value(one.value())) for one in iterate(assignments)]
        ensure_apart([path for path, _ in pairs], inserts=inserts)
        return {self._own_names.target_text(path): value for path, value in pairs}

    def _value(self, expression: Any) -> Column | str:
        if _kind(expression) == "UnresolvedAttribute":
            parts = [part.lower() for part in iterate(expression.nameParts())]
            if parts == [_DEFAULT]:
                return _DEFAULT
        self._ensure_own_value(expression)
        return self.column(expression)

    def _ensure_own_value(self, expression: Any) -> None:
        """Refuse a value with a subquery that Spark has bound to the rows of the statement.

        The command reads these rows by frames of its own, to which the subquery is not bound.
        """
        jvm = Jvm.of(self.spark)
        subqueries = jvm.java_class(_SUBQUERY)
        own = self.table.outputSet()
        if any(
            subqueries.isInstance(node) and not node.references().intersect(own).isEmpty()
            for node in _nodes(expression)
        ):
            raise UsageError(
                "A new value holds a subquery that names columns of the table that is changed, "
                "which is not supported. Nothing was written. Use MERGE, and compute the value in "
                "its source.",
                kind="DELTA_UNSUPPORTED_SUBQUERY",
            )

    def _under_alias(self, expression: Any) -> Any:
        """Return the expression, with the command's alias in place of the table's name."""
        return self._own_names.in_tree(expression, self.source) if self.sees_table else expression

    def _path(self, key: Any) -> tuple[str, ...]:
        """Return the path within the table, whose name Spark takes off where it resolves."""
        path = tuple(path_of(key))
        return path if key.resolved() else self._own_names.in_target(path)

    @property
    def _own_names(self) -> OwnNames:
        return OwnNames(self.spark, qualifier_of(self.table), self.alias, self.table.output)


def qualifier_of(table: Any) -> tuple[str, ...]:
    """Return the name of a table in a statement, its catalog first, or its alias."""
    if _kind(table) != "SubqueryAlias":
        return ()
    found = table.identifier()
    return (*iterate(found.qualifier()), str(found.name()))


def _nodes(expression: Any) -> Iterator[Any]:
    """Return an expression, and all expressions within it."""
    yield expression
    for child in iterate(expression.children()):
        yield from _nodes(child)


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
