"""The columns of an Iceberg table, as columns of a Delta table that is mapped by their ids."""

from __future__ import annotations

from pyiceberg import types as it
from pyiceberg.schema import Schema

from optimist.core.data.table_ref import TableRef
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.iceberg_table import refused
from optimist.core.schema.types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = ["delta_schema"]

_PRIMITIVE: dict[type[it.IcebergType], str] = {
    it.BooleanType: "boolean",
    it.IntegerType: "integer",
    it.LongType: "long",
    it.FloatType: "float",
    it.DoubleType: "double",
    it.DateType: "date",
    it.TimestampType: "timestamp_ntz",
    it.TimestamptzType: "timestamp",
    it.StringType: "string",
    it.BinaryType: "binary",
}
_WRITE_ANEW = "Read it with an engine of Iceberg, and write the rows to a new table"


def delta_schema(schema: Schema, table: TableRef) -> StructType:
    """Return the columns with their ids, without physical names.

    Raises:
        UsageError: Delta lacks a column's type, or a column has an initial default, which files
            lack (kind `OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE`).
    """
    return _Columns(table).struct(schema.fields, ())


class _Columns:
    """Converts Iceberg columns to Delta columns."""

    def __init__(self, table: TableRef) -> None:
        self._table = table

    def struct(self, fields: tuple[it.NestedField, ...], path: tuple[str, ...]) -> StructType:
        return StructType(tuple(self._convert_field(item, (*path, item.name)) for item in fields))

    def _convert_field(self, item: it.NestedField, path: tuple[str, ...]) -> StructField:
        if item.initial_default is not None:
            what = f"a value of the column {shown('.'.join(path))} for files that lack it"
            raise refused(self._table, what, _WRITE_ANEW)
        metadata: dict[str, object] = {COLUMN_ID: item.field_id}
        if item.doc:
            metadata["comment"] = item.doc
        data_type = self._convert_type(item.field_type, path)
        return StructField(item.name, data_type, not item.required, metadata)

    def _convert_type(self, kind: it.IcebergType, path: tuple[str, ...]) -> DataType:
        if isinstance(kind, it.StructType):
            return self.struct(kind.fields, path)
        if isinstance(kind, it.ListType):
            element = self._convert_type(kind.element_type, (*path, "element"))
            return ArrayType(element, not kind.element_required)
        if isinstance(kind, it.MapType):
            key = self._convert_type(kind.key_type, (*path, "key"))
            value = self._convert_type(kind.value_type, (*path, "value"))
            return MapType(key, value, not kind.value_required)
        if isinstance(kind, it.DecimalType):
            return DecimalType(kind.precision, kind.scale)
        name = _PRIMITIVE.get(type(kind))
        if name is None:
            what = f"the column {shown('.'.join(path))} of the type {kind}"
            raise refused(self._table, what, _WRITE_ANEW)
        return PrimitiveType(name)
