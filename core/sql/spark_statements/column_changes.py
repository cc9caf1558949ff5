"""Spark's forms of ALTER TABLE, for sessions that have no parser of Spark at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from optimist.core.requests.alterations import (
    AddColumns,
    ChangeColumns,
    DropColumns,
    RenameColumn,
    ReplaceColumns,
    SetComment,
    SetProperties,
    TableAlteration,
    UnsetProperties,
)
from optimist.core.requests.columns import ColumnChange
from optimist.core.sql.key_values import key, key_values
from optimist.core.sql.reader import Reader
from optimist.core.sql.spark_statements.column_definitions import (
    new_column,
    position,
    type_text,
)
from optimist.core.sql.spark_statements.table_statements import Truncate
from optimist.core.sql.statements import AlterTable

__all__ = ["alter_table", "comment_on", "truncation"]

_Item = TypeVar("_Item")


def alter_table(reader: Reader) -> AlterTable | None:
    """Read the statement from ALTER on, or return None for a form that is not here."""
    table = reader.own_table() if reader.take("ALTER", "TABLE") else None
    change = None if table is None else _change(reader)
    return None if table is None or change is None else AlterTable(table, change)


def comment_on(reader: Reader) -> AlterTable | None:
    """Read `COMMENT ON TABLE t IS text`, or return None for a comment on something else."""
    table = reader.own_table() if reader.take("COMMENT", "ON", "TABLE") else None
    if table is None:
        return None
    reader.expect("IS")
    return AlterTable(table, SetComment(None if reader.take("NULL") else reader.text("a comment")))


def truncation(reader: Reader) -> Truncate | None:
    """Read `TRUNCATE TABLE t`, or return None for another statement."""
    table = reader.own_table() if reader.take("TRUNCATE", "TABLE") else None
    return None if table is None else Truncate(table)


def _change(reader: Reader) -> TableAlteration | None:
    if reader.take("SET", "TBLPROPERTIES"):
        return SetProperties(key_values(reader))
    if reader.take("UNSET", "TBLPROPERTIES"):
        if_exists = reader.take("IF", "EXISTS")
        return UnsetProperties(_in_brackets(reader, lambda: key(reader)), if_exists)
    if reader.take("RENAME", "COLUMN"):
        column = reader.path("a column")
        reader.expect("TO")
        return RenameColumn(column, reader.name("the new name"))
    if reader.take("REPLACE", "COLUMNS"):
        return ReplaceColumns(_in_brackets(reader, lambda: new_column(reader)))
    for verb, change in (("ADD", _added), ("DROP", _dropped)):
        if reader.take(verb, "COLUMN") or reader.take(verb, "COLUMNS"):
            return change(reader)
    if reader.is_at_any("ALTER", "CHANGE"):
        return _altered(reader)
    return None


def _added(reader: Reader) -> TableAlteration:
    return AddColumns(_maybe_in_brackets(reader, lambda: new_column(reader)))


def _dropped(reader: Reader) -> TableAlteration:
    if_exists = reader.take("IF", "EXISTS")
    return DropColumns(_maybe_in_brackets(reader, lambda: reader.path("a column")), if_exists)


def _altered(reader: Reader) -> TableAlteration:
    is_change = reader.advance().text.upper() == "CHANGE"
    reader.take("COLUMN")
    return ChangeColumns(reader.listed(lambda: _alteration(reader, is_change)))


def _alteration(reader: Reader, is_change: bool) -> ColumnChange:
    column = reader.path("a column")
    said = _said(reader)
    if said is None and is_change:
        said = _changed(reader, column)
    if said is None:
        reader.fail(
            "TYPE, COMMENT, SET or DROP NOT NULL, SET or DROP DEFAULT, FIRST or AFTER is expected "
            "here"
        )
    return ColumnChange(column, **said)


def _said(reader: Reader) -> dict[str, Any] | None:
    """Read one action on a column, as attributes, or return None if there is none."""
    if reader.take("TYPE"):
        return {"data_type": type_text(reader)}
    if reader.take("COMMENT"):
        return {"comment": reader.text("a comment")}
    if reader.is_at_any("SET", "DROP") and reader.peek(1).text.upper() in ("NOT", "DEFAULT"):
        drops = reader.advance().text.upper() == "DROP"
        if reader.take("NOT"):
            reader.expect("NULL")
            return {"nullable": drops}
        reader.expect("DEFAULT")
        if drops:
            return {"drop_default": True}
        return {"default": reader.sql("a value", lambda: reader.is_at(",")).sql}
    return position(reader) or None


def _changed(reader: Reader, column: tuple[str, ...]) -> dict[str, Any]:
    """Read `CHANGE [COLUMN] c c type [COMMENT text] [FIRST | AFTER column]`, as Hive has it."""
    at = reader.peek()
    new = new_column(reader)
    if [part.lower() for part in new.path] != [part.lower() for part in column[-1:]]:
        reader.fail("a column is renamed by RENAME COLUMN", at)
    said = {
        "data_type": new.data_type,
        "comment": new.comment,
        "first": new.first,
        "after": new.after,
    }
    return said if new.nullable else {**said, "nullable": False}


def _in_brackets(reader: Reader, item: Callable[[], _Item]) -> tuple[_Item, ...]:
    reader.expect("(")
    items = reader.listed(item)
    reader.expect(")")
    return items


def _maybe_in_brackets(reader: Reader, item: Callable[[], _Item]) -> tuple[_Item, ...]:
    return _in_brackets(reader, item) if reader.is_at("(") else reader.listed(item)
