"""CONVERT TO DELTA as a statement: paths, and Parquet tables of the session's catalog.

A table's name stays; its entry in the catalog becomes that of a Delta table once its log is there.
If the statement is stopped between the two, it is run again: the log is found, and the entry made.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from optimist.core.sql.statements import ConvertToDelta
from optimist.core.statements.conversions import (
    convert_named_files,
    convert_path,
    converted_path,
    ensure_convertible,
)
from optimist.core.statements.result_rows import NO_ROWS
from optimist.spark.commands.catalog.catalog_entries import become_delta
from optimist.spark.commands.catalog.named_tables import ensure_names_known
from optimist.spark.commands.catalog.names import catalog_entry, is_delta
from optimist.spark.commands.maintenance.named_conversions import convert_on_server
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.drop_in.classic.foreign_tables import CatalogFiles, provider_of
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["convert_table"]


def convert_table(spark: SparkSession, command: ConvertToDelta) -> pa.Table:
    """Run the statement, or do nothing where there is a Delta table already.

    Raises:
        UsageError: The table is of another format (kind `DELTA_CONVERT_NON_PARQUET_TABLE`).
        SchemaError: The table is a view (kind `DELTA_OPERATION_NOT_ALLOWED_DETAIL`), or the
            statement names other partition columns than the catalog
            (`DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER`).
        AnalysisException: Spark knows no such table.
        OptimistError: See `core.maintenance.convert.convert`.
    """
    context = SparkStatements(spark)
    if converted_path(command.table) is not None:
        return convert_path(context, command)
    name = str(command.table)
    if is_connect(spark):
        convert_on_server(spark, command)
        return NO_ROWS
    ensure_names_known(spark, name)
    entry = _entry(spark, name)
    if entry is None:
        return NO_ROWS
    known = CatalogFiles.of(spark, entry)
    convert_named_files(context, command, known.path, known.request)
    become_delta(spark, entry)
    return NO_ROWS


def _entry(spark: SparkSession, name: str) -> Any:
    """Return the entry of a Parquet table, a Java `CatalogTable`, or None for a Delta table."""
    entry = catalog_entry(spark, name)
    provider = provider_of(entry)
    if is_delta(provider):
        return None
    ensure_convertible(name, provider)
    return entry
