"""CLONE as a statement: the table that is cloned, and the place of the clone, by names or paths."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import PARQUET, ConvertRequest
from optimist.core.sql.statements import Clone, TableName
from optimist.core.statements.clones import CloneOptions, clone_files, ensure_one_target
from optimist.core.statements.context import OpenTable
from optimist.core.statements.conversions import path_of_files
from optimist.core.statements.result_rows import cloned_rows
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.names import catalog_entry, table_path
from optimist.spark.commands.catalog.server_files import files_on_server
from optimist.spark.commands.maintenance.clone import clone_to_name, clone_to_path
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.drop_in.classic.foreign_tables import CatalogFiles, provider_of
from optimist.spark.session.conf import open_log
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["clone_table"]

_OF_ANOTHER_FORMAT = frozenset(
    {"DELTA_TABLE_ONLY_OPERATION", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"}
)


def clone_table(spark: SparkSession, command: Clone) -> pa.Table:
    """Run the statement.

    Returns:
        One row of numbers; none if a table that is there is kept.

    Raises:
        UsageError: The source can't be cloned (kind `DELTA_CLONE_UNSUPPORTED_SOURCE`), or the
            statement gives two places (`DELTA_CLONE_AMBIGUOUS_TARGET`); and as `DeltaLog.clone`.
        OptimistError: See `DeltaLog.clone`.
    """
    source, files = _source(spark, command.source)
    options, path = CloneOptions.of(command, files), command.table.path
    if path is None:
        name = str(command.table)
        return cloned_rows(clone_to_name(spark, source, name, options, command.location))
    ensure_one_target(command)
    return cloned_rows(clone_to_path(spark, source, path, options))


def _source(spark: SparkSession, table: TableName) -> tuple[OpenTable, ConvertRequest | None]:
    """Return the source, and what its files are if it is no Delta table."""
    context = SparkStatements(spark)
    if table.path is not None or path_of_files(table) is not None:
        return clone_files(context, table)
    try:
        table_path(spark, str(table))
    except (AnalysisException, UsageError) as error:
        told = error.kind if isinstance(error, UsageError) else error.getCondition()
        if told not in _OF_ANOTHER_FORMAT:
            raise
    else:
        return clone_files(context, table)
    return _files_of_name(spark, str(table))


def _files_of_name(spark: SparkSession, name: str) -> tuple[DeltaLog, ConvertRequest]:
    found = files_on_server(spark, name) if is_connect(spark) else _files_of_entry(spark, name)
    if found is None:
        raise UsageError(
            f"{shown(name)} can't be cloned: it is a view, or a table of another format than "
            "Delta, Parquet and Iceberg. Nothing was written. Create a table with its rows.",
            kind="DELTA_CLONE_UNSUPPORTED_SOURCE",
            name=name,
        )
    path, request = found
    return open_log(spark, path), request


def _files_of_entry(spark: SparkSession, name: str) -> tuple[str, ConvertRequest] | None:
    """Return what the catalog of a classic session says of a Parquet table's files."""
    try:
        entry = catalog_entry(spark, name)
    except UsageError:  # of another catalog
        return None
    provider = provider_of(entry)
    if provider is None or provider.lower() != PARQUET:
        return None
    known = CatalogFiles.of(spark, entry)
    return known.path, replace(known.request, catalog_table=known.shown_name)
