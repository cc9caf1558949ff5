"""The files that hold the deletion vectors of data files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import deletion_vector_path
from optimist.core.log.file_table import deletion_vector_of

__all__ = ["stored_vectors", "vector_paths"]

_INLINE = "i"


def stored_vectors(files: pa.Table) -> pa.StructArray:
    """Return the vectors that are in files of their own, in their order, without inline ones."""
    vectors = files["deletionVector"].drop_null().combine_chunks()
    return vectors.filter(pc.not_equal(vectors.field("storageType"), _INLINE))


def vector_paths(files: pa.Table, paths: DataPaths) -> pa.Array:
    """Return the full paths of files with vectors, each once.

    Args:
        files: Rows with a column `deletionVector`: live files, or tombstones.
        paths: Resolves the paths of the table's log.

    Raises:
        TableError: See `deletion_vector_path`.
    """
    vectors = stored_vectors(files)
    rows = pa.array(range(len(vectors)), pa.int64())
    distinct = pa.table([*vectors.flatten()[:2], rows], ["kind", "data", "row"])
    first = distinct.group_by(["kind", "data"]).aggregate([("row", "min")])["row_min"]
    found = (deletion_vector_of(row) for row in vectors.take(first).to_pylist())
    names = (deletion_vector_path(vector, paths) for vector in found if vector is not None)
    return pa.array(sorted(set(filter(None, names))), pa.string())
