"""CLONE as a statement: the table that is cloned, and the place of the clone, by names or paths."""

from __future__ import annotations

from dataclasses import replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import PARQUET, ConvertRequest
from optimist.core.sql.statements import Clone, TableName
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.missing_tables import as_missing_name, as_no_delta_table
from optimist.spark.commands.catalog.names import catalog_entry, table_path
from optimist.spark.commands.maintenance.clone import (
    CloneOptions,
    clone_to_name,
    clone_to_path,
    cloned_frame,
)
from optimist.spark.commands.maintenance.convert import path_of_files
from optimist.spark.drop_in.classic.foreign_tables import CatalogFiles, provider_of
from optimist.spark.session.conf import open_log, session_zone_name

__all__ = ["clone_table"]

_OF_ANOTHER_FORMAT = frozenset(
    {"DELTA_TABLE_ONLY_OPERATION", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"}
)


def clone_table(spark: SparkSession, command: Clone) -> DataFrame:
    """Run the statement.

    Returns:
        One row of numbers; none if a table that is there is kept.

    Raises:
        UsageError: The source can't be cloned (kind `DELTA_CLONE_UNSUPPORTED_SOURCE`), or the
            statement gives two places (`DELTA_CLONE_AMBIGUOUS_TARGET`); and as `DeltaLog.clone`.
        OptimistError: See `DeltaLog.clone`.
    """
    source, files = _source(spark, command.source)
    properties = dict(command.properties)
    request = CloneOptions(command.mode, command.is_shallow, command.travel, properties, files)
    path = command.table.path
    if path is None:
        done = clone_to_name(spark, source, str(command.table), request, command.location)
        return cloned_frame(spark, done)
    if command.location is not None:
        raise UsageError(
            f"Two paths were provided as the CLONE target: the name {shown(path)}, and the "
            f"location {shown(command.location)}. Nothing was written. Leave the location out.",
            kind="DELTA_CLONE_AMBIGUOUS_TARGET",
            path=path,
            location=command.location,
        )
    return cloned_frame(spark, clone_to_path(spark, source, path, request))


def _source(spark: SparkSession, table: TableName) -> tuple[DeltaLog, ConvertRequest | None]:
    """Where the source is, and what its files are where it is no Delta table."""
    if table.path is not None:
        log = open_log(spark, table.path)
        with as_no_delta_table(table.path):
            log.snapshot()
        return log, None
    found = path_of_files(table)
    if found is not None:
        files = found.request(ConvertRequest(zone=session_zone_name(spark)))
        return open_log(spark, found.path), files
    try:
        path = table_path(spark, str(table))
    except (AnalysisException, UsageError) as error:
        told = error.kind if isinstance(error, UsageError) else error.getCondition()
        if told not in _OF_ANOTHER_FORMAT:
            raise
    else:
        log = open_log(spark, path)
        with as_missing_name(str(table)):
            log.snapshot()
        return log, None
    return _files_of_name(spark, str(table))


def _files_of_name(spark: SparkSession, name: str) -> tuple[DeltaLog, ConvertRequest]:
    try:
        entry = catalog_entry(spark, name)
    except UsageError:  # of another catalog
        entry = None
    provider = None if entry is None else provider_of(entry)
    if provider is None or provider.lower() != PARQUET:
        raise UsageError(
            f"{shown(name)} can't be cloned: it is a view, or a table of another format than "
            "Delta, Parquet and Iceberg. Nothing was written. Create a table with its rows.",
            kind="DELTA_CLONE_UNSUPPORTED_SOURCE",
            name=name,
        )
    known = CatalogFiles.of(spark, entry)
    return open_log(spark, known.path), replace(known.request, catalog_table=known.shown_name)
