"""Every type of a table at its extremes, and SQL for each value.

Floats of 32 bits are given as the doubles that they are, so that what is read is what is written.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["COLUMNS", "OddColumn", "table_of", "utc"]

UTC = dt.timezone.utc
_NINES = "9" * 38


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=UTC)


@dataclass(frozen=True)
class OddColumn:
    """One type: its values in Arrow, and how SQL spells them."""

    arrow_type: pa.DataType
    values: tuple[Any, ...]
    kind: str

    def sql(self, value: Any) -> str:
        return _SPELLINGS[self.kind](value)


def _float(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


_TEXTS = (
    "", " ", "\x00", "a\x00", "\t", "\n", "\r\n", "a", "A", "a ", "ab", "a\x7f", "b", "'",
    '"', "\\", "%", "_", "é", "e\u0301", "\u2028", "\ud7ff", "\ufffd", "\uffff", "😀", "\U0010ffff",
    "x" * 32, "x" * 32 + "\U0010ffff", "x" * 40, "é" * 31 + "😀", "null", "NaN", "1", "01",
    "__HIVE_DEFAULT_PARTITION__",
)  # fmt: skip
_DOUBLES = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308,
    1.7976931348623157e308, -1.7976931348623157e308, 0.1, 1.1, 1e16, 1e22, 2.0**53, 2.0**53 + 2,
)  # fmt: skip
_FLOATS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, _float(1), -_float(1), _float(0x7F7FFFFF),
    -_float(0x7F7FFFFF), _float(0x00800000), _float(0x3F8CCCCD), 16777216.0, 16777218.0,
)  # fmt: skip
_DATES = (
    dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 4), dt.date(1582, 10, 15),
    dt.date(1900, 2, 28), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29),
)  # fmt: skip
_TIMES = (
    dt.datetime(1, 1, 1), dt.datetime(1, 1, 1, 0, 0, 0, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(9999, 12, 31, 23, 59, 59, 999000),
    dt.datetime(1582, 10, 10), dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(1970, 1, 1, 0, 0, 0, 1000), dt.datetime(2021, 3, 28, 2, 30),
)  # fmt: skip

COLUMNS: Mapping[str, OddColumn] = {
    "byte": OddColumn(pa.int8(), (-128, -1, 0, 1, 127), "integer"),
    "short": OddColumn(pa.int16(), (-(2**15), 0, 2**15 - 1), "integer"),
    "int": OddColumn(pa.int32(), (-(2**31), 0, 2**31 - 1), "integer"),
    "long": OddColumn(
        pa.int64(), (-(2**63), 1 - 2**63, -1, 0, 2**53 + 1, 2**63 - 2, 2**63 - 1), "integer"
    ),
    "dec9": OddColumn(
        pa.decimal128(9, 2), tuple(map(Decimal, ("9999999.99", "-9999999.99", "0.00", "0.01"))),
        "decimal",
    ),
    "dec38": OddColumn(
        pa.decimal128(38, 0),
        tuple(map(Decimal, (_NINES, f"-{_NINES}", f"{_NINES[:-1]}8", "0", "1", "-1"))),
        "decimal",
    ),
    "dec38_10": OddColumn(
        pa.decimal128(38, 10),
        tuple(Decimal(f"{sign}{whole}.{part}") for sign in ("", "-") for whole, part in (
            ("1", "0" * 10), ("1", "9" * 10), ("9" * 28, "9" * 10), ("0", "0" * 9 + "1"),
            ("0", "0" * 10))),
        "decimal",
    ),
    "dec38_38": OddColumn(
        pa.decimal128(38, 38),
        tuple(Decimal(f"{sign}0.{part}") for sign in ("", "-")
              for part in ("9" * 38, "0" * 37 + "1", "0" * 38)),
        "decimal",
    ),
    "float": OddColumn(pa.float32(), _FLOATS, "float"),
    "double": OddColumn(pa.float64(), _DOUBLES, "double"),
    "bool": OddColumn(pa.bool_(), (False, True), "boolean"),
    "text": OddColumn(pa.string(), _TEXTS, "string"),
    "bytes": OddColumn(
        pa.binary(), (b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"a"),
        "binary",
    ),
    "date": OddColumn(pa.date32(), _DATES, "date"),
    "time": OddColumn(
        pa.timestamp("us", "UTC"), tuple(item.replace(tzinfo=UTC) for item in _TIMES), "timestamp"
    ),
    "wall": OddColumn(pa.timestamp("us"), _TIMES, "timestamp_ntz"),
}  # fmt: skip
"""Of each, null is a value as well."""


def table_of(name: str, values: tuple[Any, ...]) -> pa.Table:
    """Rows of `id` and one odd column."""
    ids = pa.array(range(len(values)), pa.int64())
    return pa.table({"id": ids, name: pa.array(values, COLUMNS[name].arrow_type)})


def _text(value: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return "'" + "".join(escapes.get(char, char) for char in value) + "'"


def _floating(name: str) -> Any:
    def spell(value: float) -> str:
        return f"CAST('{value!r}' AS {name})" if math.isfinite(value) else (
            f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' "
            f"AS {name})"
        )  # fmt: skip

    return spell


_SPELLINGS: Mapping[str, Any] = {
    "integer": str,
    "decimal": lambda value: f"{value:f}BD",
    "float": _floating("FLOAT"),
    "double": _floating("DOUBLE"),
    "boolean": lambda value: str(value).upper(),
    "string": _text,
    "binary": lambda value: f"X'{value.hex()}'",
    "date": lambda value: f"DATE '{value.isoformat()}'",
    "timestamp": lambda value: f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}Z'",
    "timestamp_ntz": lambda value: f"TIMESTAMP_NTZ '{value.isoformat(' ')}'",
}
