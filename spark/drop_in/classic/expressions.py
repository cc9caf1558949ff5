"""Expressions of a statement that changes a table, as columns that any frame of the table has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from optimist.core.requests.assigned_paths import ensure_apart
from optimist.spark.conditions.attributes import by_name
from optimist.spark.conditions.bound_condition import has_subquery
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["TargetExpressions", "qualifier_of"]

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
    """

    spark: SparkSession
    table: Any
    alias: str | None = None

    def column(self, expression: Any) -> Column:
        """The expression, with what it takes from the table taken by name."""
        jvm = Jvm.of(self.spark)
        column = jvm.column(self._requalified(jvm, expression))
        return by_name(self.spark, column, [self.table.output()], qualifier=self.alias)

    def merge_condition(self, expression: Any) -> Column:
        """A condition of a MERGE, which Spark may have resolved.

        One with a subquery stays bound to the table as far as it is resolved: names can't be put
        into the subquery.
        """
        jvm = Jvm.of(self.spark)
        if has_subquery(jvm, expression):
            return jvm.column(self._requalified(jvm, expression))
        return self.column(expression)

    def condition(self, expression: Any) -> Column | None:
        """The condition; None for one that is always true, as a DELETE without WHERE has."""
        return None if str(expression.sql()) == _ALWAYS else self.column(expression)

    def optional_merge_condition(self, expression: Any) -> Column | None:
        """The condition of a clause, in a Scala `Option`."""
        return self.merge_condition(expression.get()) if expression.isDefined() else None

    def assignments(self, assignments: Any, *, inserts: bool = False) -> dict[str, Column | str]:
        """The names of columns, or of fields within structs, to their new values.

        Args:
            assignments: Spark's expressions.
            inserts: Whether new rows are made of them.

        Raises:
            UsageError: Two of them contradict each other.
        """
        pairs = [(self._path(one.key()), self._value(one.value())) for one in iterate(assignments)]
        ensure_apart([path for path, _ in pairs], inserts=inserts)
        return {self._name(path): value for path, value in pairs}

    def _value(self, expression: Any) -> Column | str:
        if _kind(expression) == "UnresolvedAttribute":
            parts = [part.lower() for part in iterate(expression.nameParts())]
            if parts == [_DEFAULT]:
                return _DEFAULT
        return self.column(expression)

    def _path(self, key: Any) -> tuple[str, ...]:
        """The path within the table, whose name stands only before what Spark has not resolved."""
        path = tuple(_path(key))
        return path if key.resolved() else path[self._qualified_by(path) :]

    def _name(self, path: tuple[str, ...]) -> str:
        """A path as the command reads it, which takes a first name that is the alias for that."""
        is_below_namesake = len(path) > 1 and path[0].lower() == (self.alias or "").lower()
        above = (self.alias,) if self.alias is not None and is_below_namesake else ()
        return ".".join(map(quoted, (*above, *path)))

    def _qualified_by(self, path: tuple[str, ...]) -> int:
        """How many parts of a written name are the table's own name, or the end of it.

        As Spark resolves names: the longest end of the table's name behind which a column follows;
        then a column with fields of that name; what is left is a column that the table lacks.
        """
        own = [part.lower() for part in qualifier_of(self.table)]
        folded = [part.lower() for part in path]
        lengths = range(min(len(own), len(path) - 1), 0, -1)
        fitting = [length for length in lengths if folded[:length] == own[-length:]]
        if not fitting:
            return 0
        columns = {str(column.name()).lower() for column in iterate(self.table.output())}
        found = next((length for length in fitting if folded[length] in columns), None)
        if found is None:
            found = 0 if folded[0] in columns else fitting[0]
        return found

    def _requalified(self, jvm: Jvm, expression: Any) -> Any:
        """The expression with `catalog.database.table.column` written as `alias.column`.

        Only a name of one part can be the alias of a frame.
        """
        own = qualifier_of(self.table)
        if self.alias is None or len(own) < 2 or own[-2].lower() not in str(expression).lower():
            return expression
        attribute = jvm.root.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
        renamed = {}
        for leaf in iterate(expression.collectLeaves()):
            if _kind(leaf) != "UnresolvedAttribute":
                continue
            path = tuple(iterate(leaf.nameParts()))
            length = self._qualified_by(path)
            if length > 1:
                renamed[leaf] = attribute(jvm.seq([self.alias, *path[length:]]))
        return expression.transformUp(jvm.scala_map(renamed)) if renamed else expression


def qualifier_of(table: Any) -> tuple[str, ...]:
    """The name of a table in a statement, its catalog first; an alias has one part."""
    if _kind(table) != "SubqueryAlias":
        return ()
    found = table.identifier()
    return (*iterate(found.qualifier()), str(found.name()))


def _path(key: Any) -> Iterator[str]:
    """The path of a column, or of what is below it, as Spark has parsed or resolved it."""
    kind = _kind(key)
    if kind == "UnresolvedAttribute":
        yield from iterate(key.nameParts())
    elif kind == "AttributeReference":
        yield str(key.name())
    elif kind == "Alias":
        yield from _path(key.child())
    else:
        yield from _path(key.children().head())
        yield _LAST_PARTS.get(kind, lambda _: "element")(key)


_LAST_PARTS = {
    "GetStructField": lambda key: str(key.extractFieldName()),
    "GetArrayStructFields": lambda key: str(key.field().name()),
    "GetMapValue": lambda key: str(key.key()),
}
"""What comes after the column in the name of a part of it, by the class of the expression."""


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
