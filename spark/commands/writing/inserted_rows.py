"""Rows as INSERT takes them: columns by position or name, cast to the table's types.

Delta lets Spark accept any rows, so that columns can be generated, numbered or new. This module
decides which column a value is for, and how it is cast. The write then decides whether the rows fit
the table: values that can't be converted here are passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.widening import allowed_widening
from optimist.core.schema.types import ArrayType, DataType, MapType, StructType
from optimist.core.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.rows.row_shape import Reshaping, column_of
from optimist.spark.rows.store_assignment import StoreAssignment
from optimist.spark.spark_schema import to_spark_type, type_of_values
from optimist.spark.sql.table_sql import TableSql

__all__ = ["InsertedRows"]


@dataclass(frozen=True, slots=True)
class InsertedRows:
    """A conversion of rows to the shape of a table.

    Attributes:
        spark: The session.
        snapshot: The table.
        name: The table's name, for errors.
        merges_schema: True if the write may add columns and widen types.
    """

    spark: SparkSession
    snapshot: Snapshot
    name: str
    merges_schema: bool

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        log: DeltaLog,
        name: str,
        request: WriteRequest,
        snapshot: Snapshot | None = None,
    ) -> InsertedRows:
        """Return the conversion for a write into a version of a table, by default the newest.

        Raises:
            TableNotFoundError: The table does not exist.
        """
        merges = request.merge_schema
        merges = log.options.schema_auto_merge_enabled if merges is None else merges
        return cls(spark, snapshot or log.snapshot(), name, merges)

    def by_position(
        self, rows: DataFrame, given: Mapping[str, Column] = MappingProxyType({})
    ) -> DataFrame:
        """Return the rows with the table's names by position, and any other columns after them.

        Fields of structs are named by position, too, at any depth.

        Args:
            rows: The rows.
            given: The values of columns that the rows lack, by the table's names.

        Raises:
            SchemaError: The rows or a struct have fewer columns or fields than the table (kind
                `DELTA_INSERT_COLUMN_ARITY_MISMATCH`).
        """
        schema = self.snapshot.schema
        own = [field.name for field in schema if field.name not in given]
        self._ensure_enough(len(rows.columns), len(own), None)
        renamed = rows.toDF(*own, *rows.columns[len(own) :])
        if given:
            renamed = renamed.withColumns(dict(given))
        columns = []
        for item in renamed.schema.fields:
            field, column = schema.find(item.name), column_of(item.name)
            source = type_of_values(item)
            if field is not None and source is not None:
                named = self._take_names_of(source, field.data_type, field.name)
                if named != source:
                    column = column.cast(to_spark_type(named)).alias(item.name)
            columns.append(column)
        return self.cast(renamed.select(*columns))

    def cast(self, rows: DataFrame) -> DataFrame:
        """Cast the values of the table's columns as `spark.sql` stores them."""
        sql = TableSql(self.spark, self.snapshot.table_path, self.snapshot.schema)
        shaping = Reshaping(StoreAssignment.of(self.spark), sql)
        columns, is_changed = [], False
        for item in rows.schema.fields:
            field, source = self.snapshot.schema.find(item.name), type_of_values(item)
            column = column_of(item.name)
            if field is not None and not self._is_passed_on(source, field.data_type):
                value = shaping.reshaped(column, source, field.data_type, (field.name,))
                column, is_changed = value.alias(item.name), True
            columns.append(column)
        return rows.select(*columns) if is_changed else rows

    def _is_passed_on(self, source: DataType | None, target: DataType) -> bool:
        """Check whether a value is passed on unchanged, since a cast would lose a part of it."""
        return source == target or (source is not None and self._holds_more(source, target))

    def _holds_more(self, source: DataType, target: DataType) -> bool:
        """Check whether the target lacks a field of a struct, or a type should widen."""
        if isinstance(source, StructType) and isinstance(target, StructType):
            pairs = [(field.data_type, target.find(field.name)) for field in source]
            return any(
                found is None or self._holds_more(data_type, found.data_type)
                for data_type, found in pairs
            )
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            return self._holds_more(source.element_type, target.element_type)
        if isinstance(source, MapType) and isinstance(target, MapType):
            return self._holds_more(source.key_type, target.key_type) or self._holds_more(
                source.value_type, target.value_type
            )
        may_widen = allowed_widening(self.snapshot.metadata, self.snapshot.protocol)
        return self.merges_schema and may_widen is not None and may_widen(target, source)

    def _take_names_of(self, source: DataType, target: DataType, column: str) -> DataType:
        """Return a type with the names that the target has at the same positions."""
        if isinstance(source, StructType) and isinstance(target, StructType):
            self._ensure_enough(len(source), len(target), column)
            fields = [
                replace(
                    one,
                    name=other.name,
                    data_type=self._take_names_of(
                        one.data_type, other.data_type, f"{column}.{other.name}"
                    ),
                )
                for one, other in zip(source, target, strict=False)
            ]
            return StructType((*fields, *source.fields[len(target) :]))
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            element = self._take_names_of(
                source.element_type, target.element_type, f"{column}.element"
            )
            return replace(source, element_type=element)
        if isinstance(source, MapType) and isinstance(target, MapType):
            key = self._take_names_of(source.key_type, target.key_type, f"{column}.key")
            value = self._take_names_of(source.value_type, target.value_type, f"{column}.value")
            return replace(source, key_type=key, value_type=value)
        return source

    def _ensure_enough(self, given: int, wanted: int, column: str | None) -> None:
        if given >= wanted:
            return
        where = "table has" if column is None else f"column {shown(column)} has fields:"
        raise SchemaError(
            f"The rows can't be inserted into {shown(self.name)}: the {where} {wanted} columns, "
            f"but the rows have {given}. Nothing was written. Give a value for each, or name the "
            "columns that the values are for: INSERT INTO table (column, ...).",
            kind="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            column=column,
            expected=wanted,
            given=given,
        )
