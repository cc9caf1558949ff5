"""DELETE, UPDATE and MERGE of a Spark Connect client, from the text to the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from optimist.core.predicates.text import quote_path
from optimist.core.requests.assigned_paths import ensure_apart
from optimist.core.sql import RowChange, SqlText, TableName
from optimist.core.sql.statements import Assignment, Delete, Merge, MergeClause, Update
from optimist.core.statements.missing_tables import as_missing_name
from optimist.core.statements.result_rows import affected_rows
from optimist.spark.commands.catalog.missing_tables import open_existing
from optimist.spark.commands.dml.delete import delete
from optimist.spark.commands.dml.target import TARGET_ALIAS
from optimist.spark.commands.dml.update import update
from optimist.spark.commands.merge.request import MergeClause as SparkClause
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.commands.merge.run import merge
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.path_qualifiers import Aliases, with_aliases, without_name
from optimist.spark.drop_in.connect.statement_names import StatementNames
from optimist.spark.drop_in.connect.value_tables import ValueTables, value_tables
from optimist.spark.rows.local_rows import result_frame
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log

__all__ = ["change_rows"]

_Text: TypeAlias = Callable[[SqlText], str]
_SOURCE_ALIAS = "__optimist_source"
"""The alias of a MERGE's source that has none of its own."""


@original_errors()
def change_rows(
    spark: SparkSession, change: RowChange, sql: FormattedSql, names: StatementNames
) -> DataFrame:
    """Run a change of a Delta table.

    Args:
        spark: The client's session.
        change: The change.
        sql: The statement.
        names: What the names in the statement mean.

    Returns:
        One row with the numbers of rows, as the methods of `DeltaTable` give it.
    """
    with value_tables(spark, names) as tables:
        if isinstance(change, Merge) and isinstance(change.source, TableName):
            known = None if sql.frame(change.source) else names.known(change.source)
            change = replace(change, source=known or change.source)
        aliases = _aliases(change)
        if change.table.location is not None and change.alias is None:
            change = replace(change, alias=_own_alias(change))
        return _changed(spark, _by_aliases(change, aliases), sql, _text_of(tables, aliases))


def _text_of(tables: ValueTables, aliases: Aliases) -> _Text:
    return lambda value: tables.text(value, aliases)


def _changed(spark: SparkSession, change: RowChange, sql: FormattedSql, text: _Text) -> DataFrame:
    path = str(change.table.path)
    if change.table.location is None:
        log = open_existing(spark, path)
    else:
        log = open_log(spark, path)
        with as_missing_name(str(change.table)):
            log.snapshot()
    if isinstance(change, Merge):
        request = MergeRequest(
            _source(spark, change, sql),
            text(change.condition),
            tuple(_clause(clause, text) for clause in change.clauses),
            change.evolves_schema,
        )
        return merge(spark, log, request, change.alias or TARGET_ALIAS)
    condition = None if change.condition is None else text(change.condition)
    alias = TARGET_ALIAS if _is_named(change) else change.alias
    if isinstance(change, Delete):
        num_affected = delete(spark, log, condition, alias=alias)
    else:
        values = _values(change.assignments, text)
        num_affected = update(spark, log, condition, values, alias=alias)
    return result_frame(spark, affected_rows(num_affected))


def _is_named(change: Delete | Update) -> bool:
    """Check whether an expression names a column under the path of the table."""
    values = () if isinstance(change, Delete) else (item.value for item in change.assignments)
    given = (item.sql for item in (change.condition, *values) if item is not None)
    aliases = _aliases(change)
    return any(with_aliases(text, aliases) != text for text in given)


def _aliases(change: RowChange) -> Aliases:
    """Return the aliases under which the command knows tables that have none of their own."""
    found: dict[tuple[str, ...], str] = {}
    if change.alias is None:
        found |= _by_ends(change.table, _own_alias(change))
    if isinstance(change, Merge) and change.source_alias is None:
        source = change.source
        if isinstance(source, TableName) and source.path != change.table.path:
            found |= _by_ends(source, _source_alias(change) or _SOURCE_ALIAS)
    return found


def _by_ends(table: TableName, alias: str) -> Aliases:
    """Return an alias by the names of its table that are longer than the alias."""
    ends = (table.parts[start:] for start in range(len(table.parts) - 1))
    return dict.fromkeys(ends, alias)


def _own_alias(change: RowChange) -> str:
    """Return the alias of a table that has none of its own."""
    is_path = change.table.location is None
    return TARGET_ALIAS if is_path or _have_one_name(change) else change.table.parts[-1]


def _have_one_name(change: RowChange) -> bool:
    """Return whether both tables of a MERGE would have one name before their columns."""
    if not isinstance(change, Merge):
        return False
    last = change.source.parts[-1] if isinstance(change.source, TableName) else None
    name = change.source_alias or last
    return name is not None and name.lower() == change.table.parts[-1].lower()


def _source_alias(change: Merge) -> str | None:
    """Return the name before the columns of a MERGE's source, or None for a query without one."""
    source = change.source
    if change.source_alias is not None or not isinstance(source, TableName):
        return change.source_alias
    is_path = source.path is not None and source.location is None
    is_taken = change.alias in (None, TARGET_ALIAS) and _have_one_name(change)
    return _SOURCE_ALIAS if is_path or is_taken else source.parts[-1]


def _by_aliases(change: RowChange, aliases: Aliases) -> RowChange:
    """Return a change whose assigned columns have no longer names before them than an alias."""

    def renamed(assignments: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
        return tuple(
            replace(each, column=without_name(each.column, aliases)) for each in assignments
        )

    if isinstance(change, Update):
        return replace(change, assignments=renamed(change.assignments))
    if isinstance(change, Merge):
        clauses = tuple(clause.mapped(lambda text: text, renamed) for clause in change.clauses)
        return replace(change, clauses=clauses)
    return change


def _source(spark: SparkSession, change: Merge, sql: FormattedSql) -> DataFrame:
    """Return the source of a MERGE, under the name that the statement gives it."""
    alias = _source_alias(change)
    rows = _rows(spark, change.source, sql)
    return rows if alias is None else rows.alias(alias)


def _rows(spark: SparkSession, source: TableName | SqlText, sql: FormattedSql) -> DataFrame:
    if isinstance(source, SqlText):
        return sql.query(spark, source.sql)
    given = sql.frame(source)
    if given is not None:
        return given
    if source.path is not None:
        return DeltaTable.forPath(spark, source.path).toDF()
    return spark.table(".".join(map(quoted, source.parts)))


def _clause(clause: MergeClause, text: _Text) -> SparkClause:
    inserts = clause.action == "insert"
    return clause.mapped(text, lambda values: _values(values, text, inserts=inserts))


def _values(
    assignments: tuple[Assignment, ...], text: _Text, *, inserts: bool = False
) -> Mapping[str, str]:
    ensure_apart((assignment.column for assignment in assignments), inserts=inserts)
    return {quote_path(assignment.column): text(assignment.value) for assignment in assignments}
