"""Types in the spelling of Spark's SQL only: `array<decimal(10,2)>`, `struct<a: int>`."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.expressions.collations import is_collation
from optimist.core.expressions.cursor import Cursor
from optimist.core.expressions.tokens import read_text

__all__ = ["SqlField", "SqlType", "collation", "parse_type", "read_type"]

_SAME = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "CHARACTER": "CHAR",
}
_WITHOUT_PARAMETERS = frozenset(
    (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE"),
        *("TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMP", "BINARY", "VOID", "VARIANT", "STRING"),
    )
)
_NUM_PARAMETERS = {"DECIMAL": (0, 2), "CHAR": (1, 1), "VARCHAR": (1, 1), "TIME": (0, 1)}
_MAX_PRECISION = 38
_UNITS = {
    "YEAR": ("MONTH",),
    "MONTH": (),
    "DAY": ("HOUR", "MINUTE", "SECOND"),
    "HOUR": ("MINUTE", "SECOND"),
    "MINUTE": ("SECOND",),
    "SECOND": (),
}


@dataclass(frozen=True, slots=True)
class SqlField:
    """A field of a struct."""

    name: str
    type: SqlType
    is_nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type.

    Attributes:
        name: Spark's SQL name in capitals: `BIGINT`, even if `LONG` is written.
        parameters: The numbers in parentheses.
        parts: The element of an array, or the key and value of a map.
        fields: The fields of a struct.
        collation: The collation of a string; None for the default one.
    """

    name: str
    parameters: tuple[int, ...] = ()
    parts: tuple[SqlType, ...] = ()
    fields: tuple[SqlField, ...] = ()
    collation: str | None = None


def parse_type(text: str) -> SqlType:
    """Parse a text that is one type.

    Raises:
        NotSqlError: The text is not a type, or text follows the type.
    """
    cursor = Cursor(text)
    found = read_type(cursor)
    cursor.ensure_end()
    return found


def read_type(cursor: Cursor) -> SqlType:
    """Read the type that follows.

    Raises:
        NotSqlError: No type follows.
    """
    written = cursor.word("a type").upper()
    name = _SAME.get(written, written)
    if name in ("ARRAY", "MAP"):
        return _read_collection(cursor, name)
    if name == "STRUCT":
        return _read_struct(cursor)
    if name == "INTERVAL":
        return _read_interval(cursor)
    if name == "TIMESTAMP" and cursor.take("WITHOUT", "TIME", "ZONE"):
        return SqlType("TIMESTAMP_NTZ")
    if name == "STRING" and cursor.take("COLLATE"):
        return SqlType(name, collation=collation(cursor))
    if name in _WITHOUT_PARAMETERS:
        return SqlType(name)
    if name not in _NUM_PARAMETERS:
        cursor.fail(f"{written} is not a type", is_before=True)
    return _read_parameters(cursor, name)


def collation(cursor: Cursor) -> str:
    """Read the name behind COLLATE.

    Raises:
        NotSqlError: There is no such collation.
    """
    names = [cursor.name("a collation")]
    while cursor.take("."):
        names.append(cursor.name("a collation"))
    if not is_collation(*names):
        cursor.fail("there is no such collation", is_before=True)
    return ".".join(names)


def _read_parameters(cursor: Cursor, name: str) -> SqlType:
    fewest, most = _NUM_PARAMETERS[name]
    numbers: tuple[int, ...] = ()
    if cursor.take("("):
        numbers = tuple(cursor.listed(lambda: cursor.whole_number("a number")))
        cursor.expect(")")
    if not fewest <= len(numbers) <= most:
        cursor.fail(f"{name} takes another number of parameters", is_before=True)
    if name == "DECIMAL" and not _is_decimal(*numbers):
        cursor.fail("a decimal has at most 38 digits, and no more of them behind its point")
    if name == "TIME":
        cursor.take("WITHOUT", "TIME", "ZONE")
    return SqlType(name, numbers)


def _is_decimal(precision: int = 10, scale: int = 0) -> bool:
    return scale <= precision <= _MAX_PRECISION


def _read_collection(cursor: Cursor, name: str) -> SqlType:
    cursor.expect("<")
    parts = [read_type(cursor)]
    if name == "MAP":
        cursor.expect(",")
        parts.append(read_type(cursor))
    cursor.expect(">")
    return SqlType(name, parts=tuple(parts))


def _read_struct(cursor: Cursor) -> SqlType:
    if cursor.take("<>"):
        return SqlType("STRUCT")
    cursor.expect("<")
    if cursor.take(">"):
        return SqlType("STRUCT")
    found = tuple(cursor.listed(lambda: _read_field(cursor)))
    cursor.expect(">")
    return SqlType("STRUCT", fields=found)


def _read_field(cursor: Cursor) -> SqlField:
    name = cursor.name("the name of a field")
    cursor.take(":")
    found, is_nullable, comment = read_type(cursor), True, None
    if cursor.take("NOT"):
        cursor.expect("NULL")
        is_nullable = False
    if cursor.take("COMMENT"):
        if cursor.peek().kind != "text":
            cursor.fail("a comment in quotes is expected here")
        comment = read_text(cursor.advance())
    return SqlField(name, found, is_nullable, comment)


def _read_interval(cursor: Cursor) -> SqlType:
    start = cursor.peek().text.upper()
    if start not in _UNITS:
        return SqlType("INTERVAL")
    cursor.advance()
    if not cursor.take("TO"):
        return SqlType(f"INTERVAL {start}")
    end = cursor.word("a unit").upper()
    if end not in _UNITS[start]:
        cursor.fail(f"an interval from {start} can't end there", is_before=True)
    return SqlType(f"INTERVAL {start} TO {end}")
