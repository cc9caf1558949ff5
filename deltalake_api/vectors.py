"""Deletion vectors as deltalake shows them: for each file, which of its rows are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core import DeltaLog, Snapshot
from optimist.core.data.vectors.deletion_vectors import ensure_rows_exist, read_deletion_vector
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_table import deletion_vector_of
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.skipping.statistics import FileStatistics
from optimist.deltalake.exceptions import errors_translated

__all__ = ["deletion_vectors"]

_KEPT = pa.list_(pa.field("item", pa.bool_(), nullable=False))
_SCHEMA = pa.schema(
    [pa.field("filepath", pa.string(), False), pa.field("selection_vector", _KEPT, False)]
)
_VECTOR = "deletionVector"
_MOST_ROWS = (1 << 31) - 1


def deletion_vectors(log: DeltaLog, snapshot: Snapshot) -> pa.RecordBatchReader:
    """Return a row for each file with a vector: its URI, and whether each row is there.

    Vectors are read one by one.
    """
    files = snapshot.files_where(_VECTOR, pc.is_valid)
    counts = FileStatistics(files, snapshot.schema).num_records
    paths = snapshot.data_paths.full_paths(files["path"].combine_chunks())
    access = log.table.data_access()

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(files.num_rows):
            path, count = paths[number].as_py(), counts[number].as_py()
            with errors_translated():
                vector = deletion_vector_of(files[_VECTOR][number].as_py())
                if vector is None:
                    continue
                rows = read_deletion_vector(vector, snapshot.data_paths, access)
                kept = _kept(rows, count, path)
            yield pa.record_batch([[_uri(path)], kept], schema=_SCHEMA)

    return pa.RecordBatchReader.from_batches(_SCHEMA, batches())


def _kept(rows: BitMap64, num_rows: int | None, path: str) -> pa.Array:
    if num_rows is None or num_rows > _MOST_ROWS:  # no list is as long as a table may claim
        raise TableError(
            f"The log says that {shown(path)} has {num_rows} rows, which can't be listed. Nothing "
            "was read. Read the rows of the table instead.",
            kind="OPTIMIST_MALFORMED_DELETION_VECTOR",
            path=path,
        )
    ensure_rows_exist(rows, num_rows, path)
    mask: np.ndarray[Any, np.dtype[np.bool_]] = np.ones(num_rows, bool)
    mask[np.frombuffer(rows.to_array(), np.uint64)] = False
    return pa.ListArray.from_arrays(pa.array([0, num_rows], pa.int32()), pa.array(mask), _KEPT)


def _uri(path: str) -> str:
    if scheme_of(path) not in ("", "file"):
        return path
    return "file://" + quote(strip_file_scheme(path), safe="/!$&'()*+,;=:@")
