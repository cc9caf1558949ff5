"""Catalyst's expressions as predicates of ours (spec 1.3, 9.5).

One translation serves both reads, which skip files by the filters that Spark gives a scan, and
commands, which prune, and record what they read, by the condition that Spark analysed. It works on
the trees and never on their texts, which leave out casts. Expressions that are not on its lists are
opaque.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from optimist.core.errors import UsageError
from optimist.core.predicates.casts import without_cast
from optimist.core.predicates.constants import date_of_days, round_to_float32, time_of_micros
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.translation import Operation, Operator, Translation
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    ComparisonOp,
    Literal,
    Opaque,
    Predicate,
)
from optimist.core.schema.types import StructType
from optimist.core.values.time_zones import session_zone
from optimist.spark.session.jvm import iterate

__all__ = ["CatalystPredicates", "constant_of", "kind_of", "type_name"]

ColumnPath: TypeAlias = tuple[str, ...]

_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_MAX_CASTS = 1000  # a comparison each; longer lists skip nothing
_SEPARATOR = "\0,"


@dataclass(frozen=True, slots=True)
class CatalystPredicates(Translation[Any]):
    """Translates expressions over the columns of one table.

    Attributes:
        schema: The table's schema.
        named: Gives the table's names for the path of names in an expression; None if the table has
            no such column.
        unknown: Makes the stand-in for an expression that is not understood.
    """

    schema: StructType
    named: Callable[[ColumnPath, StructType], ColumnPath | None]
    unknown: Callable[[Any], Opaque]

    def operation(self, term: Any) -> Operation[Any] | None:
        """See `Translation.operation`."""
        find = _OPERATIONS.get(kind_of(term))
        return None if find is None else find(term)

    def column(self, term: Any) -> Column | None:
        """See `Translation.column`."""
        expression, names = term, list[str]()
        while kind_of(expression) == "GetStructField":
            names.insert(0, str(expression.childSchema().apply(expression.ordinal()).name()))
            expression = expression.child()
        if kind_of(expression) != "AttributeReference":
            return None
        path = self.path_of(expression, tuple(names))
        return None if path is None else Column(path)

    def path_of(self, attribute: Any, inner: ColumnPath) -> ColumnPath | None:
        """The table's names for an attribute, or a field below it; None if it has no such column.

        Args:
            attribute: An `AttributeReference`.
            inner: The names of the fields on the way down.
        """
        return self.named((str(attribute.name()), *inner), self.schema)

    def literal(self, term: Any) -> Literal | None:
        """See `Translation.literal`; the constants of a set are read already."""
        if isinstance(term, Literal):
            return term
        return constant_of(term) if kind_of(term) == "Literal" else None

    def opaque(self, term: Any) -> Opaque:
        """See `Translation.opaque`."""
        return self.unknown(term)

    def converted(self, op: ComparisonOp, term: Any, values: Sequence[Literal]) -> Predicate | None:
        """`CAST(column AS type) op value` for any of the values, as conditions on the column."""
        if kind_of(term) != "Cast" or len(values) > _MAX_CASTS:
            return None
        column = self.column(term.child())
        resolved = None if column is None else resolve_column(column.path, self.schema)
        zone = _zone_of(term)
        if column is None or resolved is None or not resolved.has_plain_order or zone is None:
            return None
        target = type_name(term.dataType())
        found = [
            without_cast(CastComparison(op, column, target, value), resolved.data_type, zone)
            for value in values
        ]
        known = [item for item in found if item is not None]
        return reduce(or_, known) if len(known) == len(found) else None


def _sides(operator: Operator) -> Callable[[Any], Operation[Any]]:
    return lambda expression: (operator, (expression.left(), expression.right()))


def _child(operator: Operator) -> Callable[[Any], Operation[Any]]:
    return lambda expression: (operator, (expression.child(),))


def _in(expression: Any) -> Operation[Any]:
    return "IN", (expression.value(), *iterate(expression.list()))


def _in_set(expression: Any) -> Operation[Any] | None:
    values = _set_values(expression.hset(), type_name(expression.child().dataType()))
    return None if values is None else ("IN", (expression.child(), *values))


def _like(expression: Any) -> Operation[Any]:
    escape = Literal(str(expression.escapeChar()), "string")
    return "LIKE", (expression.left(), expression.right(), escape)


_OPERATIONS: dict[str, Callable[[Any], Operation[Any] | None]] = {
    "And": _sides("AND"),
    "Or": _sides("OR"),
    "Not": _child("NOT"),
    "EqualTo": _sides("="),
    "EqualNullSafe": _sides("<=>"),
    "LessThan": _sides("<"),
    "LessThanOrEqual": _sides("<="),
    "GreaterThan": _sides(">"),
    "GreaterThanOrEqual": _sides(">="),
    "In": _in,
    "InSet": _in_set,
    "IsNull": _child("IS NULL"),
    "IsNotNull": _child("IS NOT NULL"),
    "StartsWith": _sides("STARTS WITH"),
    "EndsWith": _sides("ENDS WITH"),
    "Contains": _sides("CONTAINS"),
    "Like": _like,
}


def kind_of(expression: Any) -> str:
    """The name of an expression's class."""
    return str(expression.getClass().getSimpleName())


def type_name(data_type: Any) -> str:
    """Delta names types as Spark's JSON does; a collation is part of the name."""
    return str(data_type.json()).strip('"')


def _zone_of(cast: Any) -> dt.tzinfo | None:
    """The zone by which times become dates; UTC if the cast needs none, None if it is unknown."""
    name = cast.timeZoneId()
    try:
        return session_zone(str(name.get())) if name.isDefined() else dt.timezone.utc
    except UsageError:
        return None


def constant_of(literal: Any) -> Literal | None:
    """What a literal says, of Catalyst or of the connector API; None for a type not listed."""
    value = literal.value()
    if value is None:
        return Literal(None, "null")
    name = type_name(literal.dataType())
    return _of_text(str(value), name)  # `str` of a Java object is its `toString`


def _set_values(values: Any, name: str) -> list[Literal] | None:
    """The constants of a set, fetched in one round trip; None if one of them is not understood."""
    texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
    if len(texts) != values.size():
        return None  # a constant holds the separator, so the texts can't be told apart
    nulls: list[Literal] = []
    if values.contains(None):
        texts.remove("null")
        nulls.append(Literal(None, "null"))
    known = [item for text in texts if (item := _of_text(text, name)) is not None]
    return None if len(known) < len(texts) else known + nulls


def _of_text(text: str, name: str) -> Literal | None:
    """A constant from the text of Catalyst's internal value; None for a type that is not listed."""
    if name == "string":
        return Literal(text, "string")
    if name == "boolean":
        return Literal(text.lower() == "true", "boolean")
    if name in _INTEGERS:
        return Literal(int(text), "integer")
    if name == "double":
        return Literal(float(text), "double")
    if name == "float":
        # The text 1.1 of a float stands for 1.10000002384185791015625, and not for 1.1.
        return Literal(round_to_float32(float(text)), "double")
    if name.startswith("decimal"):
        return Literal(Decimal(f"{Decimal(text):f}"), "decimal")
    if name == "date":
        return date_of_days(int(text))
    if name == "timestamp":
        return time_of_micros(int(text), "timestamp")
    return time_of_micros(int(text), "timestamp_ntz") if name == "timestamp_ntz" else None
