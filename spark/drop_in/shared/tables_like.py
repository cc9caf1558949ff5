"""CREATE TABLE ... LIKE, where the table that is made is one of Delta.

It gets the columns with their rules, the layout, the properties, the CHECK constraints and the
comment of its source in one commit, and no rows.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.commands.create.create import create_table
from optimist.core.commands.create.existing_definition import definition_of
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.requests.table_definition import TableDefinition, columns_of
from optimist.core.sql.statements import CreateLike, TableName
from optimist.core.statements.creations import ensure_same_place, like
from optimist.core.statements.result_rows import NO_ROWS
from optimist.spark.commands.catalog.named_tables import create_named
from optimist.spark.commands.catalog.names import catalog_entry, is_delta, table_path
from optimist.spark.commands.reading.read import open_target
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import iterate
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["create_like", "makes_delta_table"]


def makes_delta_table(spark: SparkSession, command: CreateLike) -> bool:
    """Tell whether the statement makes a Delta table: its source is one, or it asks for one.

    Raises:
        UsageError: It makes a table of another format from a Delta table, whose columns Spark's
            catalog does not know (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    if command.provider is not None and is_delta(command.provider):
        return True
    is_like_delta = _path(spark, command.source) is not None
    if is_like_delta and command.provider is not None:
        raise _of_unknown_columns(command, command.provider)
    return is_like_delta


def create_like(spark: SparkSession, command: CreateLike) -> pa.Table:
    """Run the statement.

    Raises:
        UsageError: The table exists, or other files are at its place; and as `create_named`.
        TableNotFoundError: There is no table at the path of the source.
    """
    path = _path(spark, command.source)
    if path is None:
        known = _of_another_format(spark, command.source)
    else:
        known = definition_of(open_log(spark, path).snapshot())
    _make(spark, command, like(known, command))
    return NO_ROWS


def _of_another_format(spark: SparkSession, source: TableName) -> TableDefinition:
    """Return the columns, partitions and comment of a table or view that Spark knows."""
    columns = columns_of(from_spark_schema(spark.table(str(source)).schema))
    if is_connect(spark):
        catalog, name = spark.catalog, str(source)
        parts = tuple(each.name for each in catalog.listColumns(name) if each.isPartition)
        text = catalog.getTable(name).description
        return TableDefinition(columns=columns, partition_by=parts, comment=text)
    entry = catalog_entry(spark, str(source))
    comment = entry.comment()
    return TableDefinition(
        columns=columns,
        partition_by=tuple(map(str, iterate(entry.partitionColumnNames()))),
        comment=str(comment.get()) if comment.isDefined() else None,
    )


def _make(spark: SparkSession, command: CreateLike, definition: TableDefinition) -> None:
    path = command.table.path
    if path is None:
        create_named(spark, str(command.table), definition, command.location)
    else:
        ensure_same_place(command)
        create_table(open_target(spark, path).start_transaction, definition)


def _path(spark: SparkSession, table: TableName) -> str | None:
    """Return the path of a Delta table, or None for a table of another format."""
    if table.path is not None:
        return table.path
    try:
        return table_path(spark, str(table))
    except (AnalysisException, UsageError):
        return None


def _of_unknown_columns(command: CreateLike, provider: str) -> UsageError:
    source, asked = shown(str(command.source)), shown(provider)
    return UsageError(
        f"CREATE TABLE ... LIKE can't make a table of the format {asked} from the Delta table "
        f"{source}, because Spark's catalog does not know its columns. Nothing was made. Use "
        f"CREATE TABLE {shown(str(command.table))} USING {asked} AS SELECT * FROM {source} "
        "LIMIT 0.",
        kind="OPTIMIST_UNSUPPORTED_STATEMENT",
        statement="CREATE TABLE LIKE of another format",
    )
