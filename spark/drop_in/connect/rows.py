"""DELETE, UPDATE and MERGE of a Spark Connect client, from the text to the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from optimist.core.predicates.text import quote_path
from optimist.core.requests.assigned_paths import ensure_apart
from optimist.core.sql import RowChange, SqlText, TableName
from optimist.core.sql.statements import Assignment, Delete, Merge, MergeClause, Update
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
from optimist.spark.drop_in.connect.path_qualifiers import with_aliases
from optimist.spark.drop_in.connect.value_tables import value_tables
from optimist.spark.rows.local_rows import result_frame
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.callback_errors import original_errors

__all__ = ["change_rows"]

_Text: TypeAlias = Callable[[SqlText], str]
_SOURCE_ALIAS = "__optimist_source"
"""The alias of a MERGE's source that is a path without one."""


@original_errors()
def change_rows(spark: SparkSession, change: RowChange, sql: FormattedSql) -> DataFrame:
    """Run a change whose table is a path.

    Returns:
        One row with the numbers of rows, as the methods of `DeltaTable` give it.
    """
    with value_tables(spark) as tables:
        aliases = _aliases(change)
        return _changed(spark, change, sql, lambda value: tables.text(value, aliases))


def _changed(spark: SparkSession, change: RowChange, sql: FormattedSql, text: _Text) -> DataFrame:
    log = open_existing(spark, str(change.table.path))
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


def _aliases(change: RowChange) -> Mapping[str, str]:
    """Return the alias under which the command knows a table that has none, by its path."""
    path = str(change.table.path)
    found = {} if change.alias is not None else {path: TARGET_ALIAS}
    if isinstance(change, Merge) and change.source_alias is None:
        source = change.source.path if isinstance(change.source, TableName) else None
        if source is not None and source != path:
            found[source] = _SOURCE_ALIAS
    return found


def _source(spark: SparkSession, change: Merge, sql: FormattedSql) -> DataFrame:
    """Return the source of a MERGE, under the name that the statement gives it."""
    alias = change.source_alias
    if alias is None and isinstance(change.source, TableName) and change.source.path is None:
        alias = change.source.parts[-1]
    if alias is None and isinstance(change.source, TableName):
        alias = _SOURCE_ALIAS
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
