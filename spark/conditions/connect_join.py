"""Conditions that join a table with other rows, in Spark Connect.

A client sends names, and only the server resolves them. Here a name is understood if it can mean
one side alone: it has the alias of either, it is bound to the other frame's plan, or only one side
has a column of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.merge.resolved import JoinKey
from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import map_columns, map_leaves, resolve_column
from optimist.core.predicates.tree import Column, Comparison, NullSafeEqual, Opaque
from optimist.core.schema.types import StructField, StructType
from optimist.spark.conditions.connect_condition import known_in_session, sent_message
from optimist.spark.conditions.connect_expressions import SentExpressions
from optimist.spark.conditions.connect_text import SentTexts
from optimist.spark.conditions.join_reading import JoinReading
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.jvm import conf_entries
from optimist.spark.spark_schema import type_of_values

__all__ = ["read_sent_join"]

_TARGET, _SOURCE = "target", "source"
_INTEGERS = ("byte", "short", "integer", "long")


def read_sent_join(
    target: DataFrame,
    source: DataFrame,
    condition: SparkColumn | str,
    schema: StructType,
    alias: str,
) -> JoinReading:
    """Read a condition as far as its meaning is beyond doubt.

    Args:
        target: The table's rows in a Connect session, under their alias.
        source: The other rows.
        condition: The condition, which the server can resolve.
        schema: The table's schema.
        alias: The alias of the table's rows.
    """
    columns = _storable(source)
    sides = _Sides(schema, columns, alias, _alias_of(source))
    texts = _SidedTexts(schema, alias, conf_entries(target.sparkSession), sides)
    if isinstance(condition, str):
        predicate = texts.predicate(condition)
    else:
        plan: Any = source
        sent = _SidedExpressions(texts, "", sides, plan._plan._plan_id)
        predicate = sent.predicate(sent_message(target, condition))
    parts: list[Predicate] = []
    keys: list[JoinKey[SparkColumn]] = []
    for part in predicate.conjuncts():
        if any(isinstance(node, Opaque) for node in part.walk()):
            continue
        if {path[0] for path in part.columns()} == {_TARGET}:
            parts.append(map_leaves(part, lambda leaf: map_columns(leaf, _without_side)))
        else:
            keys.extend(_keys(part, sides, source))
    found = reduce(and_, parts) if parts else Predicate.TRUE
    return JoinReading(known_in_session(target.sparkSession, found, schema), tuple(keys))


@dataclass(frozen=True, slots=True)
class _Sides:
    """The columns of both sides, and the names by which conditions may know the sides."""

    target: StructType
    source: StructType
    target_alias: str
    source_alias: str | None

    def column(self, path: tuple[str, ...]) -> Column | None:
        """Return the column that a name means, its side in front, or None if in doubt."""
        first = path[0].lower()
        if len(path) > 1:
            aliases = (self.target_alias.lower(), (self.source_alias or "").lower())
            if aliases[0] == aliases[1] or first not in aliases:
                return None  # perhaps a field of a struct
            return self.of_side(_TARGET if first == aliases[0] else _SOURCE, path[1:])
        found = [
            side for side in (_TARGET, _SOURCE) if self._schema(side).find(path[0]) is not None
        ]
        return self.of_side(found[0], path) if len(found) == 1 else None

    def of_side(self, side: str, path: tuple[str, ...]) -> Column | None:
        found = self._schema(side).find(path[0])
        return None if found is None else Column((side, found.name, *path[1:]))

    def _schema(self, side: str) -> StructType:
        return self.target if side == _TARGET else self.source


@dataclass(frozen=True, slots=True)
class _SidedTexts(SentTexts):
    sides: _Sides

    def column(self, path: tuple[str, ...]) -> Column | None:
        return self.sides.column(path)


@dataclass(frozen=True, slots=True)
class _SidedExpressions(SentExpressions):
    sides: _Sides
    source_plan: int

    def column(self, term: Any) -> Column | None:
        found = SentExpressions.column(self, term)
        if term.WhichOneof("expr_type") != "unresolved_attribute":
            return found
        attribute = term.unresolved_attribute
        if not attribute.HasField("plan_id"):
            return found
        if attribute.plan_id != self.source_plan or "." in attribute.unparsed_identifier:
            return None
        return self.sides.of_side(_SOURCE, (attribute.unparsed_identifier.strip("`"),))


def _storable(frame: DataFrame) -> StructType:
    """Return the columns of a frame that a table can have, which include all keys."""
    kinds = ((field.name, type_of_values(field)) for field in frame.schema.fields)
    return StructType(tuple(StructField(name, kind) for name, kind in kinds if kind is not None))


def _keys(part: Predicate, sides: _Sides, source: DataFrame) -> Iterator[JoinKey[SparkColumn]]:
    """Yield the key, if a conjunct is an equality."""
    if not isinstance(part, (Comparison, NullSafeEqual)):
        return
    if isinstance(part, Comparison) and part.op != "=":
        return
    columns = (part.left, part.right)
    if not isinstance(part.right, Column):
        return
    by_side = {item.path[0]: item.path[1:] for item in columns if isinstance(item, Column)}
    if set(by_side) == {_TARGET, _SOURCE} and _compare_alike(sides, by_side):
        first, *rest = by_side[_SOURCE]
        value = source[quoted(first)]
        for name in rest:
            value = value.getField(name)
        path = ".".join(map(quoted, (sides.target_alias, *by_side[_TARGET])))
        yield JoinKey(sf.col(path), value, isinstance(part, NullSafeEqual))


def _compare_alike(sides: _Sides, paths: dict[str, tuple[str, ...]]) -> bool:
    """Check whether Spark compares both columns without a cast."""
    target = resolve_column(paths[_TARGET], sides.target)
    source = resolve_column(paths[_SOURCE], sides.source)
    if target is None or source is None:
        return False
    names = (str(target.data_type), str(source.data_type))
    return names[0] == names[1] or all(name in _INTEGERS for name in names)


def _without_side(column: Column) -> Column:
    return Column(column.path[1:])


def _alias_of(frame: DataFrame) -> str | None:
    plan: Any = frame
    return plan._plan._alias if type(plan._plan).__name__ == "SubqueryAlias" else None
