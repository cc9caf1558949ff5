"""CREATE TABLE and REPLACE TABLE at a path, for sessions that have no parser of Spark at hand."""

from __future__ import annotations

from typing import Any

from optimist.core.requests.table_definition import Column, TableDefinition
from optimist.core.sql.clones import creation_mode
from optimist.core.sql.key_values import key_values
from optimist.core.sql.reader import Reader
from optimist.core.sql.spark_statements.column_definitions import column
from optimist.core.sql.spark_statements.table_statements import CreateTable

__all__ = ["creation"]

_KEYS = ("PRIMARY", "FOREIGN", "UNIQUE", "CHECK")


def creation(reader: Reader) -> CreateTable | None:
    """Read the statement from CREATE or REPLACE on, or return None if it makes no such table."""
    mode = creation_mode(reader)
    table = None if mode is None else reader.made_table()
    if mode is None or table is None:
        return None
    said: dict[str, Any] = {}
    if reader.take("("):
        said["columns"] = reader.listed(lambda: _column(reader))
        reader.expect(")")
    while (more := _clause(reader)) is not None:
        for attribute, value in more.items():
            if attribute in said and attribute != "columns":
                reader.fail("this clause stands twice")
            said[attribute] = said.get(attribute, ()) + value if attribute == "columns" else value
    if reader.take("AS") or reader.is_at_any("SELECT", "WITH", "("):
        if "columns" in said:
            reader.fail("the columns are those of the query, and can't be defined, too")
        said["query"] = reader.sql("a query")
    behind = {key: said.pop(key) for key in ("options", "location", "query") if key in said}
    said.pop("provider", None)
    return CreateTable(table, TableDefinition(**said, mode=mode), **behind)


def _column(reader: Reader) -> Column:
    is_constraint = reader.is_at("CONSTRAINT") and reader.peek(2).text.upper() in _KEYS
    is_key = reader.is_at_any(*_KEYS) and (
        reader.peek(1).text == "(" or reader.peek(1).text.upper() == "KEY"
    )
    if is_constraint or is_key:
        reader.fail("a constraint can be added by ALTER TABLE ... ADD CONSTRAINT, once it is made")
    return column(reader)


def _clause(reader: Reader) -> dict[str, Any] | None:
    """Read one clause behind the columns, as attributes, or return None if there is none."""
    if reader.take("USING"):
        reader.expect("DELTA")
        return {"provider": "delta"}
    if reader.take("OPTIONS"):
        return {"options": key_values(reader)}
    if reader.take("PARTITIONED", "BY"):
        return _partitioning(reader)
    if reader.take("CLUSTER", "BY"):
        return {"cluster_by": _clustering(reader)}
    if reader.take("COMMENT"):
        return {"comment": reader.text("a comment")}
    if reader.take("LOCATION"):
        return {"location": reader.text("a path")}
    if reader.take("TBLPROPERTIES"):
        return {"properties": dict(key_values(reader))}
    return None


def _partitioning(reader: Reader) -> dict[str, Any]:
    """Read the partition columns, of which those with a type become columns of the table."""
    reader.expect("(")
    items = reader.listed(lambda: _partition_column(reader))
    reader.expect(")")
    defined = tuple(item for item in items if isinstance(item, Column))
    names = tuple(item.name if isinstance(item, Column) else item for item in items)
    return {"partition_by": names, **({"columns": defined} if defined else {})}


def _partition_column(reader: Reader) -> str | Column:
    following = reader.peek(1)
    if following.text == "(":
        reader.fail("a Delta table is partitioned by columns, which may be generated")
    if following.text in (",", ")"):
        return reader.name("a column")
    return column(reader)


def _clustering(reader: Reader) -> tuple[tuple[str, ...], ...]:
    if reader.take("NONE"):
        return ()
    reader.expect("(")
    columns = reader.paths("a column")
    reader.expect(")")
    return columns
