"""ALTER TABLE with Spark: `DeltaLog.alter` with Spark's types and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.commands.alter.alteration import Change
from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.requests.arguments import several
from optimist.core.requests.columns import ColumnChange, NewColumn, NewColumns
from optimist.core.schema.types import StructType
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.existing_rows import SparkRowChecks
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.spark_schema import sql_of_spark_type

__all__ = ["SparkTableChanges", "changes_of"]

_Request = TypeVar("_Request", NewColumn, ColumnChange)


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
        return super().add_columns(_new_with_types_as_sql(columns))

    def change_columns(self, changes: Iterable[ColumnChange]) -> CommitResult:
        """See `TableChanges.change_columns`."""
        return super().change_columns(_with_types_as_sql(changes, "changes"))

    def replace_columns(self, columns: NewColumns) -> CommitResult:
        """See `TableChanges.replace_columns`."""
        return super().replace_columns(_new_with_types_as_sql(columns))

    def perform(self, change: Change) -> CommitResult | None:
        """See `TableChanges.perform`."""
        with original_errors():
            return super().perform(change)


def _new_with_types_as_sql(given: NewColumns) -> NewColumns:
    is_schema = isinstance(given, Mapping | pa.Schema | StructType)
    return given if is_schema else _with_types_as_sql(given, "columns")


def _with_types_as_sql(given: Iterable[_Request], argument: str) -> list[_Request]:
    return [
        replace(each, data_type=sql_of_spark_type(each.data_type))
        if isinstance(each, NewColumn | ColumnChange) and isinstance(each.data_type, st.DataType)
        else each
        for each in several(given, argument)
    ]
