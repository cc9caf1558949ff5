"""CLONE, CREATE TABLE ... LIKE, and the clauses that name an old version of a table."""

from __future__ import annotations

from optimist.core.requests.table_definition import CreateMode
from optimist.core.sql.key_values import key_values
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import (
    Clone,
    Command,
    CreateLike,
    TableName,
    TimeTravel,
)

__all__ = ["clone", "creation_mode", "time_travel"]


def clone(reader: Reader) -> Command | None:
    """Read the statement from CREATE on, or return None if it is neither CLONE nor LIKE."""
    mode = creation_mode(reader)
    if mode is None or not reader.is_at_table():
        return None
    table = reader.table()
    if not mode.replaces and reader.take("LIKE"):
        return _like(reader, table, if_not_exists=mode is CreateMode.CREATE_IF_NOT_EXISTS)
    is_shallow = reader.is_at("SHALLOW", "CLONE")
    if not (reader.take("SHALLOW", "CLONE") or reader.take("DEEP", "CLONE")):
        return None
    source = reader.table()
    travel = time_travel(reader)
    properties = key_values(reader) if reader.take("TBLPROPERTIES") else ()
    location = reader.text("a path") if reader.take("LOCATION") else None
    return Clone(table, mode, source, is_shallow, travel, properties, location)


def time_travel(reader: Reader) -> TimeTravel | None:
    """Read `[FOR] {VERSION|TIMESTAMP} AS OF x`, or return None if something else follows.

    `SYSTEM_VERSION` and `SYSTEM_TIME` mean the same as VERSION and TIMESTAMP.
    """
    has_for = reader.take("FOR")
    if reader.take("VERSION", "AS", "OF") or reader.take("SYSTEM_VERSION", "AS", "OF"):
        if reader.peek().kind != "text":
            return TimeTravel(version=reader.whole_number("a version"))
        at = reader.peek()
        text = reader.text("a version")
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            reader.fail("the version must be a whole number", at)
        return TimeTravel(version=int(text))
    if reader.take("TIMESTAMP", "AS", "OF") or reader.take("SYSTEM_TIME", "AS", "OF"):
        return TimeTravel(timestamp=reader.text("a time"))
    if has_for:
        reader.fail("VERSION AS OF or TIMESTAMP AS OF is expected here")
    return None


def creation_mode(reader: Reader) -> CreateMode | None:
    """Read the words from CREATE or REPLACE to TABLE, or return None if others stand there."""
    if reader.take("CREATE", "OR", "REPLACE", "TABLE"):
        return CreateMode.CREATE_OR_REPLACE
    if reader.take("REPLACE", "TABLE"):
        return CreateMode.REPLACE
    if not reader.take("CREATE", "TABLE"):
        return None
    if reader.take("IF", "NOT", "EXISTS"):
        return CreateMode.CREATE_IF_NOT_EXISTS
    return CreateMode.CREATE


def _like(reader: Reader, table: TableName, *, if_not_exists: bool) -> CreateLike | None:
    """Read the rest of CREATE TABLE ... LIKE, or return None if no Delta table has such clauses."""
    if not reader.is_at_table():
        return None
    source = reader.table()
    provider, location = None, None
    properties: tuple[tuple[str, str], ...] = ()
    while reader.is_at_any("USING", "LOCATION", "TBLPROPERTIES"):
        if reader.take("USING"):
            provider = ".".join(reader.path("a format"))
        elif reader.take("LOCATION"):
            location = reader.text("a path")
        else:
            reader.advance()
            properties = key_values(reader)
    if reader.is_at_any("ROW", "STORED"):
        return None
    return CreateLike(table, source, if_not_exists, provider, location, properties)
