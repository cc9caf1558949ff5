"""Rows in the shape of the table: its columns, order, spelling and types (spec 10.1, 10.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.data.declared_text import (
    DeclaredText,
    Lengths,
    declared_lengths,
    lengths_below,
)
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from optimist.spark.rows.store_assignment import StoreAssignment
from optimist.spark.session.pyspark_versions import named_column
from optimist.spark.spark_schema import VOID, from_spark_schema, to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = [
    "Reshaping",
    "column_of",
    "free_name",
    "own_column",
    "quoted",
    "shape_rows",
    "with_declared_length",
    "with_new_columns",
    "without_void",
]


def column_of(name: str) -> Column:
    """Return a top-level column by its exact name, whatever characters it has."""
    return named_column(quoted(name))


def own_column(name: str) -> Column:
    """Return a top-level column as one that has lost the alias of its frame.

    Only its name then means it, and no longer the alias with its name.
    """
    return column_of(name).alias(name)


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Lengthen a name until no taken name equals it, ignoring case."""
    folded = {name.lower() for name in taken}
    while wanted.lower() in folded:
        wanted += "_"
    return wanted


def quoted(name: str) -> str:
    """Quote a name for SQL, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def shape_rows(frame: DataFrame, sql: TableSql) -> DataFrame:
    """Return the rows with exactly the table's columns, ready to be written.

    Columns, nested ones too, are matched in any case. A column that the data lacks is computed by
    its generation expression, or gets its default, or null. Void columns, which no file holds, are
    left out. The caller has checked that the types are compatible.

    Args:
        frame: The data.
        sql: The SQL of the table, with its schema after the write.

    Raises:
        SchemaError: A default or a generation expression that is needed can't be used.
    """
    data = from_spark_schema(frame.schema)
    # Compatible types only widen, so no policy could refuse a cast.
    store = StoreAssignment(frame.sparkSession)
    shaping = Reshaping(store, sql)
    given, generated = [], {}
    for field in sql.schema:
        source = data.find(field.name)
        expression = generation_expression(field)
        if source is not None:
            value = shaping.reshaped(
                column_of(source.name), source.data_type, field.data_type, (field.name,)
            )
        elif expression is not None:
            value_sql = sql.generated(field.name, expression)
            generated[field.name] = value_sql.cast(to_spark_type(field.data_type))
            continue
        else:
            value = store.cast(sql.default(field), None, field.data_type, path_text((field.name,)))
        given.append(with_declared_length(value, field).alias(field.name))
    shaped = frame.select(*given)
    if generated:
        # They read the other columns by the table's names, so the other columns are made first.
        shaped = shaped.withColumns(generated)
    has_void = any(item.data_type == VOID for item in sql.schema)
    return without_void(shaped, sql.schema) if generated or has_void else shaped


def without_void(frame: DataFrame, schema: StructType, *more: str) -> DataFrame:
    """Select the columns that files hold, in the table's order, and then some more."""
    names = (*(item.name for item in schema if item.data_type != VOID), *more)
    return frame.select(*map(quoted, names))


def with_new_columns(frame: DataFrame, before: StructType, sql: TableSql) -> DataFrame:
    """Add the columns and types of a schema change to a table's rows.

    Args:
        frame: The rows; columns that are not the table's stay.
        before: The schema that they have now.
        sql: The SQL of the table, with its schema after the change.
    """
    shaping = Reshaping(StoreAssignment(frame.sparkSession), sql)
    changed = {}
    for field in sql.schema:
        old = before.find(field.name)
        if field.data_type == VOID or (old is not None and old.data_type == field.data_type):
            continue
        if old is None or old.data_type == VOID:
            changed[field.name] = sf.lit(None).cast(to_spark_type(field.data_type))
        else:
            types = (old.data_type, field.data_type)
            changed[field.name] = shaping.reshaped(column_of(old.name), *types, (field.name,))
    return frame.withColumns(changed) if changed else frame


