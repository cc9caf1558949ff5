"""Columns as CREATE TABLE and ALTER TABLE spell them: name, type, and what is said of them."""

from __future__ import annotations

from typing import Any

from optimist.core.requests.columns import NewColumn
from optimist.core.requests.table_definition import Column, Identity
from optimist.core.sql.reader import Reader

__all__ = ["column", "new_column", "position", "type_text"]

_AFTER_A_TYPE = ("NOT", "COMMENT", "DEFAULT", "GENERATED", "FIRST", "AFTER", ",")
_AFTER_A_DEFAULT = ("COMMENT", "GENERATED", "FIRST", "AFTER", ",")


def column(reader: Reader) -> Column:
    """Read `column type [NOT NULL] [GENERATED ...] [DEFAULT value] [COMMENT text]`."""
    at = reader.peek()
    path = reader.path("a column")
    if len(path) > 1:
        reader.fail("a column's name has one part; one with a dot in it stands in back-ticks", at)
    reader.take(":")
    return Column(path[0], type_text(reader), **_all_said(reader))


def new_column(reader: Reader) -> NewColumn:
    """Read `column type [NOT NULL] [DEFAULT value] [COMMENT text] [FIRST | AFTER column]`."""
    path = reader.path("a column")
    reader.take(":")
    declared, at = type_text(reader), reader.peek()
    said = _all_said(reader)
    if "generated_as" in said or "identity" in said:
        reader.fail("a column that is generated can only be made together with its table", at)
    return NewColumn(path, declared, **said, **position(reader))


def type_text(reader: Reader) -> str:
    """Read a type, as it is written."""
    depth = 0

    def is_end() -> bool:
        nonlocal depth
        if depth == 0 and reader.is_at_any(*_AFTER_A_TYPE):
            return True
        mark = reader.peek().text
        depth += (mark == "<") - (mark == ">")
        return False

    return reader.sql("a type", is_end).sql


def position(reader: Reader) -> dict[str, Any]:
    """Read `FIRST` or `AFTER column`, if one of them follows."""
    if reader.take("FIRST"):
        return {"first": True}
    return {"after": reader.name("a column")} if reader.take("AFTER") else {}


def _all_said(reader: Reader) -> dict[str, Any]:
    """Read all that stands behind a column's type, as attributes."""
    said: dict[str, Any] = {}
    while (more := _said(reader)) is not None:
        said |= more
    return said


def _said(reader: Reader) -> dict[str, Any] | None:
    """Read one clause behind a column's type, as attributes, or return None if none follows."""
    if reader.take("NOT"):
        reader.expect("NULL")
        return {"nullable": False}
    if reader.take("COMMENT"):
        return {"comment": reader.text("a comment")}
    if reader.take("DEFAULT"):
        return {"default": _default(reader)}
    if reader.take("GENERATED"):
        return _generated(reader)
    return None


def _default(reader: Reader) -> str:
    def is_end() -> bool:
        return reader.is_at_any(*_AFTER_A_DEFAULT) or reader.is_at("NOT", "NULL")

    return reader.sql("a value", is_end).sql


def _generated(reader: Reader) -> dict[str, Any]:
    is_always = not reader.take("BY", "DEFAULT")
    if is_always:
        reader.expect("ALWAYS")
    reader.expect("AS")
    if reader.take("IDENTITY"):
        return {"identity": _identity(reader, is_always)}
    if not is_always:
        reader.fail("IDENTITY is expected here")
    reader.expect("(")
    expression = reader.sql("an expression")
    reader.expect(")")
    return {"generated_as": expression.sql}


def _identity(reader: Reader, is_always: bool) -> Identity:
    start = step = 1
    if reader.take("("):
        while not reader.take(")"):
            if reader.take("START", "WITH"):
                start = _whole(reader)
            elif reader.take("INCREMENT", "BY"):
                step = _whole(reader)
            else:
                reader.fail("START WITH or INCREMENT BY is expected here")
    return Identity(start, step, is_always)


def _whole(reader: Reader) -> int:
    sign = -1 if reader.take("-") else 1
    return sign * reader.whole_number("a whole number")
