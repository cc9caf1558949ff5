"""The conversion of Delta's schemas to Spark's and back, by the JSON that both use."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import types as st

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.text import quote_literal
from optimist.core.schema.char_types import replace_char_varchar
from optimist.core.schema.types import (
    DECLARED_TYPE,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_from_json,
    schema_to_json,
)
from optimist.core.schema.void_columns import VOID

__all__ = [
    "VOID",
    "from_spark_schema",
    "sql_of_spark_type",
    "to_spark_schema",
    "to_spark_type",
    "type_of_values",
]

_OLD_ROWS = "EXISTS_DEFAULT"
_TEXT = r"(?:string|char\(\d{1,5}\)|varchar\(\d{1,9}\))"  # a char is padded as it is read
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def from_spark_schema(schema: st.StructType) -> StructType:
    """Convert the schema of a DataFrame to Delta's.

    Raises:
        SchemaError: A column's type can't be stored in a table (kind
            `DELTA_UNSUPPORTED_DATA_TYPES`).
    """
    fields = []
    for field in schema.fields:
        try:
            declared = replace_char_varchar(st.StructType([field]).json())
            fields.append(schema_from_json(declared).fields[0])
        except SchemaError as error:
            raise SchemaError(
                f"The column {shown(field.name)} of type {shown(field.dataType.simpleString())} "
                f"can't be stored in a Delta table: {error.args[0]} Cast or drop it.",
                kind="DELTA_UNSUPPORTED_DATA_TYPES",
                column=field.name,
            ) from None
    return StructType(tuple(fields))


def type_of_values(field: st.StructField) -> DataType | None:
    """Return the type of a DataFrame's column, or None if no table can hold it."""
    try:
        return from_spark_schema(st.StructType([field])).fields[0].data_type
    except SchemaError:
        return None


def to_spark_schema(schema: StructType) -> st.StructType:
    """Convert a schema to Spark's, without the field metadata that Delta keeps for itself.

    Column defaults (`CURRENT_DEFAULT`) stay, as with Delta's jar; where Spark evaluates them
    itself, it takes only constants. Defaults of old rows (`EXISTS_DEFAULT`) are left out: Spark's
    readers would fill them in for columns that a file lacks. Metadata that Spark can't hold, such
    as lists of several types, is left out, too.

    Raises:
        SchemaError: This Spark does not know a type or a collation (kind `OPTIMIST_UNKNOWN_TYPE`).
    """
    kept = schema.without_field_keys(lambda key: key.startswith("delta.") or key == _OLD_ROWS)
    held = kept.map_fields(_with_metadata_of_spark).map_fields(_without_odd_declaration)
    try:
        return st.StructType.fromJson(json.loads(schema_to_json(held)))
    except (AssertionError, AttributeError, TypeError, ValueError, PySparkException) as error:
        # PySpark parses the metadata of collations without checking its form first.
        raise SchemaError(
            "The table's schema has a type or a collation that this Spark does not know: "
            f"{shown(repr(error))}. Nothing was read or written. Use a Spark that knows it.",
            kind="OPTIMIST_UNKNOWN_TYPE",
        ) from None


def _with_metadata_of_spark(item: StructField) -> StructField:
    """Leave out metadata on which Spark's JVM fails, such as lists of several types."""
    held = {key: value for key, value in item.metadata.items() if _is_held(value)}
    return item if len(held) == len(item.metadata) else replace(item, metadata=held)


def _is_held(value: object) -> bool:
    if isinstance(value, list):
        kinds = {type(element) for element in value}
        return len(kinds) <= 1 and not kinds & {list, type(None)} and all(map(_is_held, value))
    if isinstance(value, dict):
        return all(map(_is_held, value.values()))
    return True


def _without_odd_declaration(item: StructField) -> StructField:
    """Leave out a declared type that does not fit the field's type: Spark would fail on it."""
    declared = item.metadata.get(DECLARED_TYPE)
    if declared is None:
        return item
    if isinstance(declared, str) and re.fullmatch(_declaration_of(item.data_type), declared):
        return item
    rest = {key: value for key, value in item.metadata.items() if key != DECLARED_TYPE}
    return replace(item, metadata=rest)


def _declaration_of(data_type: DataType) -> str:
    """Return a pattern of Spark's text for a type whose strings have declared lengths."""
    if isinstance(data_type, ArrayType):
        return f"array<{_declaration_of(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        key, value = _declaration_of(data_type.key_type), _declaration_of(data_type.value_type)
        return f"map<{key}, ?{value}>"
    if isinstance(data_type, StructType):
        parts = (f"`?{re.escape(f.name)}`?: ?{_declaration_of(f.data_type)}" for f in data_type)
        return f"struct<{', ?'.join(parts)}>"
    if isinstance(data_type, DecimalType):
        return rf"decimal\({data_type.precision}, ?{data_type.scale}\)"
    name = str(data_type)
    return _TEXT if name == "string" else re.escape(_SQL_NAMES.get(name, name))


def to_spark_type(data_type: DataType) -> st.DataType:
    """Convert one of Delta's types to Spark's."""
    return to_spark_schema(StructType((StructField("value", data_type),))).fields[0].dataType


def sql_of_spark_type(data_type: st.DataType) -> str:
    """Return one of Spark's types as SQL, with all its names and comments."""
    if isinstance(data_type, st.ArrayType):
        return f"array<{sql_of_spark_type(data_type.elementType)}>"
    if isinstance(data_type, st.MapType):
        key, value = map(sql_of_spark_type, (data_type.keyType, data_type.valueType))
        return f"map<{key}, {value}>"
    if isinstance(data_type, st.StructType):
        return f"struct<{', '.join(map(_sql_of_field, data_type.fields))}>"
    return data_type.simpleString()


def _sql_of_field(field: st.StructField) -> str:
    name = field.name.replace("`", "``")
    required = "" if field.nullable else " NOT NULL"
    comment = field.metadata.get("comment")
    comment_sql = "" if comment is None else f" COMMENT {quote_literal(comment, 'string')}"
    return f"`{name}`: {sql_of_spark_type(field.dataType)}{required}{comment_sql}"
