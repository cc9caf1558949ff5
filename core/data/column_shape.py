"""Conversion of a file's or an Arrow table's columns to the table's shape (spec 6.3, 10.1).

A file may be older than the table's schema: newer columns and nested fields are null in it, and
widened columns are narrower in it. Fields are found by their physical names, or by their ids if the
table's columns are mapped by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.row_numbers import row_numbers
from optimist.core.data.store_casts import store_cast
from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.arrow_types import to_arrow_schema, to_arrow_type
from optimist.core.schema.column_mapping import without_mapping
from optimist.core.schema.types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    holds_type,
)
from optimist.core.values.arrow_lists import is_list

__all__ = [
    "arrow_rows",
    "conform_column",
    "field_id",
    "find_field",
    "find_name",
    "has_field_ids",
    "is_text_dictionary",
    "nulls_of",
    "value_at",
]

_FIELD_ID = b"PARQUET:field_id"
_LONGEST_ID = 10
_TEXT_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_VARIANT = PrimitiveType("variant")


def conform_column(
    values: pa.Array, data_type: DataType, *, column: str = "", by_id: bool = False
) -> pa.Array:
    """Return the values as the Arrow type of a Delta type.

    Args:
        values: One column of a data file, or of rows for a data file.
        data_type: The column's type in the table.
        column: The column's name, for the error.
        by_id: Whether nested fields are found by their ids, not by their physical names.

    Raises:
        TableError: The values do not fit the type (kind `OPTIMIST_DATA_FILE_TYPE_MISMATCH`).
    """
    try:
        return _conform_values(values, data_type, _Context(column, by_id=by_id))
    except _MisfitError as misfit:
        raise TableError(
            f"The column {shown(misfit.column or '?')} has the type {shown(misfit.arrow_type)} in "
            f"a data file, and its values do not fit {shown(misfit.data_type)}, the column's type "
            f"in the table: {shown(misfit.reason)}. {_remedy(misfit)}",
            kind="OPTIMIST_DATA_FILE_TYPE_MISMATCH",
            column=misfit.column,
            type=str(misfit.data_type),
        ) from None


def arrow_rows(rows: pa.Table, schema: StructType) -> pa.Table:
    """Return the rows with exactly the table's columns, in its order and with its types.

    Columns and fields of structs are found by name in any case. Missing ones are null. Arrow's
    other layouts of the same values (dictionaries, runs, views, slices) become plain ones.

    Raises:
        SchemaError: A value does not fit its column's type (kind `OPTIMIST_VALUE_DOES_NOT_FIT`).
    """
    wanted = to_arrow_schema(schema)
    own = without_mapping(schema)  # rows use the table's names for their fields
    present = {name.lower(): name for name in rows.column_names}
    columns = []
    for item, field in zip(own, wanted, strict=True):
        name = present.get(item.name.lower())
        if name is None:
            columns.append(nulls_of(field.type, rows.num_rows))
            continue
        context = _Context(item.name, must_be_exact=True)
        try:
            parts = [_conform_values(chunk, item.data_type, context) for chunk in rows[name].chunks]
        except _MisfitError as misfit:
            raise SchemaError(
                f"The column {shown(misfit.column)} has the Arrow type {shown(misfit.arrow_type)}, "
                f"and some of its values do not fit {shown(misfit.data_type)}, the column's type "
                f"in the table: {shown(misfit.reason)}. Nothing was written. Cast the column "
                "yourself, which makes the loss explicit.",
                kind="OPTIMIST_VALUE_DOES_NOT_FIT",
                column=misfit.column,
                type=str(misfit.data_type),
            ) from None
        columns.append(pa.chunked_array(parts, type=field.type))
    return pa.table(columns, schema=wanted)


def value_at(rows: pa.Table | pa.RecordBatch, path: Sequence[str]) -> Any:
    """Return a column, or a field of a struct, which is null where its struct is null."""
    values: Any = rows[path[0]]
    for name in path[1:]:
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    return values


def nulls_of(arrow_type: pa.DataType, count: int) -> pa.Array:
    """Return that many nulls, with values below them where the type forbids nulls.

    Arrow's own nulls are null at every depth, and its writer of Parquet refuses that.
    """
    if not pa.types.is_nested(arrow_type):
        return pa.nulls(count, arrow_type)
    return pa.array([None], arrow_type).take(pa.repeat(pa.scalar(0, pa.int64()), count))


def find_field(fields: Iterable[pa.Field], item: StructField, *, by_id: bool) -> int | None:
    """Return the index of a table's field among the fields of a file, or None.

    Args:
        fields: The fields of one level of the file.
        item: The field of the table.
        by_id: Whether to look for its id. A field without an id, as in columns that no schema
            names, is found by its name. A field with an id is not, because a name may now belong to
            another column.
    """
    listed = list(fields)
    number = item.metadata.get(COLUMN_ID)
    if by_id and number is not None:
        ids = [field_id(field) for field in listed]
        return ids.index(number) if number in ids else None
    names = [field.name for field in listed]
    name = find_name(names, item.physical_name)
    return None if name is None else names.index(name)


def field_id(field: pa.Field) -> int | None:
    """Return the id of a field of a file, or None if it has no id that fits Parquet."""
    text = (field.metadata or {}).get(_FIELD_ID, b"")
    return int(text) if text.isdigit() and len(text) <= _LONGEST_ID else None


def has_field_ids(fields: Iterable[pa.Field]) -> bool:
    """Return whether a field at any depth of a file has an id."""
    return any(
        field_id(field) is not None
        or (pa.types.is_nested(field.type) and has_field_ids(_inner_fields(field.type)))
        for field in fields
    )


def _inner_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    return [arrow_type.field(context) for context in range(arrow_type.num_fields)]


def is_text_dictionary(arrow_type: pa.DataType) -> bool:
    """Tell whether values are texts, each as a number into a dictionary."""
    return bool(arrow_type == _TEXT_DICTIONARY)


def find_name(names: Iterable[str], wanted: str) -> str | None:
    """Return the matching name: in the same spelling, else the first in any case."""
    listed = list(names)
    if wanted in listed:
        return wanted
    folded = wanted.lower()
    return next((name for name in listed if name.lower() == folded), None)


@dataclass(frozen=True, slots=True)
class _Context:
    """The column of the values, for errors, and the rules for their conversion.

    Attributes:
        column: The column, or the path of a field in it.
        by_id: Whether nested fields are found by their ids.
        must_be_exact: Whether nothing may be cut off. If false, times finer than microseconds are
            cut.
    """

    column: str
    by_id: bool = False
    must_be_exact: bool = False

    def inside(self, name: str) -> _Context:
        return replace(self, column=f"{self.column}.{name}")


class _MisfitError(Exception):
    """An error for values that do not fit a type, for a caller that knows their source."""

    def __init__(
        self, values: pa.Array, data_type: DataType, context: _Context, reason: object
    ) -> None:
        super().__init__(str(reason))
        self.column = context.column
        self.arrow_type = values.type
        self.data_type = data_type
        self.reason = reason


def _remedy(misfit: _MisfitError) -> str:
    if _is_shredded(misfit.arrow_type) and misfit.data_type == _VARIANT:
        return (
            "Only Spark's own reader can reassemble such variants. Read the table in a classic "
            "Spark session on the native plane, or read other columns."
        )
    return "The engine that wrote the file broke the schema. Restore an older version of the table."


def _conform_values(values: pa.Array, data_type: DataType, context: _Context) -> pa.Array:
    target = to_arrow_type(data_type)
    values = _to_plain_layout(values)
    if values.type == target and not holds_type(data_type, _VARIANT):
        return values
    if isinstance(data_type, StructType) and pa.types.is_struct(values.type):
        return _conform_struct(values, data_type, context)
    if isinstance(data_type, ArrayType) and is_list(values.type):
        return _conform_list(values, data_type, context)
    if isinstance(data_type, MapType) and pa.types.is_map(values.type):
        return _conform_map(values, data_type, context)
    try:
        if data_type == _VARIANT:
            return _conform_variant(values, target, must_be_whole=context.must_be_exact)
        if context.must_be_exact:
            return store_cast(values, target)
        # Times finer than microseconds are cut in files, as in Spark. All else must fit.
        return values.cast(target, safe=not _is_in_nanoseconds(values.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise _MisfitError(values, data_type, context, error) from None


def _to_plain_layout(values: pa.Array) -> pa.Array:
    """Convert values to the plain layout: no extension type, runs, dictionary or views."""
    if isinstance(values, pa.ExtensionArray):
        return _to_plain_layout(values.storage)
    if pa.types.is_run_end_encoded(values.type):
        return _to_plain_layout(_expand_runs(values))
    if pa.types.is_dictionary(values.type):
        return _to_plain_layout(values.dictionary_decode())
    if pa.types.is_list_view(values.type) or pa.types.is_large_list_view(values.type):
        return _list_of_views(values)
    return values


def _expand_runs(values: pa.RunEndEncodedArray) -> pa.Array:
    """Repeat each value along its run, by index, as Arrow can't decode runs of every type."""
    numbers = pa.array(range(len(values.values)), pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, numbers)
    indices = pc.run_end_decode(runs).slice(values.offset, len(values))
    return values.values.take(indices)


