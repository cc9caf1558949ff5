"""Rows in the shape of the table: its columns, order, spelling and types (spec 10.1, 10.4)."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from optimist.spark.spark_schema import VOID, from_spark_schema, to_spark_type

__all__ = ["column_of", "quoted", "shape_rows", "with_declared_length", "without_void"]

_DEFAULT = "CURRENT_DEFAULT"
_DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_DECLARED = re.compile(r"^(char|varchar)\((\d+)\)$")


def column_of(name: str) -> Column:
    """A top-level column by its exact name, whatever characters it has."""
    return sf.col(quoted(name))


def quoted(name: str) -> str:
    """A name in SQL, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def shape_rows(frame: DataFrame, schema: StructType) -> DataFrame:
    """The rows with exactly the table's columns, to be written.

    Columns are found whatever their case, nested ones too. What the data lacks is the column's
    default, computed by its generation expression, or null. Void columns, which no file holds, are
    left out. The caller has checked that the types go together.

    Args:
        frame: The data.
        schema: The table's schema after the write.
    """
    data = from_spark_schema(frame.schema)
    given, generated = [], {}
    for field in schema:
        source = data.find(field.name)
        expression = generation_expression(field)
        if source is not None:
            value = _reshaped(column_of(source.name), source.data_type, field.data_type)
        elif expression is not None:
            generated[field.name] = sf.expr(expression).cast(to_spark_type(field.data_type))
            continue
        else:
            value = _default(field)
        given.append(with_declared_length(value, field).alias(field.name))
    shaped = frame.select(*given)
    if generated:
        # They read the other columns by the table's names, so those must be in place first.
        shaped = shaped.withColumns(generated)
    return without_void(shaped, schema)


def without_void(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns that files hold, in the table's order."""
    return frame.select(*(column_of(f.name) for f in schema if f.data_type != VOID))


def with_declared_length(value: Column, field: StructField) -> Column:
    """A value as a `char(n)` or `varchar(n)` column takes it (spec 10.5): padded, cut, or refused.

    Raises:
        SchemaError: Lengths are declared inside a nested type (kind
            `OPTIMIST_NESTED_CHAR_VARCHAR`).
    """
    declared = field.metadata.get(_DECLARED_TYPE)
    if declared is None:
        return value
    match = _DECLARED.match(str(declared))
    if match is None:
        raise SchemaError(
            f"The column {field.name} declares char or varchar inside {declared}, whose lengths "
            "can't be "
            "checked yet. Nothing was written.",
            kind="OPTIMIST_NESTED_CHAR_VARCHAR",
            column=field.name,
        )
    length = int(match.group(2))
    message = f"DELTA_EXCEED_CHAR_VARCHAR_LIMIT: column {field.name} is {declared}"
    fitted = (
        sf.when(value.isNull() | (sf.char_length(value) <= length), value)
        .when(sf.char_length(sf.rtrim(value)) <= length, sf.substring(value, 1, length))
        .otherwise(sf.raise_error(sf.lit(message)).cast("string"))
    )
    return sf.rpad(fitted, length, " ") if match.group(1) == "char" else fitted


def _default(field: StructField) -> Column:
    text = field.metadata.get(_DEFAULT)
    value = sf.lit(None) if text is None else sf.expr(str(text))
    return value.cast(to_spark_type(field.data_type))


def _reshaped(value: Column, source: DataType, target: DataType) -> Column:
    """The value as the target's type; fields of structs are matched by name, never by position."""
    if source == target:
        return value
    if isinstance(source, StructType) and isinstance(target, StructType):
        return _reshaped_struct(value, source, target)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return sf.transform(
            value, lambda item: _reshaped(item, source.element_type, target.element_type)
        )
    if isinstance(source, MapType) and isinstance(target, MapType):
        keyed = sf.transform_keys(
            value, lambda key, _: _reshaped(key, source.key_type, target.key_type)
        )
        return sf.transform_values(
            keyed, lambda _, item: _reshaped(item, source.value_type, target.value_type)
        )
    return value.cast(to_spark_type(target))


def _reshaped_struct(value: Column, source: StructType, target: StructType) -> Column:
    parts = []
    for field in target:
        inner = source.find(field.name)
        part = (
            _default(field)
            if inner is None
            else _reshaped(value.getField(inner.name), inner.data_type, field.data_type)
        )
        parts.append(part.alias(field.name))
    whole = sf.struct(*parts)
    return sf.when(value.isNotNull(), whole)
