"""SHOW CREATE TABLE in a classic session: a plan with the text of `statement_text`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from optimist.core.snapshot import Snapshot
from optimist.core.statements.shows import CREATE_STATEMENT, statement_text
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.rows.local_rows import result_frame, spark_columns

__all__ = ["show_statement"]


def show_statement(
    spark: SparkSession, snapshot: Snapshot, name: str, entry: CatalogTable | None
) -> Any:
    """Return a plan with the statement that makes a table like this one.

    Args:
        spark: The session.
        snapshot: The version.
        name: The name of the table, as SQL writes it.
        entry: Its entry in the catalog; None for a path.
    """
    location = None if entry is None or entry.is_managed else entry.path
    text = statement_text(snapshot, name, location)

    def run(session: SparkSession) -> DataFrame:
        return result_frame(session, pa.table([[text]], schema=CREATE_STATEMENT))

    columns = spark_columns(CREATE_STATEMENT)
    return python_command(spark, f"SHOW CREATE TABLE {name}", columns, run)
