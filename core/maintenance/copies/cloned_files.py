"""The files of a table with absolute paths, for a table that names them without a copy.

Data files and files of deletion vectors stay where they are. Paths are spelled as delta-spark
spells them: a local one as `file:/a/b`, percent-encoded.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import uri_reference
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import deletion_vector_path
from optimist.core.log.file_table import DELETION_VECTOR_TYPE, deletion_vector_of, with_column
from optimist.core.paths import with_file_scheme

__all__ = ["with_absolute_paths"]

_ABSOLUTE, _INLINE = "p", "i"


def with_absolute_paths(files: pa.Table, paths: DataPaths) -> pa.Table:
    """Give files absolute paths, which mean the same in any other table.

    Args:
        files: Rows of `FILES_SCHEMA`.
        paths: Resolves paths in the log of their table.

    Raises:
        TableError: A path may not be opened, see `DataPaths.full_paths`; or the descriptor of a
            vector is damaged.
    """
    references = [_absolute_references(chunk, paths) for chunk in files["path"].chunks]
    files = with_column(files, "path", pa.chunked_array(references, pa.string()))
    vectors = files["deletionVector"]
    if vectors.null_count == len(vectors):
        return files
    moved = [_absolute_vectors(chunk, paths) for chunk in vectors.chunks]
    return with_column(files, "deletionVector", pa.chunked_array(moved, DELETION_VECTOR_TYPE))


def _absolute_references(references: pa.Array, paths: DataPaths) -> pa.Array:
    if paths.are_plain(references):
        root = _absolute_reference(paths.table_path.rstrip("/"))
        return pc.binary_join_element_wise(root, references, "/")
    # Other paths lie in few directories, and are resolved together.
    full = paths.full_paths(references)
    return pa.array([_absolute_reference(path) for path in full.to_pylist()], pa.string())


def _absolute_vectors(vectors: pa.Array, paths: DataPaths) -> pa.Array:
    """Make paths of vectors absolute.

    Many files share one descriptor's path.
    """
    kinds, paths_or_data = vectors.field("storageType"), vectors.field("pathOrInlineDv")
    is_moved = pc.fill_null(pc.and_(vectors.is_valid(), pc.not_equal(kinds, _INLINE)), False)
    if not pc.any(is_moved, min_count=0).as_py():
        return vectors
    distinct = pc.if_else(is_moved, paths_or_data, None).dictionary_encode()
    first = [
        pc.index(distinct.indices, number).as_py() for number in range(len(distinct.dictionary))
    ]
    found = [deletion_vector_of(vectors[row].as_py()) for row in first]
    full = [None if each is None else deletion_vector_path(each, paths) for each in found]
    named = pa.array([path and _absolute_reference(path) for path in full], pa.string())
    fields = dict(zip(DELETION_VECTOR_TYPE.names, vectors.flatten(), strict=True))
    fields["storageType"] = pc.if_else(is_moved, _ABSOLUTE, kinds)
    fields["pathOrInlineDv"] = pc.if_else(is_moved, named.take(distinct.indices), paths_or_data)
    return pa.StructArray.from_arrays(
        list(fields.values()), fields=list(DELETION_VECTOR_TYPE), mask=vectors.is_null()
    )


def _absolute_reference(path: str) -> str:
    """Return a full path as an absolute URI reference."""
    return uri_reference(with_file_scheme(path))
