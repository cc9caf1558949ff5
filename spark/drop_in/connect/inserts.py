"""INSERT of a Spark Connect client into a path: from the text to a write."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.text import quote_identifier
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.types import StructField
from optimist.core.snapshot import Snapshot
from optimist.core.sql import values_left_to_default
from optimist.core.sql.reader import Reader
from optimist.core.sql.spark_statements.table_statements import Insert
from optimist.core.sql.statements import SqlText
from optimist.core.statements.inserts import ensure_insertable, partition_values
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.inserted_rows import InsertedRows
from optimist.spark.commands.writing.inserted_write import write_inserted
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.spark_schema import to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["insert_rows"]


def insert_rows(spark: SparkSession, statement: Insert, sql: FormattedSql) -> None:
    """Run an INSERT.

    Args:
        spark: The client's session.
        statement: The statement.
        sql: Its text.

    Raises:
        TableNotFoundError: There is no table at the path.
        SchemaError: The rows have too few columns, or do not fit; nothing was written.
        UsageError: A column is named twice (kind `DELTA_DUPLICATE_COLUMNS_ON_INSERT`).
    """
    path = str(statement.table.path)
    log, mode = open_target(spark, path), "overwrite" if statement.is_overwrite else "append"
    options: dict[str, object] = {"mergeSchema": True} if statement.evolves_schema else {}
    inserted = InsertedRows.of(
        spark, log, str(statement.table), WriteRequest.of(mode, None, options)
    )
    given = partition_values(statement, inserted.snapshot)
    replaced = _replaced(spark, statement, given, inserted.snapshot)
    if replaced is not None:
        options["replaceWhere"] = replaced
    rows = _rows(spark, statement, given, inserted.snapshot, sql)
    values = {name: sf.expr(value.sql) for name, value in given.items()}
    shaped = _shaped(rows, statement, inserted, values)
    request = WriteRequest.of(mode, None, options)
    write_inserted(inserted, shaped, path, replace(request, needs_table=True))


def _rows(
    spark: SparkSession,
    statement: Insert,
    given: Mapping[str, SqlText],
    snapshot: Snapshot,
    sql: FormattedSql,
) -> DataFrame:
    """Return the rows of the query, with the columns' defaults in place of DEFAULT."""
    text = statement.query.sql
    if not values_left_to_default(text):
        return sql.query(spark, text)
    if not Reader(text).is_at("VALUES"):
        with suppress(AnalysisException):
            rows = sql.query(spark, text)
            _ = rows.schema
            return rows  # what it reads has a column of that name
    return sql.query(spark, _with_defaults(spark, statement, given, snapshot))


def _with_defaults(
    spark: SparkSession, statement: Insert, given: Mapping[str, SqlText], snapshot: Snapshot
) -> str:
    query, schema = statement.query.sql, snapshot.schema
    names = statement.columns or tuple(item.name for item in schema if item.name not in given)
    table = TableSql(spark, snapshot.table_path, schema)
    for place, span in reversed(values_left_to_default(query)):
        item = schema.find(names[place]) if place < len(names) else None
        if item is not None:
            query = f"{query[: span.start]}{_default(item, table)}{query[span.end :]}"
    return query


def _default(item: StructField, table: TableSql) -> str:
    if generation_expression(item) is not None or is_identity_column(item):
        raise refused(
            f"DEFAULT for the column {item.name}, whose values are made by the table",
            "Leave the column out: name the others in INSERT INTO table (column, ...).",
        )
    return table.default_text(item)


def _shaped(
    rows: DataFrame, statement: Insert, inserted: InsertedRows, given: Mapping[str, Column]
) -> DataFrame:
    """Return the rows under the table's names and in its types."""
    if statement.columns is None and not statement.is_by_name:
        return inserted.by_position(rows, given)
    if statement.columns is not None:
        rows = _named(rows, statement.columns, inserted)
    return inserted.cast(rows.withColumns(dict(given)) if given else rows)


def _named(rows: DataFrame, columns: tuple[str, ...], inserted: InsertedRows) -> DataFrame:
    """Return the rows under the names in the statement's list."""
    schema = inserted.snapshot.schema
    ensure_insertable(columns, schema, inserted.name, may_add=inserted.merges_schema)
    if len(rows.columns) != len(columns):
        raise SchemaError(
            f"The rows can't be inserted into {shown(inserted.name)}: {len(columns)} columns are "
            f"named, but the rows have {len(rows.columns)}. Nothing was written. Name a column for "
            "each value.",
            kind="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            expected=len(columns),
            given=len(rows.columns),
        )
    return rows.toDF(*columns)


def _replaced(
    spark: SparkSession, statement: Insert, given: Mapping[str, SqlText], snapshot: Snapshot
) -> str | None:
    """Return the condition of the rows that are replaced, or None if the mode says it."""
    if statement.replace_where is not None:
        return statement.replace_where.sql
    if not statement.is_overwrite or not given:
        return None
    is_part = len(given) < len(snapshot.metadata.partition_columns)
    if is_part and WriteRequest.of("overwrite", None, {}).replaces_partitions(spark):
        return None
    return " AND ".join(
        f"{quote_identifier(item.name)} <=> {_as_stored(given[item.name], item)}"
        for item in snapshot.schema
        if item.name in given
    )


def _as_stored(value: SqlText, column: StructField) -> str:
    """Cast a value to the column's type, since `1` would equal the text `01`."""
    return f"CAST({value.sql} AS {to_spark_type(column.data_type).simpleString()})"
