"""Keys and values in brackets: TBLPROPERTIES and OPTIONS."""

from __future__ import annotations

from optimist.core.sql.reader import Reader

__all__ = ["key", "key_values"]


def key_values(reader: Reader) -> tuple[tuple[str, str], ...]:
    """Read `(key = value, ...)`, with texts or words, and no key twice."""
    known: set[str] = set()

    def pair() -> tuple[str, str]:
        at = reader.peek()
        name = key(reader)
        if name in known:
            reader.fail("this key stands twice", at)
        known.add(name)
        return name, _value(reader)

    reader.expect("(")
    found = reader.listed(pair)
    reader.expect(")")
    return found


def key(reader: Reader) -> str:
    """Read one key, in quotes or as a name with dots."""
    if reader.peek().kind == "text":
        return reader.text("a key", is_alone=True)
    return ".".join(reader.path("the key of a property"))


def _value(reader: Reader) -> str:
    reader.take("=")
    if reader.is_at_any("TRUE", "FALSE"):
        return reader.advance().text.lower()
    if reader.peek().kind == "number" or reader.is_at("-"):
        return reader.digits("a value")
    return reader.text("a value")
