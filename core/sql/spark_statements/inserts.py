"""INSERT, whose query stays the user's text, for engines without Spark's parser."""

from __future__ import annotations

from collections.abc import Iterator

from optimist.core.sql.reader import Reader
from optimist.core.sql.spark_statements.table_statements import Insert
from optimist.core.sql.statements import Span, SqlText

__all__ = ["insert", "rows_of_values", "values_left_to_default"]

_QUERIES = ("SELECT", "VALUES", "WITH", "TABLE")
_AFTER = ("FROM", "WHERE", "ORDER", "LIMIT", "UNION", ";")
"""What may stand behind the list of a SELECT, before anything else that could say DEFAULT."""


def insert(reader: Reader) -> Insert | None:
    """Read the statement from INSERT, or from WITH, on, or return None for any other."""
    tables = None
    if reader.is_at("WITH"):
        tables = reader.sql("a query", lambda: reader.is_at("INSERT"))
    if not reader.take("INSERT"):
        return None
    evolves = reader.take("WITH", "SCHEMA", "EVOLUTION")
    is_overwrite = reader.take("OVERWRITE")
    if not is_overwrite and not reader.take("INTO"):
        return None
    reader.take("TABLE")
    table = reader.own_table()
    if table is None:
        return None  # a directory, or a table of Spark's
    partition = _partition(reader)
    is_by_name = reader.take("BY", "NAME")
    columns = None if is_by_name else _columns(reader)
    replace_where = None
    if not is_overwrite and reader.take("REPLACE"):
        reader.expect("WHERE")
        replace_where = reader.sql("a condition", lambda: reader.is_at_any(*_QUERIES))
    query = reader.sql("a query")
    if tables is not None:
        query = SqlText(f"{tables.sql} ({query.sql})", query.span)
    return Insert(
        table,
        query,
        is_overwrite or replace_where is not None,
        columns,
        is_by_name,
        partition,
        replace_where,
        evolves,
    )


def rows_of_values(query: str) -> tuple[tuple[SqlText, ...], ...] | None:
    """Return the rows of `VALUES (...), ...` as texts, or None for another query."""
    reader = Reader(query)
    if not reader.take("VALUES"):
        return None
    rows = reader.listed(lambda: _row_of_values(reader))
    return rows if reader.is_at_end() else None


def _row_of_values(reader: Reader) -> tuple[SqlText, ...]:
    if not reader.take("("):
        return (_value(reader),)
    values = reader.listed(lambda: _value(reader))
    reader.expect(")")
    return values


def _value(reader: Reader) -> SqlText:
    return reader.sql("a value", lambda: reader.is_at(","))


def values_left_to_default(query: str) -> tuple[tuple[int, Span], ...]:
    """Find DEFAULT in the rows of VALUES, or in the list of a SELECT.

    In a SELECT it may be a column, too, if what the query reads has one of that name.

    Returns:
        The place in the row, and in the text.
    """
    reader = Reader(query)
    while reader.take("("):
        pass
    if reader.take("VALUES") or reader.take("SELECT", "*", "FROM", "VALUES"):
        return tuple(_defaults(reader, depth=1))
    if reader.take("SELECT"):
        return tuple(_defaults(reader, depth=0))
    return ()


def _defaults(reader: Reader, depth: int) -> Iterator[tuple[int, Span]]:
    """Find DEFAULT as an item of a list that stands within so many brackets."""
    level = place = 0
    before = ","
    while reader.peek().kind != "end" and not (level == depth == 0 and reader.is_at_any(*_AFTER)):
        token = reader.advance()
        is_first = before == "," or (before == "(" and depth == level == 1)
        if token.text in ("(", ")"):
            level += 1 if token.text == "(" else -1
            if level < 0:
                return  # the bracket around the query
            place = 0 if level == depth == 1 and token.text == "(" else place
        elif token.text == "," and level == depth:
            place += 1
        elif is_first and level == depth and token.text.upper() == "DEFAULT" and _is_whole(reader):
            yield place, Span(token.start, token.end)
        before = token.text


def _is_whole(reader: Reader) -> bool:
    return reader.is_at_any(",", ")", *_AFTER) or reader.peek().kind == "end"


def _partition(reader: Reader) -> tuple[tuple[str, SqlText | None], ...]:
    if not reader.take("PARTITION"):
        return ()
    reader.expect("(")
    parts = reader.listed(lambda: _partition_value(reader))
    reader.expect(")")
    if reader.is_at("IF", "NOT", "EXISTS"):
        reader.fail("a Delta table has no partitions that could exist or not")
    return parts


def _partition_value(reader: Reader) -> tuple[str, SqlText | None]:
    column = reader.name("a partition column")
    if not reader.take("="):
        return column, None
    return column, reader.sql("a value", lambda: reader.is_at(","))


def _columns(reader: Reader) -> tuple[str, ...] | None:
    """Read the list of columns, or return None if a query stands in the brackets."""
    if not reader.is_at("(") or not _is_list_of_columns(reader):
        return None
    reader.expect("(")
    columns = reader.listed(lambda: reader.name("a column"))
    reader.expect(")")
    return columns


def _is_list_of_columns(reader: Reader) -> bool:
    return reader.peek(1).kind in ("word", "name") and reader.peek(2).text in (",", ")")
