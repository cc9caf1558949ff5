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

from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import map_columns, map_leaves, resolve_column
from optimist.core.predicates.tree import Column, Comparison, NullSafeEqual, Opaque
from optimist.core.schema.types import StructField, StructType
from optimist.spark.conditions.connect_condition import opaque_in_other_zones, sent_message
from optimist.spark.conditions.connect_expressions import SentExpressions
from optimist.spark.conditions.connect_text import SentTexts
from optimist.spark.conditions.join_reading import JoinKey, JoinReading
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.jvm import conf_entries
from optimist.spark.spark_schema import type_of_values

__all__ = ["read_sent_join"]

_OWN, _OTHER = "own", "other"
_INTEGERS = ("byte", "short", "integer", "long")


def read_sent_join(
    own: DataFrame, other: DataFrame, condition: SparkColumn | str, schema: StructType, alias: str
) -> JoinReading:
    """Read a condition as far as its meaning is beyond doubt.

    Args:
        own: The table's rows in a Connect session, under their alias.
        other: The other rows.
        condition: The condition, which the server can resolve.
        schema: The table's schema.
        alias: The alias of the table's rows.
    """
    source = _storable(other)
    sides = _Sides(schema, source, alias, _alias_of(other))
    texts = _SidedTexts(schema, alias, conf_entries(own.sparkSession), sides)
    if isinstance(condition, str):
        predicate = texts.predicate(condition)
    else:
        plan: Any = other
        sent = _SidedExpressions(texts, "", sides, plan._plan._plan_id)
        predicate = sent.predicate(sent_message(own, condition))
    parts: list[Predicate] = []
    keys: list[JoinKey] = []
    for part in predicate.conjuncts():
        if any(isinstance(node, Opaque) for node in part.walk()):
            continue
        if {path[0] for path in part.columns()} == {_OWN}:
            parts.append(map_leaves(part, lambda leaf: map_columns(leaf, _without_side)))
        else:
            keys.extend(_keys(part, sides, other))
    found = reduce(and_, parts) if parts else Predicate.TRUE
    return JoinReading(opaque_in_other_zones(own.sparkSession, found, schema), tuple(keys))


@dataclass(frozen=True, slots=True)
class _Sides:
    """The columns of both sides, and the names by which conditions may know the sides."""

    own: StructType
    other: StructType
    own_alias: str
    other_alias: str | None

    def column(self, path: tuple[str, ...]) -> Column | None:
        """The column that a name means, its side in front; None if that is not certain."""
        first = path[0].lower()
        if len(path) > 1:
            aliases = (self.own_alias.lower(), (self.other_alias or "").lower())
            if aliases[0] == aliases[1] or first not in aliases:
                return None  # perhaps a field of a struct
            return self.of_side(_OWN if first == aliases[0] else _OTHER, path[1:])
        found = [side for side in (_OWN, _OTHER) if self._schema(side).find(path[0]) is not None]
        return self.of_side(found[0], path) if len(found) == 1 else None

    def of_side(self, side: str, path: tuple[str, ...]) -> Column | None:
        found = self._schema(side).find(path[0])
        return None if found is None else Column((side, found.name, *path[1:]))

    def _schema(self, side: str) -> StructType:
        return self.own if side == _OWN else self.other


@dataclass(frozen=True, slots=True)
class _SidedTexts(SentTexts):
    sides: _Sides

    def column(self, path: tuple[str, ...]) -> Column | None:
        return self.sides.column(path)


@dataclass(frozen=True, slots=True)
class _SidedExpressions(SentExpressions):
    sides: _Sides
    other_plan: int

    def column(self, term: Any) -> Column | None:
        found = SentExpressions.column(self, term)
        if term.WhichOneof("expr_type") != "unresolved_attribute":
            return found
        attribute = term.unresolved_attribute
        if not attribute.HasField("plan_id"):
            return found
        if attribute.plan_id != self.other_plan or "." in attribute.unparsed_identifier:
            return None
        return self.sides.of_side(_OTHER, (attribute.unparsed_identifier.strip("`"),))


def _storable(frame: DataFrame) -> StructType:
    """The columns of a frame that a table could have; no key is of another type."""
    kinds = ((field.name, type_of_values(field)) for field in frame.schema.fields)
    return StructType(tuple(StructField(name, kind) for name, kind in kinds if kind is not None))


def _keys(part: Predicate, sides: _Sides, other: DataFrame) -> Iterator[JoinKey]:
    """The equality that a conjunct is; none if it is something else."""
    if not isinstance(part, (Comparison, NullSafeEqual)):
        return
    if isinstance(part, Comparison) and part.op != "=":
        return
    columns = (part.left, part.right)
    if not isinstance(part.right, Column):
        return
    by_side = {item.path[0]: item.path[1:] for item in columns if isinstance(item, Column)}
    if set(by_side) == {_OWN, _OTHER} and _compare_alike(sides, by_side):
        first, *rest = by_side[_OTHER]
        value = other[quoted(first)]
        for name in rest:
            value = value.getField(name)
        path = ".".join(map(quoted, (sides.own_alias, *by_side[_OWN])))
        yield JoinKey(other.sparkSession, sf.col(path), value, isinstance(part, NullSafeEqual))


def _compare_alike(sides: _Sides, paths: dict[str, tuple[str, ...]]) -> bool:
    """Whether both columns are compared as they are; else Spark would cast one of them."""
    own, other = resolve_column(paths[_OWN], sides.own), resolve_column(paths[_OTHER], sides.other)
    if own is None or other is None:
        return False
    names = (str(own.data_type), str(other.data_type))
    return names[0] == names[1] or all(name in _INTEGERS for name in names)


def _without_side(column: Column) -> Column:
    return Column(column.path[1:])


def _alias_of(frame: DataFrame) -> str | None:
    plan: Any = frame
    return plan._plan._alias if type(plan._plan).__name__ == "SubqueryAlias" else None
