"""The table of functions and operators that this engine computes exactly as Spark does.

Each has one meaning, that of Spark in ANSI mode. docs/functions.md has the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import pyarrow.compute as pc

from optimist.core.predicates.functions import (
    arithmetic,
    bits,
    choices,
    collections,
    comparisons,
    dates,
    digests,
    maps,
    month_spans,
    rounding,
    texts,
)
from optimist.core.predicates.functions import formatted_times as times
from optimist.core.predicates.functions.hash_mixers import MURMUR3, XXHASH64
from optimist.core.predicates.functions.hashes import hashed
from optimist.core.predicates.functions.moved_times import moved_by_days
from optimist.core.predicates.functions.patterns import (
    extracted,
    matched_by_pattern,
    replaced_by_pattern,
)
from optimist.core.predicates.functions.value import BOOLEAN, Arguments, Value

__all__ = ["FUNCTIONS", "Function", "call", "find"]

Build: TypeAlias = Callable[[Arguments], Value | None]
_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Function:
    """One function or operator.

    Attributes:
        names: Its names; operators are in capitals.
        takes: The arguments that it takes, for the documentation.
        gives: The type of its result, for the documentation.
        build: Returns its value for some arguments, or None for types that it does not take.
        counts: The fewest and the most arguments.
        takes_chars: Whether `char(n)` and text with a collation have no other meaning in it.
    """

    names: tuple[str, ...]
    takes: str
    gives: str
    build: Build
    counts: tuple[int, int]
    takes_chars: bool = False


_SUMMED = "two numbers; a date and an int; a date or time and an interval"
_ANY, _NUMBERS, _WHOLE = "any type", "numbers", "integers, decimals"
_ROUNDED = "integers, decimals; doubles and digits >= 0"
_WIDER, _TRUTH = "the common type", "boolean"
_TEXT, _TEXTS_OF_ONE, _INT = "string", "a text", "int"
_TEXTS: tuple[Function, ...] = (
    Function(("concat", "||"), "texts", _TEXT, texts.concat, (1, _MANY), True),
    Function(("concat_ws",), "a constant; texts", _TEXT, texts.concat_ws, (2, _MANY)),
    *(
        Function(names, _TEXTS_OF_ONE, _TEXT, partial(texts.mapped, kernel), (1, 1))
        for names, kernel in (
            (("upper", "ucase"), pc.utf8_upper),
            (("lower", "lcase"), pc.utf8_lower),
        )
    ),
    Function(("initcap",), _TEXTS_OF_ONE, _TEXT, texts.initials, (1, 1)),
    Function(("reverse",), _TEXTS_OF_ONE, _TEXT, partial(texts.plain, pc.utf8_reverse), (1, 1)),
    *(
        Function(names, _TEXTS_OF_ONE, _INT, partial(texts.measured, kernel), (1, 1))
        for names, kernel in (
            (("length", "char_length", "character_length", "len"), pc.utf8_length),
            (("octet_length",), pc.binary_length),
        )
    ),
    *(
        Function((name,), takes, _TEXT, partial(texts.trimmed, kernel), (1, most))
        for name, kernel, takes, most in (
            ("trim", pc.utf8_trim, _TEXTS_OF_ONE, 1),
            ("ltrim", pc.utf8_ltrim, _TEXTS_OF_ONE, 1),
            ("rtrim", pc.utf8_rtrim, _TEXTS_OF_ONE, 1),
            ("trim(LEADING ...)", pc.utf8_ltrim, "a text; a constant text", 2),
            ("trim(TRAILING ...)", pc.utf8_rtrim, "a text; a constant text", 2),
            ("btrim", pc.utf8_trim, "a text; a constant text", 2),
        )
    ),
    Function(("substring", "substr"), "a text; constant ints", _TEXT, texts.substring, (2, 3)),
    Function(("left",), "a text; a constant int", _TEXT, texts.left, (2, 2)),
    Function(("right",), "a text; a constant int", _TEXT, texts.right, (2, 2)),
    Function(("replace",), "a text; constant texts", _TEXT, texts.replace, (2, 3)),
    Function(("translate",), "a text; constant texts", _TEXT, texts.translated, (3, 3)),
    Function(("repeat",), "a text; a constant int", _TEXT, texts.repeat, (2, 2)),
    *(
        Function(
            (name,),
            "a text; a constant int; one constant character",
            _TEXT,
            partial(texts.padded, kernel),
            (2, 3),
        )
        for name, kernel in (("lpad", pc.utf8_lpad), ("rpad", pc.utf8_rpad))
    ),
    Function(
        ("split_part",), "a text; a constant text and int >= 1", _TEXT, texts.split_part, (3, 3)
    ),
    Function(("instr",), "a text; a constant text", _INT, texts.instr, (2, 2)),
    Function(("locate", "position"), "a constant text; a text", _INT, texts.locate, (2, 2)),
    *(
        Function((name,), "a text; a constant text", _TRUTH, partial(texts.matched, kernel), (2, 2))
        for name, kernel in (
            ("startswith", pc.starts_with),
            ("endswith", pc.ends_with),
            ("contains", pc.match_substring),
        )
    ),
    Function(("LIKE", "like"), "a text; a constant pattern", _TRUTH, texts.like, (2, 3)),
    Function(("ILIKE", "ilike"), "a text; a constant pattern", _TRUTH, texts.ilike, (2, 3)),
)
_BYTES = "a text, a binary"
_DIGESTS: tuple[Function, ...] = (
    Function(("md5",), _BYTES, _TEXT, partial(digests.by_bytes, digests.md5), (1, 1)),
    Function(("sha1", "sha"), _BYTES, _TEXT, partial(digests.by_bytes, digests.sha1), (1, 1)),
    Function(("sha2",), f"{_BYTES}; a constant int", _TEXT, digests.sha2, (2, 2)),
    Function(("crc32",), _BYTES, "bigint", digests.crc32, (1, 1)),
    Function(("base64",), f"{_BYTES}, of at most 57 bytes", _TEXT, digests.as_base64, (1, 1)),
    Function(("unbase64",), "a text in Base64", "binary", digests.unbased, (1, 1)),
    Function(("hex",), f"{_BYTES}, an integer", _TEXT, digests.hexed, (1, 1)),
    Function(("unhex",), _TEXTS_OF_ONE, "binary", digests.unhexed, (1, 1)),
    Function(("hash",), "any types but maps", _INT, partial(hashed, MURMUR3), (1, _MANY)),
    Function(("xxhash64",), "any types but maps", "bigint", partial(hashed, XXHASH64), (1, _MANY)),
)
_REGEX = "a text; a constant pattern with one meaning in Java and RE2"
_PATTERNS: tuple[Function, ...] = (
    Function(
        ("RLIKE", "rlike", "regexp", "regexp_like"), _REGEX, _TRUTH, matched_by_pattern, (2, 2)
    ),
    Function(
        ("regexp_replace",),
        f"{_REGEX}; a constant text without `$` and `\\`",
        _TEXT,
        replaced_by_pattern,
        (3, 3),
    ),
    Function(("regexp_extract",), f"{_REGEX}; a constant int", _TEXT, extracted, (2, 3)),
)
_COLLECTION, _ITEM = "an array and an int; a map and a key", "the element's type"
_COLLECTIONS: tuple[Function, ...] = (
    Function(("size", "cardinality"), "an array, a map", _INT, collections.size, (1, 1)),
    Function(("array_size",), "an array", _INT, collections.size_of_array, (1, 1)),
    Function(
        ("array_contains",), "an array; a value of its type", _TRUTH, collections.contains, (2, 2)
    ),
    Function(
        ("map_contains_key",), "a map; a key of its type", _TRUTH, collections.has_key, (2, 2)
    ),
    Function(("[]",), _COLLECTION, _ITEM, collections.item_at, (2, 2)),
    Function(
        ("get",), "an array and an int", f"{_ITEM}, or null", collections.item_or_null, (2, 2)
    ),
    Function(
        ("try_element_at",), _COLLECTION, f"{_ITEM}, or null", collections.element_or_null, (2, 2)
    ),
    Function(("element_at",), _COLLECTION, _ITEM, collections.element_at, (2, 2)),
    Function(
        ("map",), "keys and values in turn, each of one type", "a map", maps.map_of, (2, _MANY)
    ),
    Function(
        ("map_from_arrays",),
        "an array of keys, an array of values",
        "a map",
        maps.map_from_arrays,
        (2, 2),
    ),
    Function(("map_keys",), "a map", "an array", collections.keys_of, (1, 1)),
    Function(("map_values",), "a map", "an array", collections.values_of, (1, 1)),
    Function(
        ("named_struct",),
        "constant names and values in turn",
        "a struct",
        collections.named_struct,
        (2, _MANY),
    ),
    Function(("array",), "values of one type", "an array", collections.array_of, (1, _MANY)),
)
_DAY, _DAYS = "a date, a time", "a date or time; int"
_DATES: tuple[Function, ...] = (
    Function(("to_date", "date"), _DAY, "date", dates.to_date, (1, 1)),
    *(
        Function(names, _DAY, _INT, partial(dates.day_part, kernel), (1, 1))
        for names, kernel in (
            (("year",), pc.year),
            (("quarter",), pc.quarter),
            (("month",), pc.month),
            (("day", "dayofmonth"), pc.day),
            (("dayofweek",), partial(pc.day_of_week, count_from_zero=False, week_start=7)),
            (("weekday",), partial(pc.day_of_week, count_from_zero=True, week_start=1)),
            (("dayofyear",), pc.day_of_year),
            (("weekofyear",), pc.iso_week),
        )
    ),
    *(
        Function((name,), "a time", _INT, partial(dates.time_part, kernel), (1, 1))
        for name, kernel in (("hour", pc.hour), ("minute", pc.minute), ("second", pc.second))
    ),
    Function(("last_day",), _DAY, "date", dates.last_day, (1, 1)),
    Function(("next_day",), f"{_DAY}; a constant day", "date", dates.next_day, (2, 2)),
    Function(("date_add", "dateadd"), _DAYS, "date", partial(dates.moved, 1), (2, 2)),
    Function(("date_sub",), _DAYS, "date", partial(dates.moved, -1), (2, 2)),
    Function(("add_months",), _DAYS, "date", dates.add_months, (2, 2)),
    Function(("datediff", "date_diff"), "two dates or times", _INT, dates.datediff, (2, 2)),
    Function(
        ("months_between",),
        "two dates or times; a constant boolean",
        "double",
        month_spans.months_between,
        (2, 3),
    ),
    Function(("make_date",), "three ints", "date", dates.make_date, (3, 3)),
    Function(("unix_date",), "a date", _INT, dates.unix_date, (1, 1)),
    Function(("date_from_unix_date",), "an int", "date", dates.date_of_number, (1, 1)),
    *(
        Function((name,), "a timestamp", "bigint", partial(dates.unix_time, micros), (1, 1))
        for name, micros in (
            ("unix_micros", 1),
            ("unix_millis", 1_000),
            ("unix_seconds", 1_000_000),
        )
    ),
    *(
        Function(
            (name,), "an integer", "timestamp", partial(times.timestamp_of_number, micros), (1, 1)
        )
        for name, micros in (
            ("timestamp_micros", 1),
            ("timestamp_millis", 1_000),
            ("timestamp_seconds", 1_000_000),
        )
    ),
    Function(("unix_timestamp", "to_unix_timestamp"), _DAY, "bigint", times.unix_timestamp, (1, 1)),
    Function(
        ("from_unixtime",), "an integer; a constant pattern", _TEXT, times.from_unixtime, (1, 2)
    ),
    Function(("date_format",), f"{_DAY}; a constant pattern", _TEXT, times.formatted, (2, 2)),
    Function(("trunc",), "a date or time; a constant unit", "date", dates.trunc, (2, 2)),
    Function(
        ("date_trunc",), "a constant unit; a timestamp", "timestamp", dates.date_trunc, (2, 2)
    ),
)
_TABLE: tuple[Function, ...] = (
    *(
        Function((sign,), _SUMMED, _WIDER, partial(moved_by_days, step, plain), (2, 2))
        for sign, step, plain in (("+", 1, arithmetic.added), ("-", -1, arithmetic.subtracted))
    ),
    Function(("*",), "two numbers", _WIDER, arithmetic.multiplied, (2, 2)),
    Function(("/",), "two numbers", "double, decimal", arithmetic.divided, (2, 2)),
    Function(("DIV", "div"), "two integers", "bigint", arithmetic.divided_whole, (2, 2)),
    Function(("%", "mod"), "two numbers", _WIDER, arithmetic.remainder, (2, 2)),
    Function(("pmod",), "two numbers", _WIDER, arithmetic.pmod, (2, 2)),
    Function(("-x", "negative"), "a number", "its type", arithmetic.negated, (1, 1)),
    Function(("+x", "positive"), "a number", "its type", arithmetic.positive, (1, 1)),
    Function(("abs",), "a number", "its type", arithmetic.absolute, (1, 1)),
    Function(("sqrt",), "a number", "double", arithmetic.square_root, (1, 1)),
    Function(("sign", "signum"), "a number", "double", arithmetic.sign, (1, 1)),
    Function(("ceil", "ceiling"), "a number", "bigint, decimal", rounding.ceil, (1, 1)),
    Function(("floor",), "a number", "bigint, decimal", rounding.floor, (1, 1)),
    Function(("round",), _ROUNDED, "its type", rounding.rounded, (1, 2)),
    Function(("bround",), _ROUNDED, "its type", rounding.bround, (1, 2)),
    *(
        Function((op,), "two values of one type", _TRUTH, partial(comparisons.compared, op), (2, 2))
        for op in comparisons.KERNELS
    ),
    Function(
        ("<=>", "equal_null"),
        "two values of one type",
        _TRUTH,
        comparisons.equal_null_safe,
        (2, 2),
    ),
    Function(("IN",), "values of one type", _TRUTH, comparisons.is_in, (2, _MANY)),
    Function(("IS NULL", "isnull"), _ANY, _TRUTH, comparisons.is_null, (1, 1), True),
    Function(("greatest",), "values of one type", _WIDER, comparisons.greatest, (2, _MANY)),
    Function(("least",), "values of one type", _WIDER, comparisons.least, (2, _MANY)),
    Function(("isnan",), "a float, a double", _TRUTH, bits.is_nan, (1, 1)),
    Function(("nullifzero",), "an integer, a double", "its type", bits.null_if_zero, (1, 1)),
    Function(("zeroifnull",), "an integer, a double", _WIDER, bits.zero_if_null, (1, 1)),
    *(
        Function((name,), "two integers", _WIDER, partial(bits.bitwise, kernel), (2, 2))
        for name, kernel in (
            ("&", pc.bit_wise_and),
            ("|", pc.bit_wise_or),
            ("^", pc.bit_wise_xor),
        )
    ),
    Function(("~x",), "an integer", "its type", bits.inverted, (1, 1)),
    Function(("AND",), "booleans", _TRUTH, choices.conjunction, (2, _MANY)),
    Function(("OR",), "booleans", _TRUTH, choices.disjunction, (2, _MANY)),
    Function(("NOT",), "a boolean", _TRUTH, choices.not_, (1, 1)),
    Function(("coalesce",), "values of one type", _WIDER, choices.coalesce, (1, _MANY), True),
    Function(("nvl", "ifnull"), "two values of one type", _WIDER, choices.coalesce, (2, 2), True),
    Function(("nvl2",), "any type; two values of one type", _WIDER, choices.nvl2, (3, 3), True),
    Function(("nullif",), "two values of one type", "the first type", choices.nullif, (2, 2)),
    *_TEXTS,
    *_PATTERNS,
    *_DIGESTS,
    *_COLLECTIONS,
    *_DATES,
)


def _by_name() -> Mapping[str, Function]:
    return MappingProxyType({name: item for item in _TABLE for name in item.names})


FUNCTIONS = _by_name()
"""The functions by each of their names."""


def find(name: str) -> Function | None:
    """Return the function of a name, or None if only Spark computes it."""
    return FUNCTIONS.get(name)


def call(name: str, given: Arguments) -> Value | None:
    """Return the value of a call, or None if only Spark knows it for these arguments."""
    function = FUNCTIONS.get(name)
    if function is None or not function.counts[0] <= len(given.values) <= function.counts[1]:
        return None
    is_plain = all(value.is_plain for value in given.values)
    if not is_plain and not function.takes_chars:
        return None
    found = function.build(given)
    # A copy of such a text, or text that is joined to it, compares as the text itself does.
    stays_plain = is_plain or found is None or found.data_type == BOOLEAN
    return found if stays_plain or found is None else replace(found, is_plain=False)
