"""CONVERT TO DELTA as a statement: paths, and Parquet tables of the session's catalog.

A table's name stays; its entry in the catalog becomes that of a Delta table once its log is there.
If the statement is stopped between the two, it is run again: the log is found, and the entry made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import PARQUET
from optimist.core.sql.statements import ConvertToDelta
from optimist.core.statements.conversions import (
    convert_files,
    convert_path,
    converted_path,
    partition_columns_of,
)
from optimist.core.statements.result_rows import NO_ROWS
from optimist.spark.commands.catalog.catalog_entries import become_delta
from optimist.spark.commands.catalog.named_tables import ensure_names_known
from optimist.spark.commands.catalog.names import catalog_entry, is_delta
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.drop_in.classic.foreign_tables import CatalogFiles, provider_of

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
    given, name = partition_columns_of(command.partitioned_by), str(command.table)
    ensure_names_known(spark, name)
    entry = _entry(spark, name)
    if entry is None:
        return NO_ROWS
    known = CatalogFiles.of(spark, entry)
    partitions = known.request.partition_columns
    if command.partitioned_by and str(given).lower() != str(partitions).lower():
        raise SchemaError(
            f"CONVERT TO DELTA was called with the partition columns {given}, but those of the "
            f"catalog are {partitions}. Nothing was written. Leave PARTITIONED BY out.",
            kind="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
            name=name,
        )
    found = replace(known.request, collects_statistics=command.collects_statistics)
    convert_files(context, context.open_path(known.path), found)
    become_delta(spark, entry)
    return NO_ROWS


def _entry(spark: SparkSession, name: str) -> Any:
    """Return the entry of a Parquet table, a Java `CatalogTable`, or None for a Delta table."""
    entry = catalog_entry(spark, name)
    provider = provider_of(entry)
    if provider is None:
        raise SchemaError(
            f"Operation not allowed: {shown(name)} is a view, and a view can't be converted to a "
            "Delta table. Nothing was written. Create a table with its rows.",
            kind="DELTA_OPERATION_NOT_ALLOWED_DETAIL",
            name=name,
        )
    if is_delta(provider):
        return None
    if provider.lower() != PARQUET:
        raise UsageError(
            f"CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
            f"{shown(provider)} source: {shown(name)}. Nothing was written. Create a table with "
            "its rows.",
            kind="DELTA_CONVERT_NON_PARQUET_TABLE",
            format=provider,
        )
    return entry
