"""The files that hold the deletion vectors of data files."""

from __future__ import annotations

import pyarrow as pa

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import deletion_vector_path
from optimist.core.log.file_table import deletion_vector_of

__all__ = ["vector_paths"]


def vector_paths(files: pa.Table, paths: DataPaths) -> pa.Array:
    """Return the full paths of files with vectors, each once.

    Args:
        files: Rows with a column `deletionVector`: live files, or tombstones.
        paths: Resolves the paths of the table's log.

    Raises:
        TableError: See `deletion_vector_path`.
    """
    vectors = files["deletionVector"].drop_null()
    kinds = pa.table({"row": vectors}).flatten().select([0, 1]).rename_columns(["kind", "data"])
    distinct = kinds.append_column("row", pa.array(range(vectors.length()), pa.int64()))
    first = distinct.group_by(["kind", "data"]).aggregate([("row", "min")])["row_min"]
    found = (deletion_vector_of(row) for row in vectors.take(first).to_pylist())
    names = (deletion_vector_path(vector, paths) for vector in found if vector is not None)
    return pa.array(sorted(set(filter(None, names))), pa.string())
