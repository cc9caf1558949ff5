"""ALTER TABLE with Spark: `DeltaLog.alter` with Spark's types and errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.commands.alter.alteration import Change
from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.requests.arguments import several
from optimist.core.requests.columns import ColumnChange, ColumnChanges, NewColumn, NewColumns
from optimist.core.schema.types import StructType
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.existing_rows import SparkRowChecks
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.spark_schema import sql_of_spark_type

__all__ = ["SparkTableChanges", "changes_of"]


def changes_of(spark: SparkSession, log: TableHandle) -> TableChanges:
    """Return the changes of `DeltaLog.alter`, with Spark for rules and rows that need it.

    Args:
        spark: A classic session, or a Spark Connect client.
        log: The table.
    """
    return TableChanges(log, SparkRowChecks(spark))


class SparkTableChanges(TableChanges):
    """`TableChanges` as `DeltaTable.alter` returns it.

    Spark checks rules, and reads the rows that must obey them. A column's type may be one of
    Spark's. Errors are PySpark's as well (docs/errors.md).
    """

    def __init__(self, spark: SparkSession, log: TableHandle) -> None:
        super().__init__(log, SparkRowChecks(spark))

    def add_columns(self, columns: NewColumns) -> CommitResult:
        """See `TableChanges.add_columns`."""
        return super().add_columns(_with_types_as_sql(columns, "columns"))

    def change_columns(self, changes: ColumnChanges) -> CommitResult:
        """See `TableChanges.change_columns`."""
        return super().change_columns(_with_types_as_sql(changes, "changes"))

    def replace_columns(self, columns: NewColumns) -> CommitResult:
        """See `TableChanges.replace_columns`."""
        return super().replace_columns(_with_types_as_sql(columns, "columns"))

    def perform(self, change: Change) -> CommitResult | None:
        """See `TableChanges.perform`."""
        with original_errors():
            return super().perform(change)


def _with_types_as_sql(given: Any, argument: str) -> Any:
    """Return columns that a caller gives with SQL in place of Spark's types."""
    if isinstance(given, pa.Schema | StructType):
        return given
    items = given.items() if isinstance(given, Mapping) else several(given, argument)
    return [_with_type_as_sql(each) for each in items]


def _with_type_as_sql(given: Any) -> Any:
    if isinstance(given, NewColumn | ColumnChange) and isinstance(given.data_type, st.DataType):
        return replace(given, data_type=sql_of_spark_type(given.data_type))
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], st.DataType):
        return given[0], sql_of_spark_type(given[1])
    return given
