"""The number of rows left in each file, from the log alone (spec 9.5, 10.10)."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.vectors.deletion_vectors import inline_rows
from optimist.core.errors import TableError
from optimist.core.log.file_table import deletion_vector_of
from optimist.core.values.field_types import LARGEST_LONG

__all__ = ["live_rows"]

Array: TypeAlias = Any


def live_rows(files: pa.Table, num_records: Array) -> Array:
    """Return the rows of each file without deleted ones, or null where the log can't tell.

    The log can't tell if a vector claims to delete more rows than the file has, or rows that the
    file lacks. The function does not read vectors in files of their own: each would cost a request.

    Args:
        files: The files.
        num_records: The rows of each file, deleted ones included; null where unknown.
    """
    if "deletionVector" not in files.column_names:
        return num_records
    vectors = files.column("deletionVector").combine_chunks()
    # A vector without a count of its rows leaves the number unknown.
    counts = pc.struct_field(vectors, "cardinality").cast(pa.int64())
    deleted = pc.if_else(pc.is_valid(vectors), counts, 0)
    fits = pc.and_(pc.greater_equal(deleted, 0), pc.less_equal(deleted, num_records))
    fits = pc.and_(fits, pc.less(_last_deleted(vectors), num_records))
    known = pc.if_else(fits, num_records, pa.scalar(None, pa.int64()))
    return pc.subtract(known, deleted)


def _last_deleted(vectors: Array) -> Array:
    """Return the last row that each vector names, if the log shows it, or else -1."""
    last = pc.fill_null(pc.struct_field(vectors, "maxRowIndex"), -1)
    is_inline = pc.fill_null(pc.equal(pc.struct_field(vectors, "storageType"), "i"), False)
    if not is_inline.true_count:
        return last
    # A loop over inline vectors: a commit has few of these, because they make it longer.
    found = [_last_row(vector) for vector in vectors.filter(is_inline).to_pylist()]
    return pc.replace_with_mask(last, is_inline, pa.array(found, pa.int64()))


def _last_row(vector: Any) -> int:
    descriptor = deletion_vector_of(vector)
    if descriptor is None:
        return -1
    try:
        rows = inline_rows(descriptor)
    except TableError:
        return LARGEST_LONG  # the reader of the file reports the error
    return min(rows.max(), LARGEST_LONG) if rows else -1