def with_declared_length(value: Column, field: StructField) -> Column:
    """Fit a value to a `char(n)` or `varchar(n)` column: pad, cut or refuse it (spec 10.5).

    Texts in its arrays, maps and structs are treated alike.

    Raises:
        SchemaError: The declared type is not the column's type (kind
            `OPTIMIST_NESTED_CHAR_VARCHAR`).
    """
    return _fit_to_length(value, field.data_type, declared_lengths(field), field.name)


def _fit_to_length(value: Column, data_type: DataType, declared: Lengths, column: str) -> Column:
    if not declared:
        return value

    def inside(part: Column, inner: DataType, name: str) -> Column:
        return _fit_to_length(part, inner, lengths_below(declared, name), f"{column}.{name}")

    if isinstance(data_type, StructType):
        parts = (
            inside(value.getField(item.name), item.data_type, item.name).alias(item.name)
            for item in data_type
        )
        return sf.when(value.isNotNull(), sf.struct(*parts))
    if isinstance(data_type, ArrayType):
        element = data_type.element_type
        return sf.transform(value, lambda item: inside(item, element, "element"))
    if isinstance(data_type, MapType):
        keys, values = data_type.key_type, data_type.value_type
        keyed = sf.transform_keys(value, lambda key, _: inside(key, keys, "key"))
        return sf.transform_values(keyed, lambda _, item: inside(item, values, "value"))
    return _fit_text(value, declared[()], column)


def _fit_text(value: Column, declared: DeclaredText, column: str) -> Column:
    length = declared.length
    message = f"DELTA_EXCEED_CHAR_VARCHAR_LIMIT: column {column} is {declared}"
    fitted = (
        sf.when(value.isNull() | (sf.char_length(value) <= length), value)
        .when(sf.char_length(sf.rtrim(value)) <= length, sf.substring(value, 1, length))
        .otherwise(sf.raise_error(sf.lit(message)).cast("string"))
    )
    return sf.rpad(fitted, length, " ") if declared.is_padded else fitted


@dataclass(frozen=True, slots=True)
class Reshaping:
    """A conversion of values to a table's types.

    Attributes:
        store: Casts values that are not structs, arrays or maps.
        sql: Returns the defaults of the table's columns.
    """

    store: StoreAssignment
    sql: TableSql

    def reshaped(
        self, value: Column, source: DataType | None, target: DataType, path: tuple[str, ...]
    ) -> Column:
        """Convert a value to the target's type, where struct fields are matched by name.

        Args:
            value: The value.
            source: Its type; None for a type that no table can hold.
            target: The new type.
            path: The column or field that it is for.
        """
        if source == target:
            return value
        if isinstance(source, StructType) and isinstance(target, StructType):
            return self._reshape_struct(value, source, target, path)
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            inner = (source.element_type, target.element_type, (*path, "element"))
            return sf.transform(value, lambda item: self.reshaped(item, *inner))
        if isinstance(source, MapType) and isinstance(target, MapType):
            keys = (source.key_type, target.key_type, (*path, "key"))
            values = (source.value_type, target.value_type, (*path, "value"))
            keyed = sf.transform_keys(value, lambda key, _: self.reshaped(key, *keys))
            return sf.transform_values(keyed, lambda _, item: self.reshaped(item, *values))
        return self.store.cast(value, source, target, path_text(path))

    def _reshape_struct(
        self, value: Column, source: StructType, target: StructType, path: tuple[str, ...]
    ) -> Column:
        parts = []
        for field in target:
            inner = source.find(field.name)
            own = (*path, field.name)
            if inner is None:
                default = self.sql.default(field)
                part = self.store.cast(default, None, field.data_type, path_text(own))
            else:
                found = value.getField(inner.name)
                part = self.reshaped(found, inner.data_type, field.data_type, own)
            parts.append(part.alias(field.name))
        whole = sf.struct(*parts)
        return sf.when(value.isNotNull(), whole)
