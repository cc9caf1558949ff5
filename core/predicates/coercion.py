"""Conversion of a comparison's constant into the type of the compared column.

Spark casts the two sides of a comparison to a common type. This module converts only the constant:
`int_col < 2.5` becomes `int_col <= 2`. It does so only if the answer is the same for every value,
with and without ANSI mode. Else the result is None: the answer is unknown.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from optimist.core.predicates.constants import (
    MAX_PRECISION,
    cast_literal,
    is_float32,
    timestamp_of_text,
)
from optimist.core.predicates.tree import ComparisonOp, Literal, LiteralKind
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType
from optimist.core.values.decimals import floor_to_scale, is_in_range
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG
from optimist.core.values.time_zones import instant
from optimist.core.values.zone_offsets import zone_offsets

__all__ = ["INTEGER_DIGITS", "Bound", "BoundValue", "bind", "bind_values", "start_of_day"]

INTEGER_DIGITS = {"byte": (7, 3), "short": (15, 5), "integer": (31, 10), "long": (63, 20)}
"""For each integer type: its bits without the sign, and the precision of its decimal form."""

_EXACT_IN_DOUBLE, _EXACT_IN_FLOAT = 2**53, 2**24
_SAFE_DIGITS = 15
_EPOCH = dt.datetime(1970, 1, 1)
_FLOAT_KINDS: tuple[LiteralKind, ...] = ("float", "double")
"""The narrower one comes first: it rounds more, and Spark without ANSI mode may choose it."""

BoundValue: TypeAlias = bool | int | float | Decimal | str | bytes | dt.date | dt.datetime


@dataclass(frozen=True, slots=True)
class Bound:
    """A comparison `column op value`, with `value` of the column's type.

    A float is a double even if the column is a float: Spark compares both as doubles. Timestamps
    are in UTC.
    """

    op: ComparisonOp
    value: BoundValue


Answer: TypeAlias = Bound | bool | None
"""A comparison, or its answer if all values but null have the same, or None if unknown."""


def bind(op: ComparisonOp, literal: Literal, data_type: DataType, zone: dt.tzinfo) -> Answer:
    """Convert a comparison with a non-null constant into the column's own type."""
    if isinstance(data_type, DecimalType):
        return _bind_decimal(op, literal, data_type)
    if not isinstance(data_type, PrimitiveType) or literal.value is None:
        return None
    name = data_type.name
    if literal.kind == "string" and name != "string":
        converted = _literal_from_text(literal, name, zone)
        return None if converted is None else bind(op, converted, data_type, zone)
    if name in INTEGER_DIGITS:
        return _bind_integer(op, literal, name)
    if name in ("float", "double"):
        return _bind_float(op, literal, name)
    if name in ("date", "timestamp", "timestamp_ntz"):
        return _bind_time(op, literal, name, zone)
    if name in ("string", "binary", "boolean") and literal.kind == name:
        return Bound(op, literal.value)
    return None


def bind_values(
    literals: tuple[Literal, ...], data_type: DataType, zone: dt.tzinfo
) -> tuple[BoundValue, ...] | None:
    """Return the constants of an IN list that the column can equal, or None if in doubt.

    Texts for a column of another type must be in canonical form, because without ANSI mode Spark
    compares such lists as text. It refuses such texts for a boolean. In a list with a
    floating-point number, integers are compared as floating-point numbers, too.
    """
    is_text = data_type == PrimitiveType("string")
    kinds = {literal.kind == "string" for literal in literals}
    if not is_text and len(kinds) > 1:
        return None
    if data_type == PrimitiveType("boolean") and True in kinds:
        return None
    if str(data_type) in INTEGER_DIGITS:
        literals = _unify_kinds(literals)
    if not _has_one_type(literals, data_type):
        return None
    answers = [bind("=", literal, data_type, zone) for literal in literals]
    if any(answer is None for answer in answers):
        return None
    bounds = [answer for answer in answers if isinstance(answer, Bound)]
    if not is_text and True in kinds:
        canonical = len(bounds) == len(literals) and all(
            _canonical_text(bound.value) == literal.value
            for bound, literal in zip(bounds, literals, strict=True)
        )
        return tuple(bound.value for bound in bounds) if canonical else None
    return tuple(bound.value for bound in bounds)


