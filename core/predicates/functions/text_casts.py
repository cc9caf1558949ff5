"""Casts of texts to other types, for the forms that have one meaning; Spark trims ASCII blanks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.predicates.constants import MAX_PRECISION
from optimist.core.predicates.functions.decimals import ROOM, rounded_half_up
from optimist.core.predicates.functions.value import BOOLEAN, DATE, INTEGERS
from optimist.core.predicates.functions.wall_clocks import NTZ, TIMESTAMP, instants
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType
from optimist.core.values.decimals import largest

__all__ = ["Cast", "Read", "text_cast"]

Read: TypeAlias = tuple[pa.Array, pa.Array]
"""Values that fit, with null for others, and where there was a value that does not fit."""
Cast: TypeAlias = Callable[[pa.Array], Read]

_BLANKS_OF_JAVA = "".join(map(chr, range(33)))
_BLANKS = _BLANKS_OF_JAVA + "\x7f"
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_LONGEST = 38
_INTEGER = rf"^[+-]?[0-9]{{1,{_LONGEST}}}$"
_LONG_INTEGER = r"^[+-]?[0-9]+$"
_DOUBLE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?$"
_DATE = r"(?s)^(?P<y>[0-9]{4})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})(?:[ T].*)?)?)?$"
_DECIMAL = r"^[+-]?([0-9]{1,38}(\.[0-9]{0,38})?|\.[0-9]{1,38})$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?)?$"
)
_NEEDS_SPARK = r"^[+-]?[0-9]{4,7}(-|$)"
_SPECIAL = {"nan": "nan", "inf": "inf", "+inf": "inf", "-inf": "-inf"} | {
    "infinity": "inf",
    "+infinity": "inf",
    "-infinity": "-inf",
}


def text_cast(target: DataType, text: str, zone: str) -> Cast | None:
    """Return the cast of texts to a type, or None if only Spark has it.

    Args:
        target: The type.
        text: The expression, for errors.
        zone: The time zone of the session.
    """
    if isinstance(target, DecimalType):
        return lambda values: _to_decimals(values, target, text)
    if target == NTZ:
        return lambda values: _to_times(values, text)
    if target == TIMESTAMP:
        return lambda values: _to_instants(values, text, zone)
    if str(target) in INTEGERS:
        return lambda values: _to_integers(values, to_arrow_type(target), text)
    if target == BOOLEAN:
        return _to_booleans
    if target == DATE:
        return lambda values: _to_dates(values, text)
    if str(target) in ("float", "double"):
        return lambda values: _to_floats(values, to_arrow_type(target), text)
    return None


def _trimmed(values: pa.Array) -> pa.Array:
    return pc.utf8_trim(values, characters=_BLANKS)


def _is_like(values: pa.Array, pattern: str) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(values, pattern), False)


def _where(mask: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(mask, values, pa.scalar(None, values.type))


def _refuse_any(mask: pa.Array, text: str) -> None:
    if pc.any(mask, min_count=0).as_py():
        raise UsageError(
            f"The expression {quoted(text)} meets a text that only Spark casts. Nothing was "
            "changed. Use optimist.spark, or leave out such rows.",
            kind="OPTIMIST_NEEDS_SPARK",
            value=text,
        )


def _to_integers(values: pa.Array, target: pa.DataType, text: str) -> Read:
    plain = _trimmed(values)
    is_number = _is_like(plain, _INTEGER)
    _refuse_any(pc.and_not(_is_like(plain, _LONG_INTEGER), is_number), text)
    digits = pc.utf8_ltrim(_where(is_number, plain), characters="+")
    wide = digits.cast(pa.decimal256(ROOM, 0))
    half = 1 << (target.bit_width - 1)
    low, high = (pa.scalar(str(edge)).cast(pa.decimal256(ROOM, 0)) for edge in (-half, half - 1))
    fits = pc.fill_null(pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high)), False)
    return _where(fits, wide).cast(target), pc.and_not(values.is_valid(), fits)


def _to_booleans(values: pa.Array) -> Read:
    words = pc.ascii_lower(_trimmed(values))
    is_true = pc.is_in(words, value_set=pa.array(_TRUE))
    is_known = pc.or_(is_true, pc.is_in(words, value_set=pa.array(_FALSE)))
    return _where(is_known, is_true), pc.and_not(values.is_valid(), is_known)


def _to_dates(values: pa.Array, text: str) -> Read:
    plain = _trimmed(values)
    is_date = _is_like(plain, _DATE)
    _refuse_any(pc.and_not(_is_like(plain, _NEEDS_SPARK), is_date), text)
    parts = pc.extract_regex(_where(is_date, plain), _DATE)
    year, month, day = (_number_of(pc.struct_field(parts, [name])) for name in "ymd")
    padded = pc.binary_join_element_wise(
        pc.utf8_lpad(year.cast(pa.string()), 4, "0"),
        *(pc.utf8_lpad(part.cast(pa.string()), 2, "0") for part in (month, day)),
        "-",
    )
    found = pc.strptime(padded, format="%Y-%m-%d", unit="s", error_is_null=True)
    # The parser takes the 31st of each month for a date of the next one.
    dates = _where(pc.fill_null(pc.equal(pc.day(found), day), False), found).cast(pa.date32())
    is_wrong = pc.and_(values.is_valid(), dates.is_null())
    return dates, is_wrong


def _number_of(part: pa.Array) -> pa.Array:
    """Return the number of a part of a date, which is 1 if it is missing."""
    filled = pc.if_else(pc.equal(part, ""), "1", part)
    return filled.cast(pa.int32())


def _to_decimals(values: pa.Array, target: DecimalType, text: str) -> Read:
    plain = pc.utf8_trim(values, characters=_BLANKS_OF_JAVA)
    is_number = _is_like(plain, _DECIMAL)
    # Rare forms: `1e3`, more digits than a decimal has, and digits of other scripts.
    _refuse_any(pc.and_not(_is_like(plain, r"\p{Nd}"), is_number), text)
    digits = pc.utf8_ltrim(_where(is_number, plain), characters="+")
    wide = digits.cast(pa.decimal256(ROOM, MAX_PRECISION))
    exact = rounded_half_up(wide, target.scale).cast(pa.decimal256(ROOM, target.scale))
    edge = pa.scalar(largest(target.precision, target.scale), exact.type)
    fits = pc.and_(pc.less_equal(exact, edge), pc.greater_equal(exact, pc.negate(edge)))
    fits = pc.fill_null(fits, False)
    return _where(fits, exact).cast(to_arrow_type(target)), pc.and_not(values.is_valid(), fits)


def _to_instants(values: pa.Array, text: str, zone: str) -> Read:
    walls, is_wrong = _to_times(values, text)
    return instants(walls, zone), is_wrong


def _to_times(values: pa.Array, text: str) -> Read:
    """Read times without a zone; what else may be a time in Spark is refused."""
    plain = _trimmed(values)
    is_time = _is_like(plain, _TIME)
    _refuse_any(pc.and_not(_is_like(plain, "[0-9]"), is_time), text)
    day = pc.utf8_slice_codeunits(_where(is_time, plain), 0, 10)
    behind = pc.utf8_slice_codeunits(plain, 11, 26)
    known = pc.if_else(pc.equal(behind, ""), "00:00:00", behind)
    dates, _ = _to_dates(day, text)
    whole = pc.binary_join_element_wise(dates.cast(pa.string()), known, " ")
    return whole.cast(pa.timestamp("us")), pc.and_(values.is_valid(), dates.is_null())


def _to_floats(values: pa.Array, target: pa.DataType, text: str) -> Read:
    # Java's own parser trims fewer characters than Spark does for whole numbers.
    trimmed = pc.utf8_trim(values, characters=_BLANKS_OF_JAVA)
    plain = pc.ascii_lower(trimmed)
    is_number = _is_like(plain, _DOUBLE)
    # Java reads NaN with a sign only in these letters.
    plain = pc.if_else(pc.is_in(trimmed, value_set=pa.array(["+NaN", "-NaN"])), "nan", plain)
    is_special = pc.is_in(plain, value_set=pa.array(list(_SPECIAL)))
    # Java also reads forms such as `1d` and `0x1p3`.
    _refuse_any(pc.and_not(_is_like(plain, "[0-9]"), is_number), text)
    special = pa.array([_SPECIAL.get(str(item)) for item in plain.dictionary_encode().dictionary])
    numbers = _where(is_number, pc.utf8_ltrim(plain, characters="+"))
    named = pc.take(special.cast(pa.string()), plain.dictionary_encode().indices)
    found = pc.coalesce(numbers, named).cast(target)
    return found, pc.and_not(values.is_valid(), pc.or_(is_number, is_special))
