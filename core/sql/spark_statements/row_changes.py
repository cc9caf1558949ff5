"""`parse_row_change`: DELETE, UPDATE and MERGE, for sessions that have no parser of Spark at hand.

Conditions and values stay the user's text: Spark reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from optimist.core.requests.merge_clauses import Clause, Kind
from optimist.core.sql.first_words import begin_of
from optimist.core.sql.own_names import ANY_NAME, OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.relations import travel_of_relation
from optimist.core.sql.statements import (
    Assignment,
    Delete,
    Merge,
    MergeClause,
    RowChange,
    SqlText,
    TableName,
    Update,
)

__all__ = ["parse_row_change"]

_FIRST_WORDS = re.compile(r"(?:delete|update|merge)\b", re.IGNORECASE)
_Assignments = tuple[Assignment, ...]


def parse_row_change(
    text: str, parameters: Parameters | None = None, *, own_names: OwnNames = ANY_NAME
) -> RowChange | None:
    """Parse a DELETE, an UPDATE or a MERGE, as `parse_command` does its statements.

    Args:
        text: The statement; it may end with semicolons.
        parameters: The values of its parameters.
        own_names: Which names of tables are ours.

    Returns:
        The statement; None for any other.
    """
    start = begin_of(text, _FIRST_WORDS)
    if start is None:
        return None
    reader = Reader(text, parameters, start, own_names=own_names)
    change = _STATEMENTS[reader.advance().text.upper()](reader)
    if change is not None:
        reader.end()
    return change


def _delete(reader: Reader) -> RowChange | None:
    reader.expect("FROM")
    table = reader.changed_table()
    if table is None:
        return None
    alias = _alias(reader, "WHERE")
    return Delete(table, alias, _where(reader))


def _update(reader: Reader) -> RowChange | None:
    table = reader.changed_table()
    if table is None:
        return None
    alias = _alias(reader, "SET")
    reader.expect("SET")
    assignments = _assignments(reader, "WHERE")
    return Update(table, assignments, alias, _where(reader))


def _merge(reader: Reader) -> RowChange | None:
    evolves = reader.take("WITH")
    if evolves:
        reader.expect("SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    table = reader.changed_table()
    if table is None:
        return None
    alias = _alias(reader, "USING")
    reader.expect("USING")
    source = _source(reader)
    source_alias = _alias(reader, "ON")
    reader.expect("ON")
    condition = reader.sql("a condition", lambda: reader.is_at("WHEN"))
    clauses = []
    while reader.take("WHEN"):
        clauses.append(_clause(reader))
    if not clauses:
        reader.fail("WHEN MATCHED or WHEN NOT MATCHED is expected here")
    return Merge(table, source, condition, tuple(clauses), alias, source_alias, evolves)


def _alias(reader: Reader, following: str) -> str | None:
    """Read the alias of a table: behind AS, or any word that is not the next keyword."""
    if reader.take("AS"):
        return reader.name("another name of the table")
    is_name = reader.peek().kind in ("word", "name") and not reader.is_at(following)
    return reader.name("another name of the table") if is_name else None


def _source(reader: Reader) -> TableName | SqlText:
    """Read a table or a query, which also stands for an old version of a table."""
    if not reader.take("("):
        table = reader.table()
        version, timestamp = travel_of_relation(reader)
        if version is not None:
            return SqlText(f"SELECT * FROM {table} VERSION AS OF {version.sql}", version.span)
        if timestamp is not None:
            return SqlText(f"SELECT * FROM {table} TIMESTAMP AS OF {timestamp.sql}", timestamp.span)
        return table
    query = reader.sql("a query")
    reader.expect(")")
    return query


def _where(reader: Reader) -> SqlText | None:
    return reader.sql("a condition") if reader.take("WHERE") else None


def _clause(reader: Reader) -> MergeClause:
    kind: Kind = "NOT MATCHED" if reader.take("NOT") else "MATCHED"
    reader.expect("MATCHED")
    if kind == "NOT MATCHED" and reader.take("BY") and not reader.take("TARGET"):
        reader.expect("SOURCE")
        kind = "NOT MATCHED BY SOURCE"
    condition = None
    if reader.take("AND"):
        condition = reader.sql("a condition", lambda: reader.is_at("THEN"))
    reader.expect("THEN")
    if kind == "NOT MATCHED":
        return Clause(kind, "insert", condition, _insert(reader))
    if reader.take("DELETE"):
        return Clause(kind, "delete", condition)
    reader.expect("UPDATE", "SET")
    if kind == "MATCHED" and reader.take("*"):
        return Clause(kind, "update", condition)
    return Clause(kind, "update", condition, _assignments(reader, "WHEN"))


def _insert(reader: Reader) -> _Assignments | None:
    reader.expect("INSERT")
    if reader.take("*"):
        return None
    reader.expect("(")
    columns = reader.paths("a column")
    reader.expect(")", "VALUES", "(")
    values = reader.listed(lambda: reader.sql("a value", lambda: reader.is_at(",")))
    if len(values) != len(columns):
        reader.fail(f"{len(columns)} columns are named, but {len(values)} values are given")
    reader.expect(")")
    return tuple(map(Assignment, columns, values))


def _assignments(reader: Reader, following: str) -> _Assignments:
    def assignment() -> Assignment:
        column = reader.path("a column")
        if not reader.take("=="):
            reader.expect("=")
        return Assignment(column, reader.sql("a value", lambda: reader.is_at_any(",", following)))

    return reader.listed(assignment)


_STATEMENTS: Mapping[str, Callable[[Reader], RowChange | None]] = {
    "DELETE": _delete,
    "UPDATE": _update,
    "MERGE": _merge,
}
