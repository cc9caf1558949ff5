"""Casts of values to column types, as in Spark's store assignment (ANSI).

A value of another type is cast, and an error is raised if it does not fit. A cast that rounds, or
that depends on more than the value, is refused and left to Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.predicates.constants import cast_literal, round_to_float32
from optimist.core.predicates.functions.casts import cast_value
from optimist.core.predicates.functions.failures import does_not_fit
from optimist.core.predicates.functions.value import (
    INTEGERS,
    STRING,
    VOID,
    Arguments,
    Value,
    fits_type,
    type_of_literal,
)
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.column_mapping import without_mapping
from optimist.core.schema.types import (
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from optimist.core.values.decimals import exactly_at_scale, is_in_range
from optimist.core.values.time_zones import instant, session_zone

__all__ = ["Value", "stored_as"]

_EXACT_IN_DOUBLE = 2**53
_LONG_DIGITS = 19
_ONE_ROW = pa.table({"none": [None]})
_READ_FROM_TEXT = (*INTEGERS, "float", "double", "boolean", "date")


def stored_as(value: Value, target: DataType, what: str, zone: str = "UTC") -> Value:
    """Cast a value to the type of a column.

    Args:
        value: The value.
        target: The column's type.
        what: The name of the value or the column, for errors.
        zone: The session's time zone.

    Raises:
        UsageError: Only Spark can do the cast exactly (kind `OPTIMIST_NEEDS_SPARK`).
        SchemaError: The constant does not fit (kind `OPTIMIST_VALUE_DOES_NOT_FIT`). The computation
            raises it, too.
    """
    value = value.to_cast(target)
    if value.data_type == target or _without_mapping(value.data_type) == _without_mapping(target):
        return value
    arrow_type = to_arrow_type(target)
    read = _read_from_text(value, target, what)
    if value.literal is not None:
        if read is not None:
            constant = read.compute(_ONE_ROW)[0]
        else:
            literal = _as_instant(value.literal, target, zone)
            constant = pa.scalar(_cast_constant(literal, target, what), arrow_type)
        return Value(target, lambda rows: pa.repeat(constant, rows.num_rows))
    if read is not None:
        return read
    if not _is_exact_cast(value.data_type, target):
        raise _needs_spark(value.data_type, target, what)

    def compute(rows: pa.Table) -> Any:
        # Integers beyond 2^53 are rounded to the nearest double, as Java does.
        is_rounded = str(target) == "double"
        try:
            values = value.compute(rows)
            if str(value.data_type) in INTEGERS and isinstance(target, DecimalType):
                # Arrow requires room for the largest integer, even if all values fit.
                values = values.cast(pa.decimal256(_LONG_DIGITS + target.scale, target.scale))
            return values.cast(arrow_type, safe=not is_rounded)
        except pa.ArrowInvalid:
            raise does_not_fit(what, target) from None

    return Value(target, compute, value.columns)


def _without_mapping(data_type: DataType) -> StructType:
    """Remove the ids and physical names of fields, which values do not have."""
    return without_mapping(StructType((StructField("value", data_type),)))


def _read_from_text(value: Value, target: DataType, what: str) -> Value | None:
    """Return what a text means as another type, or None if that depends on more than the text."""
    is_known = isinstance(target, DecimalType) or str(target) in _READ_FROM_TEXT
    if value.data_type != STRING or not is_known:
        return None
    return cast_value(Arguments([value], what), target)


def _is_exact_cast(source: DataType, target: DataType) -> bool:
    """Tell whether Arrow's cast of a column equals Spark's, or fails where Spark's fails."""
    name, wanted = str(source), str(target)
    if source == VOID:
        return True
    if isinstance(target, DecimalType):
        is_finer = isinstance(source, DecimalType) and source.scale <= target.scale
        return is_finer or name in INTEGERS
    if name in INTEGERS:
        return wanted in (*INTEGERS, "double", "string")
    return (name, wanted) in (("float", "double"), ("boolean", "string"))


def _cast_constant(literal: Literal, target: DataType, what: str) -> object:
    """Cast the constant to a Python value of the type."""
    value, name = literal.value, str(target)
    if value is None or literal.kind == name != "integer":
        return value
    if isinstance(value, str):
        kind = "decimal" if isinstance(target, DecimalType) else name
        read = cast_literal(literal, kind)
        if read is None or (kind == "timestamp" and _is_naive(read.value)):
            raise _needs_spark(PrimitiveType("string"), target, what)
        return _cast_constant(read, target, what)
    cast = _to_decimal if isinstance(target, DecimalType) else _CASTS.get(name)
    found = None if cast is None else cast(literal, target, what)
    if found is None:
        raise _needs_spark(type_of_literal(literal), target, what)
    return found


def _is_naive(value: object) -> bool:
    return isinstance(value, dt.datetime) and value.tzinfo is None


def _to_decimal(literal: Literal, target: DataType, what: str) -> Decimal | None:
    if literal.kind not in ("integer", "decimal") or not isinstance(target, DecimalType):
        return None
    number = Decimal(str(literal.value))
    if not is_in_range(number, target.precision, target.scale):
        raise does_not_fit(what, target)
    try:
        return exactly_at_scale(number, target.scale)
    except InvalidOperation:
        return None  # Spark rounds it


def _to_integer(literal: Literal, target: DataType, what: str) -> int | None:
    value = literal.value
    if literal.kind not in ("integer", "decimal"):
        return None
    try:
        number = int(exactly_at_scale(Decimal(str(value)), 0))
    except InvalidOperation:
        return None  # Spark cuts off digits
    if not fits_type(number, str(target)):
        raise does_not_fit(what, target)
    return number


def _to_double(literal: Literal, target: DataType, what: str) -> float | None:  # noqa: ARG001
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return float(value)


def _to_float(literal: Literal, target: DataType, what: str) -> float | None:  # noqa: ARG001
    value = literal.value
    if isinstance(value, float):
        return round_to_float32(value)
    if literal.kind != "integer" or not isinstance(value, int) or abs(value) > _EXACT_IN_DOUBLE:
        return None
    return round_to_float32(float(value))


def _to_text(literal: Literal, target: DataType, what: str) -> str | None:  # noqa: ARG001
    value = literal.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value) if isinstance(value, int) else None


def _as_instant(literal: Literal, target: DataType, zone: str) -> Literal:
    """Return a wall-clock time as an instant, where a column of instants gets it."""
    value = literal.value
    is_wall = literal.kind == "timestamp_ntz" and isinstance(value, dt.datetime)
    if not is_wall or str(target) != "timestamp" or not isinstance(value, dt.datetime):
        return literal
    return Literal(instant(value, session_zone(zone)), "timestamp")


_CASTS: dict[str, Callable[[Literal, DataType, str], object]] = {
    **dict.fromkeys(INTEGERS, _to_integer),
    "double": _to_double,
    "float": _to_float,
    "string": _to_text,
}


def _needs_spark(source: DataType, target: DataType, what: str) -> UsageError:
    return UsageError(
        f"The value {quoted(what)} is of type {shown(source)}, and only Spark casts it to "
        f"{shown(target)}. {RUN_WITH_SPARK}",
        kind="OPTIMIST_NEEDS_SPARK",
        value=what,
    )
