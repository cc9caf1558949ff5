"""CONVERT TO DELTA as a statement: paths, and Parquet tables of the session's catalog.

A table's name stays; its entry in the catalog becomes that of a Delta table once its log is there.
If the statement is stopped between the two, it is run again: the log is found, and the entry made.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.care.conversion import ConvertRequest
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.types import StructType
from optimist.core.sql.statements import ConvertToDelta
from optimist.spark.commands.convert import (
    convert_directory,
    converted_path,
    partition_columns_of,
)
from optimist.spark.commands.names import CatalogTable, is_delta
from optimist.spark.commands.table_statement import ensure_names_known
from optimist.spark.drop_in.classic.catalog_entries import become_delta
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import Jvm, iterate, text_map
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["convert_table"]

_PARQUET = "parquet"


def convert_table(spark: SparkSession, command: ConvertToDelta) -> None:
    """Run the statement; where there is a Delta table already, it does nothing.

    Raises:
        UsageError: The table is of another format (kind `DELTA_CONVERT_NON_PARQUET_TABLE`).
        SchemaError: The table is a view (kind `DELTA_OPERATION_NOT_ALLOWED_DETAIL`), or the
            statement names other partition columns than the catalog
            (`DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER`).
        AnalysisException: Spark knows no such table.
        OptimistError: See `core.care.convert`.
    """
    source = converted_path(command.table)
    given = partition_columns_of(command.partitioned_by)
    zone = session_zone_name(spark)
    if source is not None:
        request = source.request(ConvertRequest(given, command.collects_statistics, zone))
        convert_directory(spark, source.path, request)
        return
    name = str(command.table)
    ensure_names_known(spark, name)
    entry = _entry(spark, name)
    if entry is None:
        return
    partitions = _partition_columns(entry)
    if command.partitioned_by and str(given).lower() != str(partitions).lower():
        raise SchemaError(
            f"CONVERT TO DELTA was called with the partition columns {given}, but those of the "
            f"catalog are {partitions}. Nothing was written. Leave PARTITIONED BY out.",
            kind="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
            name=name,
        )
    known = CatalogTable.of(spark, entry)
    comment = entry.comment()
    request = ConvertRequest(
        partitions,
        command.collects_statistics,
        zone,
        catalog_table=known.name,
        properties=_properties(spark, entry),
        comment=str(comment.get()) if comment.isDefined() else None,
        columns=_schema(entry.dataSchema()),
    )
    convert_directory(spark, known.path, request)
    become_delta(spark, entry)


def _entry(spark: SparkSession, name: str) -> Any:
    """The entry of a Parquet table, a Java `CatalogTable`; None if it is one of Delta."""
    jvm = Jvm.of(spark)
    state = jvm.session.sessionState()
    identifier = state.sqlParser().parseTableIdentifier(name)
    entry = state.catalog().getTempViewOrPermanentTableMetadata(identifier)
    if str(entry.tableType().name()) == "VIEW":
        raise SchemaError(
            f"Operation not allowed: {shown(name)} is a view, and a view can't be converted to a "
            "Delta table. Nothing was written. Create a table with its rows.",
            kind="DELTA_OPERATION_NOT_ALLOWED_DETAIL",
            name=name,
        )
    provider = str(entry.provider().get()) if entry.provider().isDefined() else "unknown"
    if is_delta(provider):
        return None
    if provider.lower() != _PARQUET:
        raise UsageError(
            f"CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
            f"{shown(provider)} source: {shown(name)}. Nothing was written. Create a table with "
            "its rows.",
            kind="DELTA_CONVERT_NON_PARQUET_TABLE",
            format=provider,
        )
    return entry


def _partition_columns(entry: Any) -> StructType:
    names = {str(name) for name in iterate(entry.partitionColumnNames())}
    return StructType(tuple(item for item in _schema(entry.schema()) if item.name in names))


def _schema(schema: Any) -> StructType:
    found = st.StructType.fromJson(json.loads(schema.json()))
    return from_spark_schema(found)


def _properties(spark: SparkSession, entry: Any) -> dict[str, str]:
    java = Jvm.of(spark).root.scala.jdk.javaapi.CollectionConverters.asJava(entry.properties())
    return text_map(spark, java)