def _unify_kinds(literals: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """Convert the numbers of a list to floating-point numbers, if one of them is one."""
    kinds = {literal.kind for literal in literals}
    for kind in _FLOAT_KINDS:
        if kind in kinds:
            return tuple(cast_literal(item, kind) or item for item in literals)
    return literals


def _has_one_type(literals: tuple[Literal, ...], data_type: DataType) -> bool:
    """Return whether Spark's common type of the column and the list keeps all of them distinct."""
    kinds = {literal.kind for literal in literals}
    is_decimal = isinstance(data_type, DecimalType)
    if not kinds <= {"integer", "decimal", *_FLOAT_KINDS} or not (is_decimal or "decimal" in kinds):
        return True
    numbers = [_decimal_digits(item) for item in literals]
    if is_decimal and kinds & set(_FLOAT_KINDS):  # as doubles
        return all(whole + scale <= _SAFE_DIGITS for whole, scale in numbers)
    if isinstance(data_type, DecimalType):
        numbers.append((data_type.precision - data_type.scale, data_type.scale))
    elif str(data_type) in INTEGER_DIGITS:
        numbers.append((INTEGER_DIGITS[str(data_type)][1], 0))
    return max(item[0] for item in numbers) + max(item[1] for item in numbers) <= MAX_PRECISION


def _decimal_digits(literal: Literal) -> tuple[int, int]:
    """Return how many digits Spark's decimal of a number has before and after the point."""
    value = literal.value
    if isinstance(value, int):
        is_long = not -(2**31) <= value < 2**31
        return INTEGER_DIGITS["long" if is_long else "integer"][1], 0
    _, digits, exponent = Decimal(str(value)).as_tuple()
    scale = max(0, -exponent) if isinstance(exponent, int) else MAX_PRECISION
    return max(0, len(digits) - scale), scale


def _canonical_text(value: BoundValue) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dt.datetime, float, Decimal, bytes)):
        return None
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _constant_answer(op: ComparisonOp, column_is: str) -> bool:
    """Return the answer if every value of the column is less (or greater) than the constant."""
    if op in ("=", "<>"):
        return op == "<>"
    return op.startswith("<" if column_is == "less" else ">")


def _compare_with_floor(op: ComparisonOp, floor: BoundValue, is_exact: bool) -> Answer:
    """Compare with a constant that is `floor`, or lies between it and the next value."""
    if is_exact:
        return Bound(op, floor)
    if op in ("=", "<>"):
        return op == "<>"
    return Bound("<=" if op.startswith("<") else ">", floor)


def _literal_from_text(literal: Literal, name: str, zone: dt.tzinfo) -> Literal | None:
    text = str(literal.value)
    if name in ("float", "double"):
        converted = cast_literal(literal, "double")
        is_same_in_both = converted is not None and is_float32(float(str(converted.value)))
        return converted if name == "double" or is_same_in_both else None
    if name == "timestamp_ntz":
        # Without ANSI mode Spark drops a zone in the text, so don't guess.
        value = timestamp_of_text(text)
        is_plain = value is not None and value.tzinfo is None
        return Literal(value, "timestamp_ntz") if is_plain else None
    if name == "timestamp":
        value = timestamp_of_text(text)
        return None if value is None else Literal(instant(value, zone), "timestamp")
    return None if name == "binary" else cast_literal(literal, name)


def _bind_integer(op: ComparisonOp, literal: Literal, name: str) -> Answer:
    bits, precision = INTEGER_DIGITS[name]
    value = literal.value
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return _constant_answer(op, "greater" if value == -math.inf else "less")
        # Spark casts the column to the literal's type, which rounds integers beyond this limit.
        limit = _EXACT_IN_FLOAT if literal.kind == "float" else _EXACT_IN_DOUBLE
        if abs(value) >= limit and (bits > 31 or literal.kind == "float"):
            return None
        number = Decimal.from_float(value)
    elif literal.kind in ("integer", "decimal"):
        number = Decimal(str(value))
        if literal.kind == "decimal" and not _is_comparable_exactly(number, precision, 0):
            return None
    else:
        return None
    if op not in ("=", "<>") and literal.kind == "decimal" and not _is_long(number):
        return None  # Spark gives the same answer for all values, also for null
    low, high = Decimal(-(2**bits)), Decimal(2**bits - 1)
    if number < low or number > high:
        return _constant_answer(op, "less" if number > high else "greater")
    floor = math.floor(number)
    return _compare_with_floor(op, floor, number == floor)


def _is_long(number: Decimal) -> bool:
    return SMALLEST_LONG <= number <= LARGEST_LONG


def _bind_float(op: ComparisonOp, literal: Literal, name: str) -> Answer:
    value = literal.value
    if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool):
        return None
    # Spark may compare an integer with a float column as floats, which round beyond this limit.
    if isinstance(value, int) and name == "float" and abs(value) > _EXACT_IN_FLOAT:
        return None
    return Bound(op, float(value))


