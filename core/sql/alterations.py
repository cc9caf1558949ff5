"""The forms of ALTER TABLE that are Delta's own; all others are Spark's."""

from __future__ import annotations

from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import (
    AddConstraint,
    ClusterBy,
    ColumnPath,
    Command,
    DropConstraint,
    DropFeature,
    SyncIdentity,
    TableName,
)

__all__ = ["alteration"]


def alteration(reader: Reader) -> Command | None:
    """The rest of a statement from ALTER on; None for a form that Spark has."""
    if not reader.take("ALTER", "TABLE") or not reader.is_at_table():
        return None
    table = reader.table()
    if reader.take("ADD", "CONSTRAINT"):
        return _add_constraint(reader, table)
    if reader.take("DROP", "CONSTRAINT"):
        if_exists = reader.take("IF", "EXISTS")
        return DropConstraint(table, reader.name("the name of a constraint"), if_exists)
    if reader.take("DROP", "FEATURE"):
        return _drop_feature(reader, table)
    if reader.take("CLUSTER", "BY"):
        return ClusterBy(table, _clustering(reader))
    if reader.is_at_any("ALTER", "CHANGE"):
        return _sync_identity(reader, table)
    return None


def _add_constraint(reader: Reader, table: TableName) -> Command | None:
    name = reader.name("the name of a constraint")
    if not reader.is_at("CHECK") and reader.peek().kind == "word":
        return None  # a key, which Spark has names for
    reader.expect("CHECK", "(")
    condition = reader.sql("a condition")
    reader.expect(")")
    return AddConstraint(table, name, condition)


def _drop_feature(reader: Reader, table: TableName) -> Command:
    is_text = reader.peek().kind == "text"
    feature = reader.text("a feature") if is_text else reader.name("the name of a feature")
    truncates = reader.take("TRUNCATE")
    if truncates:
        reader.expect("HISTORY")
    return DropFeature(table, feature, truncates)


def _clustering(reader: Reader) -> tuple[ColumnPath, ...]:
    if reader.take("NONE"):
        return ()
    reader.expect("(")
    columns = reader.paths("a column")
    reader.expect(")")
    return columns


def _sync_identity(reader: Reader, table: TableName) -> Command | None:
    reader.advance()
    reader.take("COLUMN")
    if reader.peek().kind not in ("word", "name"):
        return None
    column = reader.path("a column")
    if not reader.take("SYNC"):
        return None
    reader.expect("IDENTITY")
    return SyncIdentity(table, column)
