"""CREATE and REPLACE TABLE of a Spark Connect client, over paths."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from optimist.core.commands.create.create import create_table
from optimist.core.sql.spark_statements.table_statements import CreateTable
from optimist.core.statements.creations import one_place
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.create_as_select import create_as_select
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.shared.options import write_options

__all__ = ["create"]


def create(spark: SparkSession, statement: CreateTable, sql: FormattedSql) -> None:
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
