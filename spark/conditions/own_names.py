"""Names before a table's columns in expressions: the table's own name, or its alias.

A table of the catalog is known as `catalog.database.table`, and by each end of that name, but a
command's frames know it by an alias of one part. So names of several parts are put under the alias
before a command reads them. Spark's own rule decides which table such a name means: the longest
qualifier wins over a shorter one, any qualifier wins over a struct of that name, and a column that
two tables have under one qualifier is ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.predicates.parsing import parse_column_path
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate

__all__ = ["OwnNames", "alias_beside", "named", "path_of", "qualified_columns"]

_ATTRIBUTES = "org.apache.spark.sql.catalyst.expressions.package$AttributeSeq"


def named(frame: DataFrame, parts: tuple[str, ...]) -> DataFrame:
    """Return the rows of a frame under a name of several parts, the catalog first.

    Args:
        frame: The rows, in a classic session.
        parts: The name.
    """
    jvm = Jvm.of(frame.sparkSession)
    identifier = jvm.catalyst.AliasIdentifier(parts[-1], jvm.seq(parts[:-1]))
    logical = jvm.catalyst.plans.logical
    return jvm.frame(logical.SubqueryAlias(identifier, analyzed_plan(frame)))


def qualified_columns(spark: SparkSession, schema: Any, parts: tuple[str, ...]) -> Any:
    """Return a table's columns as Spark knows them under its name, a Scala `Seq`.

    Args:
        spark: A classic session.
        schema: The table's schema, a `pyspark.sql.types.StructType`.
        parts: The table's name, its catalog first.
    """
    jvm = Jvm.of(spark)
    types = jvm.catalyst.types.DataTypeUtils
    above = jvm.seq(parts)
    return jvm.seq(
        item.withQualifier(above) for item in iterate(types.toAttributes(jvm.struct(schema)))
    )


def alias_beside(parts: tuple[str, ...], source: Any, otherwise: str) -> str:
    """Return the last part of a table's name as its rows' alias, unless a source has it.

    Args:
        parts: The table's name, or the alias that the user gave it.
        source: The columns of the source, a Scala `Seq` of attributes; used only for a name of
            several parts.
        otherwise: The alias if the name can't be used.
    """
    if len(parts) < 2:
        return parts[0] if parts else otherwise
    others = {
        str(part).lower() for item in iterate(source) for part in _last_part(item.qualifier())
    }
    return otherwise if parts[-1].lower() in others else parts[-1]


def _last_part(qualifier: Any) -> Iterator[Any]:
    if not qualifier.isEmpty():
        yield qualifier.last()


@dataclass(frozen=True, slots=True)
class OwnNames:
    """The names of one table in the expressions of a command.

    Attributes:
        spark: A classic session.
        parts: The table's name, its catalog first; an alias has one part.
        alias: The alias under which the command reads the table; None if it reads only this table,
            so that column names are enough.
        columns: Returns the table's columns under that name, a Scala `Seq` of attributes.
    """

    spark: SparkSession
    parts: tuple[str, ...]
    alias: str | None
    columns: Callable[[], Any]

    def in_value(self, value: Column | str, source: Any = None) -> Column | str:
        """Put columns under the table's name under its alias, in a condition or a value.

        A value without such columns is returned unchanged. So is every value if the user gave an
        alias, which is always so on Spark Connect.

        Args:
            value: SQL text or a column.
            source: Other columns that it may name, a Scala `Seq` of attributes.

        Raises:
            pyspark.errors.AnalysisException: A name may mean a column of both.
        """
        if len(self.parts) < 2 or (isinstance(value, str) and not self._may_stand_in(value)):
            return value
        jvm = Jvm.of(self.spark)
        tree = jvm.tree(sf.expr(value) if isinstance(value, str) else value)
        changed = self.in_tree(tree, source)
        return value if changed is tree else jvm.column(changed)

    def in_tree(self, tree: Any, source: Any = None) -> Any:
        """Put columns under the table's name under its alias, in a Catalyst expression."""
        if not self._may_stand_in(str(tree)):
            return tree
        jvm = Jvm.of(self.spark)
        attribute = jvm.catalyst.analysis.UnresolvedAttribute
        renamed = {}
        for leaf in iterate(tree.collectLeaves()):
            if str(leaf.getClass().getSimpleName()) != "UnresolvedAttribute":
                continue
            path = self._path_below(jvm, leaf, source)
            if path is not None:
                renamed[leaf] = attribute(jvm.seq([self.alias, *path]))
        return tree.transformUp(jvm.scala_map(renamed)) if renamed else tree

    def in_target(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Remove the table's name before the path of an assigned column.

        A column that the table lacks may also have the name before it.
        """
        return path[self._qualified_by(path) :]

    def in_target_text(self, name: str) -> str:
        """Remove the table's name before an assigned column, as text for a command."""
        if len(self.parts) < 2:
            return name
        return self.target_text(self.in_target(parse_column_path(name)))

    def target_text(self, path: tuple[str, ...]) -> str:
        """Return a path within the table as text for a command.

        A command may read its first name as the alias.
        """
        is_namesake = len(path) > 1 and path[0].lower() == (self.alias or "").lower()
        above = (self.alias,) if self.alias is not None and is_namesake else ()
        return ".".join(map(quoted, (*above, *path)))

    def _may_stand_in(self, text: str) -> bool:
        """Check whether a text can hold a name that the command's alias does not cover."""
        if self.alias is None or not self.parts:
            return False
        before = self.parts[-1] if self.alias != self.parts[-1] else "".join(self.parts[-2:-1])
        return bool(before) and before.lower() in text.lower()

    def _path_below(self, jvm: Jvm, leaf: Any, source: Any) -> tuple[str, ...] | None:
        """Return the path within the table that a name means, or None for other tables' names.

        It is also None for a bare name, which needs no change.
        """
        names = tuple(map(str, iterate(leaf.nameParts())))
        own = self.columns() if len(names) > 1 else None
        if own is None:
            return None
        (make,) = jvm.java_class(_ATTRIBUTES).getConstructors()
        given = jvm.root.java.util.ArrayList()
        given.add(own if source is None else own.concat(source))
        attributes = make.newInstance(given.toArray())
        found = attributes.resolve(leaf.nameParts(), _resolver(jvm))
        if found.isEmpty() or not _holds_column(own, found.get()):
            return None
        num_above = len(names) - sum(1 for _ in path_of(found.get()))
        return names[num_above:] if num_above and names[:num_above] != (self.alias,) else None

    def _qualified_by(self, path: tuple[str, ...]) -> int:
        """Return how many parts of a written name are the table's name, or the end of it.

        Spark's order applies: first the longest end of the table's name before a column, then a
        column with fields of that name. Else it is a column that the table lacks.
        """
        lengths = range(min(len(self.parts), len(path) - 1), 0, -1)
        fitting = [
            length for length in lengths if self._are_same(path[:length], self.parts[-length:])
        ]
        if not fitting:
            return 0
        columns = [str(item.name()) for item in iterate(self.columns())]

        def is_column(name: str) -> bool:
            return any(self._are_same((name,), (other,)) for other in columns)

        found = next((length for length in fitting if is_column(path[length])), None)
        if found is None:
            found = 0 if is_column(path[0]) else fitting[0]
        return found

    def _are_same(self, path: tuple[str, ...], other: tuple[str, ...]) -> bool:
        """Compare two names, by case only if the session says so."""
        if str(self.spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
            return path == other
        return [part.lower() for part in path] == [part.lower() for part in other]


def _resolver(jvm: Jvm) -> Any:
    return jvm.session.sessionState().conf().resolver()


def _holds_column(columns: Any, found: Any) -> bool:
    """Check whether one of these columns is, or holds, the result of a name's resolution."""
    (leaf,) = list(iterate(found.collectLeaves()))[:1]
    return any(int(item.exprId().id()) == int(leaf.exprId().id()) for item in iterate(columns))


def path_of(key: Any) -> Iterator[str]:
    """Yield the path of a column or its part, as Spark has parsed or resolved it."""
    kind = str(key.getClass().getSimpleName())
    if kind == "UnresolvedAttribute":
        yield from iterate(key.nameParts())
    elif kind == "AttributeReference":
        yield str(key.name())
    elif kind == "Alias":
        yield from path_of(key.child())
    else:
        yield from path_of(key.children().head())
        last_part = _LAST_PARTS.get(kind)
        yield "element" if last_part is None else last_part(key)


_LAST_PARTS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "GetStructField": lambda key: str(key.extractFieldName()),
        "GetArrayStructFields": lambda key: str(key.field().name()),
        "GetMapValue": lambda key: str(key.key()),
    }
)
"""The last name in the path of a column's part, by the class of the expression."""