def _list_of_views(values: pa.Array) -> pa.ListArray:
    """Build lists with consecutive elements, because pyarrow's own cast mixes them up."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    ends = pa.array([0], pa.int64()), *pc.cumulative_sum(pa.chunked_array([lengths])).chunks
    offsets = pa.concat_arrays(ends).cast(pa.int32())
    elements = pc.list_flatten(values)
    mask = values.is_null()
    return pa.ListArray.from_arrays(
        offsets, elements, type=pa.list_(values.type.value_field), mask=mask
    )


def _conform_struct(values: pa.Array, data_type: StructType, context: _Context) -> pa.Array:
    target = to_arrow_type(data_type)
    children = values.flatten()
    parts = []
    for item, arrow_field in zip(data_type, target, strict=True):
        index = find_field(values.type, item, by_id=context.by_id)
        if index is None:
            parts.append(nulls_of(arrow_field.type, len(values)))
        else:
            part = _conform_values(children[index], item.data_type, context.inside(item.name))
            parts.append(_fill_below_nulls(part, arrow_field, values))
    if not parts:
        return values.cast(target)
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())


def _fill_below_nulls(part: pa.Array, field: pa.Field, struct: pa.Array) -> pa.Array:
    """Fill a field that must have values where its struct is null.

    Nobody sees these values (see `nulls_of`).
    """
    if field.nullable or not (part.null_count and struct.null_count):
        return part
    filling = pa.array([None], pa.struct([field])).field(0)
    indices = pc.if_else(struct.is_null(), len(part), row_numbers(len(part)))
    return pa.concat_arrays([part, filling]).take(indices)


def _conform_list(values: pa.Array, data_type: ArrayType, context: _Context) -> pa.Array:
    target = to_arrow_type(data_type)
    if not pa.types.is_list(values.type):
        # Lists that are null may hold null elements even if the type forbids these.
        values = values.cast(pa.list_(values.type.value_field.with_nullable(True)))
    whole = _from_offset_zero(values)
    elements = _conform_values(whole.values, data_type.element_type, context.inside("element"))
    return pa.ListArray.from_arrays(whole.offsets, elements, type=target, mask=whole.is_null())


def _conform_map(values: pa.Array, data_type: MapType, context: _Context) -> pa.Array:
    target = to_arrow_type(data_type)
    whole = _from_offset_zero(values)
    keys = _conform_values(whole.keys, data_type.key_type, context.inside("key"))
    items = _conform_values(whole.items, data_type.value_type, context.inside("value"))
    return pa.MapArray.from_arrays(whole.offsets, keys, items, target, mask=whole.is_null())


def _conform_variant(values: pa.Array, target: pa.DataType, *, must_be_whole: bool) -> pa.Array:
    """Return a variant's two binaries, in any order of the file, and refuse shredded ones."""
    present = values.type.names if pa.types.is_struct(values.type) else []
    if sorted(present) != ["metadata", "value"]:
        shredded = "its variants are shredded into columns of their own"
        reason = shredded if _is_shredded(values.type) else "it is not a variant"
        raise pa.ArrowInvalid(reason)
    children = dict(zip(present, values.flatten(), strict=True))
    if must_be_whole and any(part.null_count > values.null_count for part in children.values()):
        raise pa.ArrowInvalid("a variant lacks one of its two binaries")
    parts = [children[item.name].cast(item.type).fill_null(b"") for item in target]
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())


def _is_shredded(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_struct(arrow_type) and "typed_value" in arrow_type.names)


def _is_in_nanoseconds(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns")


def _from_offset_zero(values: pa.Array) -> pa.Array:
    """Copy the values if they are a slice, because Arrow takes a mask only at offset zero."""
    return pa.concat_arrays([values]) if values.offset else values
