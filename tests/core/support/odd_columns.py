"""A table of odd values of each type, and its answers as texts, for a comparison with Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.letters import SAFE_RANGES

__all__ = ["ERROR", "ODD_ROWS", "as_texts"]

ERROR = False
"""Stands for an error in a list of answers; null is None, and every other answer a text."""
NUM_ROWS = 120
_FEW_LETTERS, _STEP = 900, 97
_EPOCH = dt.date(1970, 1, 1)
_TEXTS = [
    "", " ", "a", "A", "abc", "ABC", "aBc dEf", "  ab ", "%", "_", "a_c", "a%c", "\\", "a\\c",
    "\u00e9", "e\u0301", "\u00df", "\u0130", "\u03c3\u03c2", "\U0001f600",
    "a\U0001f600b", "\U0001d11e", "\t\n", "x" * 40, "0", "abcabc", "bc", ",", "a,b,,c",
    "\u00a0", "\ufeff", "\u4e2d\u6587", None,
]  # fmt: skip
_NUMBERS = [
    "0", "1", "-1", "+7", " 12 ", "127", "128", "-128", "32768", "2147483647", "2147483648",
    "9223372036854775807", "9223372036854775808", "1.5", "-0.5", "1e3", "1E-2", ".5", "5.", "", " ",
    "abc", "NaN", "Infinity", "-inf", "1d", "0x1F", "1_000", "\t5\n",
    "123456789012345678901234567890", "1.005", "99.995", None,
]  # fmt: skip
_DAYS = [
    "2024-02-29", "2024-2-9", "2024-02", "2024", "2023-02-29", "1970-01-01", "0001-01-01",
    "9999-12-31", "1582-10-10", " 2024-03-01 ", "2024-03-01 10:11:12", "2024-03-01T10:11:12.345",
    "2024-03-01T01:02:03Z", "2024-03-01 23:30:00+02:00", "20240301", "abc", "", "true", "FALSE",
    "t", "no", "1", None,
]  # fmt: skip
_DATES = [
    "0001-01-01", "0004-02-29", "1000-02-28", "1500-02-28", "1582-10-04", "1582-10-15",
    "1600-12-31", "1899-12-31", "1969-12-31", "1970-01-01", "1970-01-02", "1999-12-31",
    "2000-01-01", "2000-02-29", "2015-12-31", "2016-01-01", "2020-12-28", "2021-01-03",
    "2023-01-31", "2024-02-29", "2024-03-31",
    "2024-12-30", "2026-01-01", "2100-02-28", "9999-12-31", None,
]  # fmt: skip
_TIMES = [
    "0001-01-01T00:00:00.000000", "1582-10-10T12:00:00.000001", "1900-01-01T00:00:00.999999",
    "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000000", "1970-01-01T00:00:00.000001",
    "1999-12-31T23:59:59.500000", "2024-02-29T12:34:56.789012", "2024-03-10T02:30:00.000000",
    "2024-03-31T01:30:00.000000", "2024-10-27T00:30:00.000000", "2024-10-27T01:30:00.123000",
    "2024-11-03T01:30:00.000000", "2026-06-30T23:59:59.000000", "9999-12-31T23:59:59.999999", None,
]  # fmt: skip
_INF, _NAN = float("inf"), float("nan")
_DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 3.7, -3.7, 1e-300, 1e300, -1e300, 5e-324,
    9007199254740993.0, 9.3e18, -9.3e18, 9223372036854775808.0,
    -9223372036854775808.0, 4.9e9, 1.7976931348623157e308, _INF, -_INF, _NAN, None,
]  # fmt: skip
_FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 0.1, 3.7, 16777216.0, 1e-30, 3e38, -3e38, _INF, -_INF,
    _NAN, None,
]  # fmt: skip
_SMALL = [
    "0.00",
    "0.01",
    "-0.01",
    "0.05",
    "-0.05",
    "1.00",
    "2.50",
    "-2.50",
    "99.99",
    "999.99",
    "-999.99",
]


def _integers(bits: int) -> list[int | None]:
    high = 2 ** (bits - 1) - 1
    return [0, 1, -1, 2, -2, 3, 7, -7, 10, 100, high, high - 1, -high, -high - 1, None]


def _decimals(precision: int, scale: int) -> list[Decimal | None]:
    """Return the least and the greatest numbers of a type, and some between them."""
    digits = [0, 1, -1, 5, -5, 25, 10**scale, -(10**scale), 3 * 10**scale // 2]
    digits += [
        10**precision - 1,
        -(10**precision - 1),
        10 ** (precision - 1),
        7 * 10 ** (precision // 2),
    ]
    kept = [number for number in digits if abs(number) < 10**precision]
    return [*(Decimal(f"{number}E-{scale}") for number in kept), None]


def _days(texts: Sequence[str | None]) -> list[dt.date | None]:
    return [None if text is None else dt.date.fromisoformat(text) for text in texts]


def _moments(zone: dt.tzinfo | None) -> list[dt.datetime | None]:
    found = [None if text is None else dt.datetime.fromisoformat(text) for text in _TIMES]
    return [None if item is None else item.replace(tzinfo=zone) for item in found]


def _spread(values: Sequence[Any], step: int) -> list[Any]:
    """Repeat values in an order that differs from step to step."""
    count = len(values)
    return [values[(row * step + (row // count) * (step - 1)) % count] for row in range(NUM_ROWS)]


def _letters() -> list[str]:
    """Spread over the rows all letters whose case Arrow changes as Java does."""
    low = [
        chr(point)
        for first, last in SAFE_RANGES
        for point in range(first, last + 1, 1 if last - first < _FEW_LETTERS else _STEP)
    ]
    rare = [chr(point) for point in (0xDF, 0x130, 0x131, 0x149, 0x1F0, 0x3A3, 0x3C2, 0x1E9E)]
    size = len(low) // (NUM_ROWS - len(rare)) + 1
    texts = ["".join(low[at : at + size]) for at in range(0, len(low), size)]
    return [*texts, *rare, *("" for _ in range(NUM_ROWS))][:NUM_ROWS]


def _odd_rows() -> pa.Table:
    columns: dict[str, pa.Array] = {}

    def add(name: str, values: Sequence[Any], arrow_type: pa.DataType, count: int = 2) -> None:
        for index, step in zip(range(1, count + 1), (1, 2, 7), strict=False):
            columns[f"{name}{index}"] = pa.array(_spread(values, step), arrow_type)

    for name, bits in (("b", 8), ("h", 16), ("i", 32), ("l", 64)):
        add(name, _integers(bits), getattr(pa, f"int{bits}")())
    add("f", _FLOATS, pa.float32())
    add("d", _DOUBLES, pa.float64())
    add("n", [*map(Decimal, _SMALL), None], pa.decimal128(5, 2))
    for name, precision, scale in (("m", 18, 6), ("p", 38, 0), ("q", 38, 10), ("r", 38, 38)):
        add(name, _decimals(precision, scale), pa.decimal128(precision, scale))
    add("s", _TEXTS, pa.string(), 3)
    columns["c1"] = pa.array(_letters(), pa.string())
    add("u", _NUMBERS, pa.string(), 1)
    add("v", _DAYS, pa.string(), 1)
    add("k", [0, 1, -1, 2, 3, -2, 5, 10, -10, 100, None], pa.int32(), 3)
    add("o", [True, False, None], pa.bool_())
    add("t", _days(_DATES), pa.date32())
    add("z", _moments(dt.timezone.utc), pa.timestamp("us", tz="UTC"))
    add("w", _moments(None), pa.timestamp("us"))
    _add_rare_types(columns)
    return pa.table(columns)


def _add_rare_types(columns: dict[str, pa.Array]) -> None:
    """Add binary values, texts of many lengths, and values with parts."""
    lengths = [*range(70), *range(90, 140)]
    columns["x1"] = pa.array([bytes((7 * i + n) % 256 for i in range(n)) for n in lengths])
    texts = ["".join(chr(33 + (5 * i + n) % 90) for i in range(n)) for n in lengths]
    columns["y1"] = pa.array([text[:-1] + "\u00e9\U0001f600" for text in texts])
    numbers = [[1, -1, None], [], None, [2**31 - 1], [0, 0], [None], list(range(-9, 9))]
    columns["ints"] = pa.array(_spread(numbers, 1), pa.list_(pa.int32()))
    words = [["a", "", None], [], None, ["\u00e9", "b"], [None, None], ["abc"] * 4]
    columns["words"] = pa.array(_spread(words, 1), pa.list_(pa.string()))
    doubles = [[0.0, -0.0], [_NAN, None], [_INF, 1.5], None, []]
    columns["doubles"] = pa.array(_spread(doubles, 1), pa.list_(pa.float64()))
    maps = [{"a": 1, "b": None}, {}, None, {"": -5}, {"b": 2, "\u00e9": 3}]
    kind = pa.map_(pa.string(), pa.int32())
    columns["pairs"] = pa.array([_items(item) for item in _spread(maps, 1)], kind)
    structs = [{"u": 1, "v": "q"}, None, {"u": None, "v": ""}, {"u": -7, "v": None}]
    fields = pa.struct([("u", pa.int64()), ("v", pa.string())])
    columns["parts"] = pa.array(_spread(structs, 1), fields)
    nested = [[{"u": 1, "v": "q"}, None], None, [], [{"u": None, "v": None}]]
    columns["deep"] = pa.array(_spread(nested, 1), pa.list_(fields))


def _items(given: dict[str, int | None] | None) -> list[tuple[str, int | None]] | None:
    return None if given is None else list(given.items())


ODD_ROWS = _odd_rows()
"""The table; a column's letter tells its type: b, h, i, l are integers, f and d floats, n, m, p,
q, r decimals, c, s, u, v, y texts, k small integers, o booleans, t dates, z and w timestamps, x
binary values."""


def as_texts(values: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return answers as texts that tell all values apart, -0.0 from 0.0 too."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    if pa.types.is_binary(values.type):
        return [None if item is None else item.hex() for item in values.to_pylist()]
    if pa.types.is_floating(values.type):
        return [None if item is None else repr(item) for item in values.to_pylist()]
    if pa.types.is_nested(values.type):
        return [None if item is None else str(item) for item in values.to_pylist()]
    if pa.types.is_decimal(values.type):
        return [None if item is None else f"{item:f}" for item in values.to_pylist()]
    return [None if item is None else str(item) for item in pc.fill_null(values, None).to_pylist()]
