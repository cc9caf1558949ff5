"""SHOW and DESCRIBE TABLE of a Spark Connect client, over Delta tables."""

from __future__ import annotations

from contextlib import nullcontext

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from optimist.core.snapshot import Snapshot
from optimist.core.sql import TableName
from optimist.core.sql.spark_statements.shows import Show
from optimist.core.statements.missing_tables import as_missing_name
from optimist.core.statements.shows import CREATE_STATEMENT, shown_rows, statement_text
from optimist.spark.commands.catalog.names import named_table
from optimist.spark.commands.reading.read import ensure_table_at, open_version
from optimist.spark.rows.local_rows import local_frame, spark_columns
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.conf import session_zone_name

__all__ = ["show", "snapshot_of"]

_STATEMENT = spark_columns(CREATE_STATEMENT)


def show(spark: SparkSession, statement: Show) -> DataFrame:
    """Return the rows of a statement, whose path may name a version, as `table@v3`."""
    table = statement.table
    snapshot = snapshot_of(spark, table)
    if table.location is not None and statement.what == "SHOW CREATE TABLE":
        return local_frame(spark, _create_statement(spark, table, snapshot), _STATEMENT)
    rows = shown_rows(snapshot, statement, session_zone_name(spark))
    return local_frame(spark, rows, spark_columns(rows.schema))


def snapshot_of(spark: SparkSession, table: TableName) -> Snapshot:
    """Return the version of a table that its name means."""
    with nullcontext() if table.location is None else as_missing_name(str(table)):
        if table.location is not None:
            ensure_table_at(spark, table.location)
        return open_version(spark, str(table.path)).snapshot


def _create_statement(spark: SparkSession, table: TableName, snapshot: Snapshot) -> pa.Table:
    """Return the statement that makes a table of the catalog, as a classic session does."""
    path, entry = named_table(spark, ".".join(map(quoted, table.parts)))
    name = str(table) if entry is None else entry.name
    location = None if entry is None or entry.is_managed else path
    return pa.table([[statement_text(snapshot, name, location)]], schema=CREATE_STATEMENT)
