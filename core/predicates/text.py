"""Names, constants and patterns as the SQL text that Spark reads."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from functools import lru_cache

__all__ = [
    "like_parts",
    "like_pattern",
    "like_regex",
    "quote_identifier",
    "quote_literal",
    "quote_path",
    "sql_type",
]

_SQL_TYPES = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INT",
    "long": "BIGINT",
}
# Words that are names only in some sessions, or only in some positions.
_KEYWORDS = """
    ALL AND ANTI ANY AS AUTHORIZATION BETWEEN BOTH CASE CAST CHECK COLLATE COLLATION COLUMN
    CONSTRAINT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATE
    DESC DESCRIBE DISTINCT DIV DROP ELSE END ESCAPE EXCEPT EXECUTE EXISTS EXTRACT FALSE
    FETCH FILTER FOR FOREIGN FROM FULL GRANT GROUP HAVING ILIKE IN INNER INSERT INTERSECT
    INTERVAL INTO IS JOIN LATERAL LEADING LEFT LIKE LIMIT MAP MERGE MINUS NATURAL NOT NULL
    OFFSET ON ONLY OR ORDER OUTER OVERLAPS OVERLAY POSITION PRIMARY REFERENCES REGEXP RIGHT
    RLIKE SELECT SEMI SESSION_USER SET SETMINUS SOME STRUCT SUBSTR SUBSTRING TABLE THEN TIME
    TIMESTAMP TO TRAILING TRIM TRUE TRY_CAST UNION UNIQUE UNKNOWN UPDATE USER USING VALUES
    WHEN WHERE WINDOW WITH WITHIN
"""
_NO_VARIABLE = "$\\{"
"""Spark reads this as `${`, but does not replace it by a variable."""
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def quote_path(path: tuple[str, ...]) -> str:
    """Return a column's path as SQL, with back-ticks only around names that need them."""
    return ".".join(quote_identifier(name) for name in path)


@lru_cache(maxsize=4096)
def quote_identifier(name: str) -> str:
    """Return one name as SQL, in back-ticks unless every session reads it without them."""
    if name.isascii() and name.isidentifier() and name.upper() not in _KEYWORDS.split():
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_literal(value: object, kind: str) -> str:
    """Return a constant of a kind (see `tree.LiteralKind`) as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, str):
        escaped = "".join(_ESCAPES.get(char, char) for char in value)
        return f"'{escaped.replace('${', _NO_VARIABLE)}'"
    if isinstance(value, dt.datetime):
        return f"{kind.upper()} '{_timestamp_text(value)}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return _number_text(value, kind)


def sql_type(name: str) -> str:
    """Return the SQL name of a Delta type."""
    return _SQL_TYPES.get(name, name.upper())


def like_parts(pattern: str, escape: str = "\\") -> tuple[tuple[bool, str], ...] | None:
    """Split a LIKE pattern into literal pieces and wildcards, or return None if malformed.

    The result has the form of `Like.parts`. An escape before an ordinary character is malformed.
    """
    parts: list[tuple[bool, str]] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, None)
            if escaped not in ("%", "_", escape):
                return None
            _append_part(parts, False, escaped or "")
        else:
            _append_part(parts, char in "%_", char)
    return tuple(parts)


def like_regex(parts: tuple[tuple[bool, str], ...]) -> str:
    """Return the regular expression, in RE2's grammar, that matches the same texts."""
    wildcards = {"%": ".*", "_": "."}
    body = "".join(wildcards[text] if wild else re.escape(text) for wild, text in parts)
    return rf"(?s)\A{body}\z"


def like_pattern(parts: tuple[tuple[bool, str], ...]) -> str:
    """Return the LIKE pattern with these parts, with a backslash as the escape."""
    return "".join(text if wild else _escape_like(text) for wild, text in parts)


def _append_part(parts: list[tuple[bool, str]], wild: bool, text: str) -> None:
    if not wild and parts and not parts[-1][0]:
        text = parts.pop()[1] + text
    parts.append((wild, text))


def _escape_like(text: str) -> str:
    return "".join("\\" + char if char in "%_\\" else char for char in text)


def _number_text(value: object, kind: str) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if isinstance(value, float):
        suffix, name = ("F", "FLOAT") if kind == "float" else ("D", "DOUBLE")
        if math.isnan(value) or math.isinf(value):
            text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{text}' AS {name})"
        return f"{value!r}{suffix}"
    return str(value)


def _timestamp_text(value: dt.datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(sep=" ")
    return value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat(sep=" ") + "Z"
