"""Deletion vectors as a native filter, without a join, a jar or a Python worker (spec 10.10).

The filter's expression holds a set of positions inside the JVM (`row_sets.py`). All files of a scan
share one set. Each file has a range of positions in it, and two hidden partition columns tell Spark
where the range begins and how long it is. A row is deleted if its index is inside the range and its
position is in the set.

1. The frame is made. The set is empty, and no vector is read.
2. Spark plans an action and asks for files. The vectors of the files that it will read are read
   now, unless they were read before, and their rows are put into the set.
3. Spark serialises the tasks, and with them the set.

The set only grows, and a position never changes its meaning. So several queries may be planned over
one frame at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import ensure_rows_exist, read_deletion_vectors
from optimist.core.errors import TableError
from optimist.core.forking import ForkSafeLock
from optimist.core.log.file_table import add_files
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.actions import DeletionVectorDescriptor
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import stats_table
from optimist.spark.native.listing import file_identities
from optimist.spark.native.metadata_column import ROW_INDEX
from optimist.spark.native.row_sets import DenseRows, RowSet, SparseRows
from optimist.spark.session.jvm import Jvm

__all__ = ["RANGE_COLUMNS", "AccessSource", "DeletedRows"]

_BASE, _SPAN = "__optimist_vector_base", "__optimist_vector_span"
RANGE_COLUMNS = st.StructType(
    [
        st.StructField(_BASE, st.LongType(), nullable=False),
        st.StructField(_SPAN, st.LongType(), nullable=False),
    ]
)
"""The hidden partition columns: a file's first position in the set, and its number of positions."""

AccessSource = Callable[[], DataAccess | None]
"""Returns how data files are reached; called only when a vector is read."""

_RANGES = pa.schema([("key", pa.string()), (_BASE, pa.int64()), (_SPAN, pa.int64())])
_LOCK = ForkSafeLock()
_KNOWN: weakref.WeakKeyDictionary[Jvm, weakref.WeakValueDictionary[str, DeletedRows]] = (
    weakref.WeakKeyDictionary()
)


class DeletedRows:
    """The deleted rows of one scan's files, which `of` returns.

    Scans with equal keys share one object, because Spark shares caches between them.
    """

    def __init__(
        self, jvm: Jvm, paths: DataPaths, access: AccessSource, *, is_sparse: bool
    ) -> None:
        self._jvm = jvm
        self._paths = paths
        self._access = access
        self._lock = ForkSafeLock()
        self._ranges = _RANGES.empty_table()
        self._num_positions = 0
        self._set: RowSet = SparseRows(jvm) if is_sparse else DenseRows(jvm)

    @classmethod
    def of(
        cls, jvm: Jvm, key: str, paths: DataPaths, access: AccessSource, *, is_sparse: bool
    ) -> DeletedRows:
        """Return the deleted rows for a scan's key.

        It is the same object while a scan of that key lives.

        Args:
            jvm: The session's handles.
            key: The key of the scan's index.
            paths: Resolves paths in the log.
            access: Returns how vectors are reached.
            is_sparse: Use the sparse set of `row_sets.py`, not the dense one.
        """
        with _LOCK:
            known = _KNOWN.setdefault(jvm, weakref.WeakValueDictionary())
            found = known.get(key)
            if found is None:
                found = known[key] = cls(jvm, paths, access, is_sparse=is_sparse)
            return found

    def column(self) -> Column:
        """Return a condition that is true for deleted rows.

        The relation must have `RANGE_COLUMNS` and `ROW_INDEX`.
        """
        index = ROW_INDEX.name
        position = sf.expr(f"CAST({_BASE} + {index} AS {self._set.position_type})")
        expressions = self._jvm.root.org.apache.spark.sql.classic.ExpressionUtils
        found = Column(expressions.column(self._set.contains(expressions.expression(position._jc))))
        return sf.when(sf.expr(f"{index} < {_SPAN}"), found).otherwise(False)

    def ranges(self, files: pa.Table) -> pa.Table:
        """Read the vectors of some files into the set, and return their ranges.

        Args:
            files: Rows of `Snapshot.files`, all with a vector.

        Returns:
            The columns of `RANGE_COLUMNS`, with a row per file.

        Raises:
            TableError: A vector is missing or damaged, or names rows that its file lacks by the log
                (kind `OPTIMIST_MALFORMED_DELETION_VECTOR`); or the vectors cover more rows than fit
                in one set (kind `OPTIMIST_TOO_MANY_ROWS_WITH_VECTORS`).
        """
        with self._lock:
            # Not the path alone: in a change feed a file occurs with several vectors.
            keys = file_identities(files)
            self._add(files.filter(pc.invert(pc.is_in(keys, value_set=self._ranges["key"]))))
            rows = pc.index_in(keys, value_set=self._ranges["key"])
            return self._ranges.take(rows).select([_BASE, _SPAN])

    def _add(self, files: pa.Table) -> None:
        if files.num_rows == 0:
            return
        vectors = read_deletion_vectors(_descriptors(files), self._paths, self._access())
        _ensure_rows_exist(vectors, files)
        spans = [vector.max() + 1 if vector else 0 for vector in vectors]
        widths = [self._set.width(span) for span in spans]
        *bases, end = accumulate(widths, initial=self._num_positions)
        self._ensure_room(end)
        self._set.add(vectors, self._num_positions, widths)
        self._num_positions = end
        new = pa.table([file_identities(files), bases, spans], schema=_RANGES)
        self._ranges = pa.concat_tables([self._ranges, new])

    def _ensure_room(self, num_positions: int) -> None:
        if num_positions > self._set.capacity:
            raise TableError(
                f"The query reads files of {self._paths.table_path} whose deletion vectors cover "
                f"{num_positions} rows, but one query can handle only {self._set.capacity}. "
                "Nothing was read. Read less of the table at once, or rewrite its files without "
                "deletion vectors (REORG ... PURGE).",
                kind="OPTIMIST_TOO_MANY_ROWS_WITH_VECTORS",
                path=self._paths.table_path,
                num_rows=num_positions,
            )


def _ensure_rows_exist(vectors: Sequence[BitMap64], files: pa.Table) -> None:
    """Refuse vectors with rows past the log's row counts, since Spark opens the files."""
    counts = stats_table(files, (), StructType(()))["numRecords"].to_pylist()
    for rows, count, path in zip(vectors, counts, files["path"].to_pylist(), strict=True):
        if count is not None:
            ensure_rows_exist(rows, count, path)


def _descriptors(files: pa.Table) -> list[DeletionVectorDescriptor]:
    # One object per vector is fine: each vector is read by its own request.
    adds = add_files(files)
    return [add.deletion_vector for add in adds if add.deletion_vector is not None]
