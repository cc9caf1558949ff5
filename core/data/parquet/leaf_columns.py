"""The Parquet columns of a file that hold the wanted part of a column of the table.

A column of structs is stored as one Parquet column per leaf. If a reader wants only some of its
fields, only their leaves are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.data.column_shape import find_field
from optimist.core.schema.arrow_types import num_leaves, storage_type
from optimist.core.schema.types import ArrayType, DataType, StructType
from optimist.core.values.arrow_lists import is_list

__all__ = ["leaf_columns"]


def leaf_columns(
    file: pq.ParquetFile,
    fields: Sequence[pa.Field],
    index: int,
    wanted: DataType,
    *,
    by_id: bool = False,
) -> list[str]:
    """Return the names by which pyarrow reads the wanted part of a column, and little more.

    A struct may exist or be null even if a file has none of its wanted fields. Its first leaf shows
    which.

    Args:
        file: The file.
        fields: Its columns (to ask it for them takes long).
        index: The index of the column among them.
        wanted: The column's type, with only the wanted fields.
        by_id: Whether fields are found by their ids, not by their physical names.
    """
    found = _wanted_leaves(fields[index].type, wanted, by_id=by_id)
    if len(found) == num_leaves(fields[index].type):
        return [fields[index].name]
    first = sum(num_leaves(field.type) for field in fields[:index])
    return [file.schema.column(first + leaf).path for leaf in found]


def _wanted_leaves(stored: pa.DataType, wanted: DataType, *, by_id: bool) -> list[int]:
    """Return the indices of the wanted leaves among all leaves of a stored type, in order."""
    stored = storage_type(stored)
    if isinstance(wanted, ArrayType) and is_list(stored):
        return _wanted_leaves(stored.value_type, wanted.element_type, by_id=by_id)
    if not (isinstance(wanted, StructType) and pa.types.is_struct(stored)):
        return list(range(num_leaves(stored)))
    found = {find_field(stored, item, by_id=by_id): item.data_type for item in wanted}
    leaves: list[int] = []
    first = 0
    for number, field in enumerate(stored):
        if number in found:
            inner = _wanted_leaves(field.type, found[number], by_id=by_id)
            leaves += [first + leaf for leaf in inner]
        first += num_leaves(field.type)
    return leaves or [0]
