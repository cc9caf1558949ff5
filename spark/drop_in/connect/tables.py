"""CREATE and REPLACE TABLE of a Spark Connect client, for paths and for names."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.create.create import create_table
from optimist.core.requests.table_definition import TableDefinition
from optimist.core.sql.spark_statements.table_statements import CreateTable
from optimist.core.statements.creations import one_place
from optimist.spark.commands.catalog.named_tables import complete_for_place, create_named
from optimist.spark.commands.catalog.server_entries import ensure_still_named, named_place
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.create_as_select import create_as_select
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.shared.options import write_options
from optimist.spark.sql.quoted_texts import ensure_definition_reads_alike

__all__ = ["create", "create_named_as_select"]


def create(spark: SparkSession, statement: CreateTable, sql: FormattedSql) -> None:
    """Make or replace a table, with its rows where the statement has a query.

    Args:
        spark: The client's session.
        statement: The statement.
        sql: Its text.
    """
    request = WriteRequest.of("error", None, write_options(dict(statement.options)))
    given = statement.definition
    definition = replace(given, properties={**request.properties, **given.properties})
    ensure_definition_reads_alike(spark, definition.columns, definition.properties)
    if statement.table.path is None:
        _create_named(spark, statement, definition, request, sql)
        return
    log = open_target(spark, one_place(statement.table.path, statement.location))
    if statement.query is None:
        create_table(log.start_transaction, definition)
    else:
        rows = sql.query(spark, statement.query.sql)
        create_as_select(rows, log, definition, request)


def create_named_as_select(
    rows: DataFrame,
    name: str,
    definition: TableDefinition,
    request: WriteRequest,
    location: str | None = None,
) -> None:
    """Make or replace a table of the catalog with its rows.

    Args:
        rows: The rows.
        name: The name, as SQL writes it.
        definition: The rest of the table's definition.
        request: Options of the write.
        location: The place of the table; None leaves that to the catalog.
    """
    _ = rows.schema  # an error of the query comes before the name
    spark = rows.sparkSession
    with named_place(spark, name, location, definition.mode) as place:
        if place is not None:
            log = open_target(spark, place.path)
            completed = complete_for_place(place, definition)
            check = partial(ensure_still_named, spark, place)
            create_as_select(rows, log, completed, request, before_commit=check)


def _create_named(
    spark: SparkSession,
    statement: CreateTable,
    definition: TableDefinition,
    request: WriteRequest,
    sql: FormattedSql,
) -> None:
    name, location = str(statement.table), statement.location
    if statement.query is None:
        create_named(spark, name, definition, location)
        return
    rows = sql.query(spark, statement.query.sql)
    create_named_as_select(rows, name, definition, request, location)
