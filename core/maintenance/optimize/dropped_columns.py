"""The files that still hold a dropped column, for REORG ... APPLY (PURGE) (spec 10.14).

DROP COLUMN does not change the files of a mapped table; they keep the column's values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from optimist.core.data.parquet.parquet_footers import stored_columns
from optimist.core.data.stored_shape import has_other_columns
from optimist.core.data.table_ref import TableRef
from optimist.core.protocol.properties import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.types import COLUMN_ID, StructType, walk_fields
from optimist.core.snapshot import Snapshot

__all__ = ["ColumnsOf", "columns_by_footers", "with_dropped_columns"]

ColumnsOf: TypeAlias = Callable[[str], pa.Schema]
_READERS = 8


def columns_by_footers(table: TableRef) -> ColumnsOf:
    """Return a function that reads a file's columns from its footer (see `stored_columns`)."""
    return partial(stored_columns, access=table.data_access())


def with_dropped_columns(
    files: pa.Table, snapshot: Snapshot, columns_of: ColumnsOf
) -> pa.BooleanArray:
    """Tell which files hold a column, or a field of a struct, that the table no longer has.

    Footers are read only if a column was dropped after columns got ids.

    Args:
        files: Rows of `Snapshot.files`.
        snapshot: The version of the files.
        columns_of: Reads the columns of a file. Several threads call it.
    """
    schema, properties = snapshot.schema, snapshot.properties
    is_mapped = properties.column_mapping_mode != "none"
    if not (files.num_rows and is_mapped and _num_ids(schema) < properties.max_column_id):
        return pa.array([False] * files.num_rows, pa.bool_())
    configuration = snapshot.metadata.configuration
    of_row_ids = (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)
    known = {configuration[key] for key in of_row_ids if key in configuration}
    by_id = properties.column_mapping_mode == "id"
    paths = snapshot.data_paths.full_paths(pa.concat_arrays(files["path"].chunks)).to_pylist()
    stored = read_ahead(columns_of, paths, threads=_READERS, ahead=4 * _READERS)
    found = [has_other_columns(each, schema, known, by_id=by_id) for each in stored]
    return pa.array(found, pa.bool_())


def _num_ids(schema: StructType) -> int:
    """Count the fields of a schema, at any depth, that have an id."""
    return len({item.metadata.get(COLUMN_ID) for _, item in walk_fields(schema)} - {None})
