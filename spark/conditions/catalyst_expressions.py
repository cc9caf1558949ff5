"""The translation of Catalyst's expressions to our predicates (spec 1.3, 9.5).

One translation serves reads and commands. Reads skip files by the filters that Spark gives a scan.
Commands prune, and record what they read, by the condition that Spark analysed. The translation
works on the trees and never on their texts, which leave out casts. Expressions that are not on its
lists are opaque.
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
_MAX_CASTS = 1000  # each is a comparison; longer lists skip nothing
_SEPARATOR = "\0,"


@dataclass(frozen=True, slots=True)
class CatalystPredicates(Translation[Any]):
    """A translation of expressions over the columns of one table.

    Attributes:
        schema: The table's schema.
        named: Returns the table's names for a path of names in an expression, or None if the table
            has no such column.
        unknown: Makes the placeholder for an expression that we can't translate.
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
        """Return the table's names for an attribute or a field below it, or None.

        Args:
            attribute: An `AttributeReference`.
            inner: The names of the fields below it.
        """
        return self.named((str(attribute.name()), *inner), self.schema)

    def literal(self, term: Any) -> Literal | None:
        """See `Translation.literal`.

        The constants of a set are read already.
        """
        if isinstance(term, Literal):
            return term
        return constant_of(term) if kind_of(term) == "Literal" else None

    def opaque(self, term: Any) -> Opaque:
        """See `Translation.opaque`."""
        return self.unknown(term)

    def converted(self, op: ComparisonOp, term: Any, values: Sequence[Literal]) -> Predicate | None:
        """Translate `CAST(column AS type) op value` for any value to conditions on the column."""
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


def _both_sides(operator: Operator) -> Callable[[Any], Operation[Any]]:
    return lambda expression: (operator, (expression.left(), expression.right()))


def _only_child(operator: Operator) -> Callable[[Any], Operation[Any]]:
    return lambda expression: (operator, (expression.child(),))


def _in_operands(expression: Any) -> Operation[Any]:
    return "IN", (expression.value(), *iterate(expression.list()))


def _in_set_operands(expression: Any) -> Operation[Any] | None:
    values = _set_values(expression.hset(), type_name(expression.child().dataType()))
    return None if values is None else ("IN", (expression.child(), *values))


def _like_operands(expression: Any) -> Operation[Any]:
    escape = Literal(str(expression.escapeChar()), "string")
    return "LIKE", (expression.left(), expression.right(), escape)


_OPERATIONS: dict[str, Callable[[Any], Operation[Any] | None]] = {
    "And": _both_sides("AND"),
    "Or": _both_sides("OR"),
    "Not": _only_child("NOT"),
    "EqualTo": _both_sides("="),
    "EqualNullSafe": _both_sides("<=>"),
    "LessThan": _both_sides("<"),
    "LessThanOrEqual": _both_sides("<="),
    "GreaterThan": _both_sides(">"),
    "GreaterThanOrEqual": _both_sides(">="),
    "In": _in_operands,
    "InSet": _in_set_operands,
    "IsNull": _only_child("IS NULL"),
    "IsNotNull": _only_child("IS NOT NULL"),
    "StartsWith": _both_sides("STARTS WITH"),
    "EndsWith": _both_sides("ENDS WITH"),
    "Contains": _both_sides("CONTAINS"),
    "Like": _like_operands,
}


def kind_of(expression: Any) -> str:
    """Return the name of an expression's class."""
    return str(expression.getClass().getSimpleName())


def type_name(data_type: Any) -> str:
    """Return Delta's name of a type, which is that of Spark's JSON, with its collation."""
    return str(data_type.json()).strip('"')


def _zone_of(cast: Any) -> dt.tzinfo | None:
    """Return the zone by which times become dates, or None if it is unknown.

    A cast that needs no zone gets UTC.
    """
    name = cast.timeZoneId()
    try:
        return session_zone(str(name.get())) if name.isDefined() else dt.timezone.utc
    except UsageError:
        return None


def constant_of(literal: Any) -> Literal | None:
    """Return a literal of Catalyst or the connector API, or None for an unlisted type."""
    value = literal.value()
    if value is None:
        return Literal(None, "null")
    name = type_name(literal.dataType())
    return _parse_constant(str(value), name)  # `str` of a Java object is its `toString`


def _set_values(values: Any, name: str) -> list[Literal] | None:
    """Return the constants of a set, in one round trip, or None if one is unknown."""
    texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
    if len(texts) != values.size():
        return None  # a constant holds the separator, so the text can't be split
    nulls: list[Literal] = []
    if values.contains(None):
        texts.remove("null")
        nulls.append(Literal(None, "null"))
    known = [item for text in texts if (item := _parse_constant(text, name)) is not None]
    return None if len(known) < len(texts) else known + nulls


def _parse_constant(text: str, name: str) -> Literal | None:
    """Parse a constant from the text of Catalyst's value, or return None for an unlisted type."""
    if name == "string":
        return Literal(text, "string")
    if name == "boolean":
        return Literal(text.lower() == "true", "boolean")
    if name in _INTEGERS:
        return Literal(int(text), "integer")
    if name == "double":
        return Literal(float(text), "double")
    if name == "float":
        # The float 1.1 is 1.10000002384185791015625, and not 1.1.
        return Literal(round_to_float32(float(text)), "double")
    if name.startswith("decimal"):
        return Literal(Decimal(f"{Decimal(text):f}"), "decimal")
    if name == "date":
        return date_of_days(int(text))
    if name == "timestamp":
        return time_of_micros(int(text), "timestamp")
    return time_of_micros(int(text), "timestamp_ntz") if name == "timestamp_ntz" else None
