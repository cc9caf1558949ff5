"""Delta's schemas as Spark's, and back; both sides speak the same JSON."""

from __future__ import annotations

import json

from pyspark.sql import types as st

from optimist.core.errors import SchemaError
from optimist.core.protocol.schema_merge import without_internal_metadata
from optimist.core.schema.types import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    schema_from_json,
    schema_to_json,
)

__all__ = ["VOID", "from_spark_schema", "to_spark_schema", "to_spark_type"]

VOID = PrimitiveType("void")


def from_spark_schema(schema: st.StructType) -> StructType:
    """The schema of a DataFrame as Delta has it.

    Raises:
        SchemaError: A column's type can't be stored in a table (kind `OPTIMIST_UNKNOWN_TYPE`).
    """
    fields = []
    for field in schema.fields:
        try:
            fields.append(schema_from_json(st.StructType([field]).json()).fields[0])
        except SchemaError as error:
            raise SchemaError(
                f"The column {field.name} of type {field.dataType.simpleString()} can't be stored "
                "in a "
                f"Delta table: {error.args[0]} Cast or drop it.",
                kind="OPTIMIST_UNKNOWN_TYPE",
                column=field.name,
            ) from None
    return StructType(tuple(fields))


def to_spark_schema(schema: StructType) -> st.StructType:
    """The schema for Spark, less the field metadata that Delta keeps for itself."""
    return st.StructType.fromJson(json.loads(schema_to_json(without_internal_metadata(schema))))


def to_spark_type(data_type: DataType) -> st.DataType:
    """One type for Spark."""
    return to_spark_schema(StructType((StructField("value", data_type),))).fields[0].dataType