def _bind_decimal(op: ComparisonOp, literal: Literal, data_type: DecimalType) -> Answer:
    if literal.kind == "string":
        converted = cast_literal(literal, "decimal")
        if converted is None:
            return None
        # Spark compares these as doubles, which distinguish numbers of up to 15 digits.
        digits = Decimal(str(converted.value)).as_tuple().digits
        if max(data_type.precision, len(digits)) > _SAFE_DIGITS:
            return None
        literal = converted
    value = literal.value
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return _constant_answer(op, "greater" if value == -math.inf else "less")
        is_safe = value.is_integer() and abs(value) < 10**_SAFE_DIGITS
        if not is_safe or data_type.precision > _SAFE_DIGITS:
            return None
        value = int(value)
    elif literal.kind not in ("integer", "decimal"):
        return None
    number = Decimal(str(value))
    if not _is_comparable_exactly(number, data_type.precision, data_type.scale):
        return None
    return _bind_to_scale(op, number, data_type)


def _bind_to_scale(op: ComparisonOp, number: Decimal, data_type: DecimalType) -> Answer:
    precision, scale = data_type.precision, data_type.scale
    if not is_in_range(number, precision, scale):
        return _constant_answer(op, "less" if number > 0 else "greater")
    floor = floor_to_scale(number, scale)
    if not is_in_range(floor, precision, scale):
        return _constant_answer(op, "greater")
    return _compare_with_floor(op, floor, floor == number)


def _is_comparable_exactly(number: Decimal, precision: int, scale: int) -> bool:
    """Return whether Spark's common type of both decimals holds every digit of both."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):  # NaN or infinite
        return False
    own_scale = max(0, -exponent)
    own_whole = max(0, len(digits) + exponent)
    return max(own_whole, precision - scale) + max(own_scale, scale) <= MAX_PRECISION


def _bind_time(op: ComparisonOp, literal: Literal, name: str, zone: dt.tzinfo) -> Answer:
    try:
        return _TIME_BINDERS[name](op, literal, zone)
    except OverflowError:
        return None


def _bind_date(op: ComparisonOp, literal: Literal, zone: dt.tzinfo) -> Answer:
    value = literal.value
    if not isinstance(value, dt.datetime):
        return Bound(op, value) if isinstance(value, dt.date) else None
    if literal.kind == "timestamp_ntz":
        return _compare_with_floor(op, value.date(), value.time() == dt.time())
    moment = instant(value, zone)
    day = _last_day_begun(moment, zone)
    is_exact = start_of_day(day, zone) == moment
    one_day = dt.timedelta(days=1)
    if is_exact and day > dt.date.min and start_of_day(day - one_day, zone) == moment:
        return None  # the clocks skip the day before, so both days are equal to the constant
    return _compare_with_floor(op, day, is_exact)


def _last_day_begun(moment: dt.datetime, zone: dt.tzinfo) -> dt.date:
    """Return the last day that begins at or before an instant.

    Clocks that are turned back past midnight show the day before again.
    """
    day = moment.astimezone(zone).date()
    following = min(day, dt.date.max - dt.timedelta(days=1)) + dt.timedelta(days=1)
    return following if start_of_day(following, zone) <= moment else day


def _bind_timestamp(op: ComparisonOp, literal: Literal, zone: dt.tzinfo) -> Answer:
    value = literal.value
    if isinstance(value, dt.datetime):
        return Bound(op, instant(value, zone))
    return Bound(op, start_of_day(value, zone)) if isinstance(value, dt.date) else None


def _bind_timestamp_ntz(op: ComparisonOp, literal: Literal, zone: dt.tzinfo) -> Answer:
    value = literal.value
    if isinstance(value, dt.datetime):
        if literal.kind == "timestamp_ntz":
            return Bound(op, value)
        # Spark reads the column in the session's zone; the order stays only if its clocks never
        # change.
        is_steady = isinstance(zone, dt.timezone)
        wall_clock = instant(value, zone).astimezone(zone).replace(tzinfo=None)
        return Bound(op, wall_clock) if is_steady else None
    return Bound(op, dt.datetime.combine(value, dt.time())) if isinstance(value, dt.date) else None


def start_of_day(day: dt.date, zone: dt.tzinfo) -> dt.datetime:
    """Return the instant at which a day begins: where the clocks skip midnight, a later one."""
    midnight = dt.datetime.combine(day, dt.time())
    if not isinstance(zone, ZoneInfo):
        return instant(midnight, zone)
    micros = np.array([(midnight - _EPOCH) // dt.timedelta(microseconds=1)])
    (found,) = zone_offsets(zone.key).starts_of_days(micros).tolist()
    return (_EPOCH + dt.timedelta(microseconds=found)).replace(tzinfo=dt.timezone.utc)


_TIME_BINDERS: dict[str, Callable[[ComparisonOp, Literal, dt.tzinfo], Answer]] = {
    "date": _bind_date,
    "timestamp": _bind_timestamp,
    "timestamp_ntz": _bind_timestamp_ntz,
}
