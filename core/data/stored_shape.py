"""The differences between a data file's columns and the table's, as readers see them (spec 10.8).

Readers find a column by its id, or by its name in any case, so this module uses the same rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from optimist.core.data.column_shape import find_field
from optimist.core.schema.arrow_types import from_arrow_type
from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType
from optimist.core.values.arrow_lists import is_list

__all__ = ["has_other_columns", "has_other_types"]


def has_other_types(stored: pa.Schema, columns: Iterable[StructField], *, by_id: bool) -> bool:
    """Return whether a file stores one of the columns, or a part of it, in another type.

    Args:
        stored: The file's columns.
        columns: The columns of the table to compare.
        by_id: Whether the table finds columns by their ids.
    """
    return _have_other_types(list(stored), columns, by_id)


def has_other_columns(
    stored: pa.Schema, table: StructType, known: Collection[str], *, by_id: bool
) -> bool:
    """Return whether a file stores a column or struct field that the table lacks.

    Args:
        stored: The file's columns.
        table: The table's schema.
        known: Names of other columns that may also be in the file.
        by_id: Whether the table finds columns by their ids.
    """
    own = [item for item in stored if item.name not in known]
    return _have_others(own, table, by_id)


def _have_other_types(fields: list[pa.Field], columns: Iterable[StructField], by_id: bool) -> bool:
    for item in columns:
        index = find_field(fields, item, by_id=by_id)
        if index is not None and _is_other_type(fields[index].type, item.data_type, by_id):
            return True
    return False


def _is_other_type(stored: pa.DataType, wanted: DataType, by_id: bool) -> bool:
    if isinstance(wanted, StructType) and pa.types.is_struct(stored):
        return _have_other_types(list(stored.fields), wanted, by_id)
    if isinstance(wanted, ArrayType) and is_list(stored):
        return _is_other_type(stored.value_type, wanted.element_type, by_id)
    if isinstance(wanted, MapType) and pa.types.is_map(stored):
        is_other_key = _is_other_type(stored.key_type, wanted.key_type, by_id)
        return is_other_key or _is_other_type(stored.item_type, wanted.value_type, by_id)
    return str(from_arrow_type(stored)) != str(wanted)


def _have_others(fields: list[pa.Field], table: StructType, by_id: bool) -> bool:
    found = {find_field(fields, item, by_id=by_id): item.data_type for item in table}
    return any(
        index not in found or _holds_others(item.type, found[index], by_id)
        for index, item in enumerate(fields)
    )


def _holds_others(stored: pa.DataType, wanted: DataType, by_id: bool) -> bool:
    if isinstance(wanted, StructType) and pa.types.is_struct(stored):
        return _have_others(list(stored.fields), wanted, by_id)
    if isinstance(wanted, ArrayType) and is_list(stored):
        return _holds_others(stored.value_type, wanted.element_type, by_id)
    if isinstance(wanted, MapType) and pa.types.is_map(stored):
        is_in_key = _holds_others(stored.key_type, wanted.key_type, by_id)
        return is_in_key or _holds_others(stored.item_type, wanted.value_type, by_id)
    return False
