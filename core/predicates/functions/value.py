"""Typed values, one for each row, which are computed from Arrow columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

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
    "computed_where",
    "constant_of",
    "fits_type",
    "integer_of",
    "one_array",
    "strict",
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
        may_fail: Whether some rows may have no value, only an error.
        unrounded: The whole numbers that were rounded to these floats, if they were.
    """

    data_type: DataType
    compute: Compute
    columns: frozenset[tuple[str, ...]] = frozenset()
    literal: Literal | None = None
    is_plain: bool = True
    is_written: bool = False
    may_fail: bool = True
    unrounded: Value | None = None

    def to_cast(self, target: DataType) -> Value:
        """Return what Spark casts to a type: it leaves out a cast to float before one to double."""
        return self.unrounded if self.unrounded is not None and target == DOUBLE else self


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


NULL = Value(VOID, _make_nulls, literal=Literal(None, "null"), may_fail=False)
"""The value of a bare NULL."""


def computed(
    data_type: DataType, arguments: Iterable[Value], kernel: Callable[..., Array]
) -> Value:
    """Make the value that a function of Arrow arrays gives for the arguments."""
    values = tuple(arguments)

    def compute(rows: pa.Table) -> Array:
        return kernel(*(value.compute(rows) for value in values))

    return Value(data_type, compute, columns_of(values))


def strict(
    data_type: DataType,
    arguments: Iterable[Value],
    kernel: Callable[..., Array],
    *,
    is_last_first: bool = False,
) -> Value:
    """Make the value of a function that is null where one of its arguments is.

    As in Spark, an argument is computed only for the rows where those before it are not null, so
    that it fails for no other row.

    Args:
        data_type: The type of the result.
        arguments: The arguments.
        kernel: Returns the result for the arrays of all arguments, in their order.
        is_last_first: Whether Spark computes the last argument first.
    """
    values = tuple(arguments)
    order = list(enumerate(values))
    if is_last_first:
        order.reverse()

    def compute(rows: pa.Table) -> Array:
        found: dict[int, Array] = {}
        is_open: Array | None = None
        for index, value in order:
            found[index] = _compute_open(value, rows, is_open)
            if found[index].null_count:
                is_valid = pc.is_valid(found[index])
                is_open = is_valid if is_open is None else pc.and_(is_open, is_valid)
        return kernel(*(found[index] for index in range(len(values))))

    return Value(data_type, compute, columns_of(values))


def _compute_open(value: Value, rows: pa.Table, is_open: Array | None) -> Array:
    if is_open is None or not value.may_fail:
        return value.compute(rows)
    return computed_where(value, rows, one_array(is_open))


def computed_where(value: Value, rows: pa.Table, mask: pa.Array) -> pa.Array:
    """Compute a value for some rows only; it is null in the others.

    Args:
        value: The value.
        rows: All rows.
        mask: Whether a row is wanted, never null.
    """
    found = one_array(value.compute(rows.filter(mask)))
    places = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1)
    return found.take(pc.if_else(mask, places, pa.scalar(None, pa.int64())))


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

    def compute(rows: pa.Table) -> Array:
        return pa.repeat(scalar, rows.num_rows)

    return Value(data_type, compute, literal=literal, may_fail=False)


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
