"""`spark.catalog` of a Spark Connect client, where a Delta table is meant.

Its entries hold no columns, and the server must know the format to look at one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.catalog import Column

from optimist.core.protocol.clustering import clustering_columns
from optimist.core.requests.table_definition import TableDefinition, columns_of
from optimist.core.sql import TableName
from optimist.core.statements.missing_tables import as_missing_name
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.named_tables import create_named
from optimist.spark.commands.catalog.server_source import ensure_format_known
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.connect.frames import Original, asks_for_delta, paths_of, session_of
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.drop_in.connect.statement_names import place_of_name
from optimist.spark.drop_in.shared.options import only_path, write_options
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.conf import open_log
from optimist.spark.spark_schema import from_spark_schema, to_spark_schema

__all__ = ["CATALOG"]


def _list_columns(
    original: Original, catalog: Any, tableName: str, dbName: str | None = None
) -> list[Column]:
    """Return the columns of a table, from its log."""
    name = tableName if dbName is None else f"{quoted(dbName)}.{quoted(tableName)}"
    spark = session_of(catalog)
    table = place_of_name(spark, name)
    if table is None:
        columns: list[Column] = original(tableName, dbName)
        return columns
    return _columns(open_log(spark, str(table.path)), table)


def _columns(log: DeltaLog, table: TableName) -> list[Column]:
    with as_missing_name(str(table)):
        snapshot = log.snapshot()
    clustered = clustering_columns(snapshot.domain_metadata, snapshot.schema) or ()
    return [
        Column(
            name=item.name,
            description=item.metadata.get("comment"),
            dataType=item.dataType.simpleString(),
            nullable=item.nullable,
            isPartition=item.name in snapshot.partition_columns,
            isBucket=False,
            isCluster=(item.name,) in clustered,
        )
        for item in to_spark_schema(snapshot.schema)
    ]


def _create_table(
    original: Original,
    catalog: Any,
    tableName: str,
    path: str | None = None,
    source: str | None = None,
    *more: Any,
    **named: Any,
) -> DataFrame:
    """Make a table, or give a name to one that is at the path."""
    if not asks_for_delta(catalog, source):
        frame: DataFrame = original(tableName, path, source, *more, **named)
        return frame
    given = {**dict(zip(("schema", "description"), more, strict=False)), **named}
    schema, comment = given.pop("schema", None), given.pop("description", None)
    spark, paths = session_of(catalog), paths_of(path, given)
    definition = TableDefinition(
        columns=() if schema is None else columns_of(from_spark_schema(schema)),
        comment=comment,
        properties=WriteRequest.of("error", None, write_options(given)).properties,
    )
    create_named(spark, tableName, definition, only_path(paths) if paths else None)
    return spark.table(tableName)


def _about_entry(original: Original, catalog: Any, tableName: str, *args: Any, **named: Any) -> Any:
    """Let the server look at an entry."""
    spark = session_of(catalog)
    if place_of_name(spark, tableName) is not None:
        ensure_format_known(spark)
    return original(tableName, *args, **named)


def _truncate(original: Original, catalog: Any, tableName: str) -> None:
    spark = session_of(catalog)
    table = place_of_name(spark, tableName)
    if table is None:
        original(tableName)
    else:
        spark.sql(f"TRUNCATE TABLE {table}")


def _refusing(what: str) -> Callable[..., Any]:
    """Return a method that refuses a Delta table, of which the server has no rows."""

    def method(original: Original, catalog: Any, tableName: str, *args: Any, **named: Any) -> Any:
        if place_of_name(session_of(catalog), tableName) is not None:
            raise refused(f"catalog.{what} of a Delta table", "Use spark.sql or DeltaTable.")
        return original(tableName, *args, **named)

    return method


CATALOG: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "createTable": _create_table,
        "listColumns": _list_columns,
        "getTable": _about_entry,
        "refreshTable": _about_entry,
        "dropTable": _about_entry,
        "truncateTable": _truncate,
        **{
            what: _refusing(what)
            for what in (
                "analyzeTable",
                "cacheTable",
                "getCreateTableString",
                "getTableProperties",
                "listPartitions",
                "recoverPartitions",
            )
        },
    }
)
"""Some of these methods came with PySpark 4.3."""
