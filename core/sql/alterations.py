"""The forms of ALTER TABLE that are Delta's own."""

from __future__ import annotations

from optimist.core.requests.alterations import (
    AddConstraint,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SyncIdentity,
    TableAlteration,
)
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import AlterTable, ColumnPath

__all__ = ["alteration"]


def alteration(reader: Reader) -> AlterTable | None:
    """Read the statement from ALTER on, or return None for a form that Spark has."""
    if not reader.take("ALTER", "TABLE") or not reader.is_at_table():
        return None
    table = reader.table()
    change = _delta_change(reader)
    return None if change is None else AlterTable(table, change)


def _delta_change(reader: Reader) -> TableAlteration | None:
    """Read the change behind the table, or return None for one that Spark has."""
    if reader.take("ADD", "CONSTRAINT"):
        return _add_constraint(reader)
    if reader.take("DROP", "CONSTRAINT"):
        if_exists = reader.take("IF", "EXISTS")
        return DropConstraint(reader.name("the name of a constraint"), if_exists)
    if reader.take("DROP", "FEATURE"):
        return _drop_feature(reader)
    if reader.take("CLUSTER", "BY"):
        return ClusterBy(_clustering(reader))
    if reader.is_at_any("ALTER", "CHANGE"):
        return _sync_identity(reader)
    return None


def _add_constraint(reader: Reader) -> TableAlteration | None:
    name = reader.name("the name of a constraint")
    if not reader.is_at("CHECK") and reader.peek().kind == "word":
        return None  # a key, which Spark has names for
    reader.expect("CHECK", "(")
    condition = reader.sql("a condition")
    reader.expect(")")
    return AddConstraint(name, condition.sql)


def _drop_feature(reader: Reader) -> TableAlteration:
    is_text = reader.peek().kind == "text"
    feature = reader.text("a feature") if is_text else reader.name("the name of a feature")
    truncates = reader.take("TRUNCATE")
    if truncates:
        reader.expect("HISTORY")
    return DropFeature(feature, truncates)


def _clustering(reader: Reader) -> tuple[ColumnPath, ...]:
    if reader.take("NONE"):
        return ()
    reader.expect("(")
    columns = reader.paths("a column")
    reader.expect(")")
    return columns


def _sync_identity(reader: Reader) -> TableAlteration | None:
    reader.advance()
    reader.take("COLUMN")
    if reader.peek().kind not in ("word", "name"):
        return None
    column = reader.path("a column")
    if not reader.take("SYNC"):
        return None
    reader.expect("IDENTITY")
    return SyncIdentity(column)
