"""CREATE, REPLACE, ALTER and TRUNCATE TABLE of a Spark Connect client, over paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.commands.create.create import create_table
from optimist.core.sql.spark_statements import table_statements as ts
from optimist.spark.commands.alter import changes_of
from optimist.spark.commands.catalog.names import one_place
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.create_as_select import create_as_select
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.classic.options import write_options
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.session.conf import open_log

__all__ = ["alter", "create"]


def create(spark: SparkSession, statement: ts.CreateTable, sql: FormattedSql) -> None:
    """Make or replace a table, with its rows where the statement has a query.

    Args:
        spark: The client's session.
        statement: The statement.
        sql: Its text.
    """
    log = open_target(spark, one_place(statement.table.path, statement.location))
    request = WriteRequest.of("error", None, write_options(dict(statement.options)))
    given = statement.definition
    definition = replace(given, properties={**request.properties, **given.properties})
    if statement.query is None:
        create_table(log.start_transaction, definition)
    else:
        rows = sql.query(spark, statement.query.sql)
        create_as_select(rows, log, definition, request)


def alter(spark: SparkSession, statement: ts.AlterTable) -> None:
    """Make one change of a table."""
    changes = changes_of(spark, open_log(spark, str(statement.table.path)))
    _CHANGES[type(statement.change)](changes, statement.change)


def _set_properties(table: TableChanges, change: ts.SetProperties) -> None:
    table.set_properties(dict(change.properties))


def _unset_properties(table: TableChanges, change: ts.UnsetProperties) -> None:
    table.unset_properties(change.keys, if_exists=change.if_exists)


def _set_comment(table: TableChanges, change: ts.SetComment) -> None:
    table.set_comment(change.comment)


def _add_columns(table: TableChanges, change: ts.AddColumns) -> None:
    table.add_columns(change.columns)


def _replace_columns(table: TableChanges, change: ts.ReplaceColumns) -> None:
    table.replace_columns(change.columns)


def _rename_column(table: TableChanges, change: ts.RenameColumn) -> None:
    table.rename_column(change.column, change.new_name)


def _drop_columns(table: TableChanges, change: ts.DropColumns) -> None:
    table.drop_columns(change.columns, if_exists=change.if_exists)


def _change_columns(table: TableChanges, change: ts.ChangeColumns) -> None:
    table.change_columns(change.changes)


_CHANGES: Mapping[type, Callable[[TableChanges, Any], None]] = MappingProxyType(
    {
        ts.SetProperties: _set_properties,
        ts.UnsetProperties: _unset_properties,
        ts.SetComment: _set_comment,
        ts.AddColumns: _add_columns,
        ts.ReplaceColumns: _replace_columns,
        ts.RenameColumn: _rename_column,
        ts.DropColumns: _drop_columns,
        ts.ChangeColumns: _change_columns,
    }
)
