"""Typed values, one for each row, which are computed from Arrow columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType
from optimist.core.values.time_zones import instant, session_zone

__all__ = [
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "INTEGERS",
    "NULL",
    "STRING",
    "VOID",
    "Arguments",
    "Array",
    "Value",
    "columns_of",
    "computed",
    "constant_of",
    "fits_type",
    "integer_of",
    "one_array",
    "type_of_literal",
    "typed_constant",
]

Array: TypeAlias = Any
"""A pyarrow.Array or pyarrow.ChunkedArray."""
Compute: TypeAlias = Callable[[pa.Table], Array]

INTEGERS = ("byte", "short", "integer", "long")
"""The integer types, the narrowest first."""
BOOLEAN, DATE, DOUBLE = PrimitiveType("boolean"), PrimitiveType("date"), PrimitiveType("double")
STRING, VOID = PrimitiveType("string"), PrimitiveType("void")
_BITS = dict(zip(INTEGERS, (7, 15, 31, 63), strict=True))


@dataclass(frozen=True, slots=True)
class Value:
    """A value for each row.

    Attributes:
        data_type: The type of the values.
        compute: Returns the values for some rows, as an Arrow array of that type.
        columns: The paths of the columns that it needs.
        literal: The constant; None if it is not a constant.
        is_plain: Whether no `char(n)` and no text with a collation is in it.
        is_written: Whether it is a number as written, without a cast or an operator.
    """

    data_type: DataType
    compute: Compute
    columns: frozenset[tuple[str, ...]] = frozenset()
    literal: Literal | None = None
    is_plain: bool = True
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        values: The arguments.
        text: The call, for errors.
        zone: The time zone of the session.
    """

    values: Sequence[Value]
    text: str
    zone: str = "UTC"

    @property
    def types(self) -> list[DataType]:
        """The types of the arguments."""
        return [value.data_type for value in self.values]


def _make_nulls(rows: pa.Table) -> pa.Array:
    return pa.nulls(rows.num_rows)


NULL = Value(VOID, _make_nulls, literal=Literal(None, "null"))
"""The value of a bare NULL."""


def computed(
    data_type: DataType, arguments: Iterable[Value], kernel: Callable[..., Array]
) -> Value:
    """Make the value that a function of Arrow arrays gives for the arguments."""
    values = tuple(arguments)

    def compute(rows: pa.Table) -> Array:
        return kernel(*(value.compute(rows) for value in values))

    return Value(data_type, compute, columns_of(values))


def columns_of(values: Iterable[Value]) -> frozenset[tuple[str, ...]]:
    """Return the columns that any of the values needs."""
    return frozenset().union(*(value.columns for value in values))


def one_array(values: Array) -> pa.Array:
    """Return the values as one array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def constant_of(literal: Literal, zone: str = "UTC") -> Value:
    """Make a constant of its own type, as Spark reads it."""
    value = literal.value
    if value is None:
        return NULL
    if literal.kind == "timestamp" and isinstance(value, dt.datetime):
        value = instant(value, session_zone(zone))
    return typed_constant(Literal(value, literal.kind), type_of_literal(literal))


def integer_of(number: int, name: str) -> Value | None:
    """Make a constant of an integer type, or return None if the number does not fit safely.

    The smallest number of a type is left out: `-128Y` is valid, but `-CAST(128 AS TINYINT)`
    overflows.
    """
    is_safe = fits_type(abs(number), name)
    return typed_constant(Literal(number, "integer"), PrimitiveType(name)) if is_safe else None


def typed_constant(literal: Literal, data_type: DataType) -> Value:
    """Make a constant of the type that its author declared."""
    scalar = pa.scalar(literal.value, to_arrow_type(data_type))
    return Value(data_type, lambda rows: pa.repeat(scalar, rows.num_rows), literal=literal)


def type_of_literal(literal: Literal) -> DataType:
    """Return the type that Spark gives a constant."""
    value = literal.value
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = -exponent if isinstance(exponent, int) else 0
        return DecimalType(max(len(digits), scale), scale)
    if literal.kind == "integer" and isinstance(value, int):
        return PrimitiveType("integer" if fits_type(value, "integer") else "long")
    return PrimitiveType(literal.kind)


def fits_type(number: int, name: str) -> bool:
    """Tell whether an integer type holds a number."""
    limit = 1 << _BITS[name]
    return -limit <= number < limit
