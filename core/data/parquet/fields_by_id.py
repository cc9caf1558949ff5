"""The columns of a Parquet file, by the table's names for their ids (spec 10.8).

A table that is mapped by ids finds its columns in a file only by ids: a column's name in the file
may now belong to another column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from optimist.core.data.column_shape import field_id
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import COLUMN_ID, ArrayType, DataType, MapType, StructType
from optimist.core.values.arrow_lists import is_list

__all__ = ["named_by_ids", "stored_otherwise"]

_UNKNOWN = "\0"
"""The first character of names for columns that the table does not have."""


def named_by_ids(fields: pa.Schema, table: StructType, path: str) -> pa.Schema:
    """Return the columns of a file in their order, by the table's physical names for their ids.

    Args:
        fields: The file's columns.
        table: The table's schema, with ids.
        path: The file, for the error.

    Raises:
        TableError: A column has no id (kind `OPTIMIST_DATA_FILE_WITHOUT_IDS`).
    """
    return pa.schema(_name_fields(fields, table, path))


def stored_otherwise(named: pa.Schema, table: StructType) -> str | None:
    """Return the first column of a table that a file has with another type, or None.

    Args:
        named: The result of `named_by_ids` for the file.
        table: The table's schema.

    Raises:
        SchemaError: The file has a column of a type that no table can have (kind
            `DELTA_UNSUPPORTED_DATA_TYPES`).
    """
    known = pa.schema([item for item in named if not item.name.startswith(_UNKNOWN)])
    own = from_arrow_schema(known)
    return next(_differences(own, table, ()), None)


def _name_fields(fields: Iterable[pa.Field], table: StructType, path: str) -> list[pa.Field]:
    by_id = {item.metadata.get(COLUMN_ID): item for item in table}
    named = []
    for index, found in enumerate(fields):
        number = field_id(found)
        if number is None:
            raise TableError(
                f"The column {shown(found.name)} of the data file {shown(path)} has no id, by "
                "which the table would find it. Nothing was written. Write the file again with the "
                "engine of the table.",
                kind="OPTIMIST_DATA_FILE_WITHOUT_IDS",
                path=path,
            )
        item = by_id.get(number)
        if item is None:
            named.append(found.with_name(f"{_UNKNOWN}{index}"))
        else:
            kind = _name_inner_fields(found.type, item.data_type, path)
            named.append(found.with_name(item.physical_name).with_type(kind))
    return named


def _name_inner_fields(stored: pa.DataType, data_type: DataType, path: str) -> pa.DataType:
    if pa.types.is_struct(stored) and isinstance(data_type, StructType):
        return pa.struct(_name_fields(stored.fields, data_type, path))
    if is_list(stored) and isinstance(data_type, ArrayType):
        item = stored.value_field
        return pa.list_(item.with_type(_name_inner_fields(item.type, data_type.element_type, path)))
    if pa.types.is_map(stored) and isinstance(data_type, MapType):
        key, item = stored.key_field, stored.item_field
        return pa.map_(
            key.with_type(_name_inner_fields(key.type, data_type.key_type, path)),
            item.with_type(_name_inner_fields(item.type, data_type.value_type, path)),
        )
    return stored


def _differences(own: DataType, table: DataType, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(own, StructType) and isinstance(table, StructType):
        stored = {item.name: item.data_type for item in own}
        for item in table:
            found = stored.get(item.physical_name)
            if found is not None:
                yield from _differences(found, item.data_type, (*path, item.name))
    elif isinstance(own, ArrayType) and isinstance(table, ArrayType):
        yield from _differences(own.element_type, table.element_type, (*path, "element"))
    elif isinstance(own, MapType) and isinstance(table, MapType):
        yield from _differences(own.key_type, table.key_type, (*path, "key"))
        yield from _differences(own.value_type, table.value_type, (*path, "value"))
    elif own != table:
        yield ".".join(path)
