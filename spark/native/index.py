"""Our table as Spark's `FileIndex`, which Catalyst asks for files (docs/planes.md).

The JVM calls the methods of `TableFileIndex` by py4j, on its own threads, while it plans.
`listFiles` runs once per scan and execution, so its answers are kept while the JVM has the memory.
Proxies do not inherit Java's default methods, so each method of the interface is defined here.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from optimist.core.errors import UsageError
from optimist.core.forking import ForkSafeLock
from optimist.core.predicates.tree import Predicate
from optimist.core.schema.column_paths import logical_path
from optimist.core.schema.types import StructType as TableSchema
from optimist.core.skipping.aggregates import CountedFiles, Wanted, is_answered
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.conditions.data_filters import data_predicate
from optimist.spark.native.deleted_rows import RANGE_COLUMNS, DeletedRows
from optimist.spark.native.listing import hadoop_path
from optimist.spark.native.parts import ScanPart
from optimist.spark.native.pruning import internal_rows
from optimist.spark.native.scala_functions import partition_directory_function
from optimist.spark.native.spark_files import SoftlyKept
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm, iterate
from optimist.spark.session.listed_files import remember_listing
from optimist.spark.session.pyspark_versions import FILE_SOURCES

__all__ = ["KEY_PREFIX", "TableFileIndex", "index_of_key"]

KEY_PREFIX = "optimist:"
_MAX_KEPT_LISTINGS = 4
_INDEXES: weakref.WeakValueDictionary[str, TableFileIndex] = weakref.WeakValueDictionary()


class _FilesLeft(NamedTuple):
    """The files that filters leave: a mask of the listing (None for all), and their size."""

    mask: pa.BooleanArray | None
    size_bytes: int
    directories: SoftlyKept


class TableFileIndex(JavaIdentity):
    """The files of one table version for one session, as Spark's `FileIndex`.

    To Spark, equal keys mean equal indexes.

    Attributes:
        key: The path, the version and all else that changes the rows; it starts with `KEY_PREFIX`.
    """

    class Java:
        """The interfaces for which py4j makes a proxy."""

        implements = [  # noqa: RUF012 - py4j wants a list
            FILE_SOURCES + ".FileIndex",
            "scala.Function2",  # `PrunedFiles` of the drop-in calls `apply`
        ]

    def __init__(
        self,
        jvm: Jvm,
        key: str,
        view: FilesView,
        part: ScanPart,
        deleted: DeletedRows | None = None,
        *,
        is_counted: bool = False,
    ) -> None:
        """Make an index over some of a version's files.

        Args:
            jvm: The session's handles.
            key: See the attribute.
            view: The version, or other files that are read like those of a version.
            part: The files.
            deleted: The deleted rows of the files, if all have a vector; None if none has.
            is_counted: Whether the log may answer queries in place of the files.
        """
        super().__init__(key)
        self._jvm = jvm
        self.key = key
        self._view = view
        self._part = part
        self._deleted = deleted
        self._is_counted = is_counted
        schema = part.partitions.schema
        self._struct = jvm.struct(_with_ranges(schema) if deleted else schema)
        root = jvm.root.org.apache.hadoop.fs.Path(hadoop_path(view.table_path))
        # Spark writes into a relation of one folder: an INSERT OVERWRITE of a temporary view over
        # these rows would remove the table, its log included. Spark refuses to write to two
        # folders.
        self._roots = jvm.seq([root, root])
        self._lock = ForkSafeLock()
        self._kept: OrderedDict[tuple[bytes | None, str], _FilesLeft] = OrderedDict()
        remember_listing(self)
        _INDEXES[key] = self

    # Spark calls these methods, by the names and types of the interface.

    def rootPaths(self) -> Any:
        """Return the table's path, listed twice, which `explain` shows."""
        return self._roots

    def partitionSchema(self) -> Any:
        """Return the partition columns, with the hidden ones for deleted rows last."""
        return self._struct

    def sizeInBytes(self) -> int:
        """Return the bytes of all files, before any pruning."""
        return self._part.listing.size_bytes

    def metadataOpsTimeNs(self) -> Any:
        """Return nothing, since the time is not measured."""
        return self._jvm.none

    def isTimeTravel(self) -> bool:
        """Return False.

        Spark 4.3 asks. The key holds the version, so the answer has no effect.
        """
        return False

    def refresh(self) -> None:
        """Do nothing, since a version never changes."""

    def inputFiles(self) -> Any:
        """Return the full paths of all files."""
        with callback():
            # One text: an array filled from Python would cost a round trip per path.
            text = "\0".join(self._part.listing.paths.to_pylist())
            return self._jvm.root.org.apache.commons.lang3.StringUtils.split(text, "\0")

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """Return the files to read.

        Partition filters are applied exactly; data filters only skip files.
        """
        with callback():
            return self._apply_filters(partition_filters, data_filters).directories.value()

    def apply(self, partition_filters: Any, data_filters: Any) -> int:
        """Return the bytes of the files of `listFiles`, for Spark's choice of joins."""
        with callback():
            return self._apply_filters(partition_filters, data_filters).size_bytes

    # Python calls these methods.

    def names(self, path: str) -> bool:
        """See `ListsFiles.names`."""
        return self._part.listing.has(path)

    def counted_files(
        self, partition_filters: Any, wanted: Sequence[Wanted]
    ) -> CountedFiles | None:
        """Return the files that partition filters leave, if the log may count them.

        Args:
            partition_filters: Catalyst's expressions, as for `listFiles`.
            wanted: What is to be known of the files.
        """
        view = self._view
        if not (self._is_counted and is_answered(wanted, view.schema, view.partition_columns)):
            return None
        ordinals = self._kept_ordinals(partition_filters)
        return self._part.counted_files(self._mask_of_filters(ordinals, Predicate.TRUE))

    def files_left(self, partition_filters: Any, data_filters: Any) -> tuple[CountedFiles, int]:
        """Return the files of `listFiles`, for figures of their rows, and their bytes."""
        left = self._apply_filters(partition_filters, data_filters)
        return self._part.counted_files(left.mask), left.size_bytes

    @property
    def schema(self) -> TableSchema:
        """The columns of the table."""
        return self._view.schema

    # Private methods.

    def _apply_filters(self, partition_filters: Any, data_filters: Any) -> _FilesLeft:
        predicate = data_predicate(iterate(data_filters), self._view.schema, logical_path)
        with self._lock:
            ordinals = self._kept_ordinals(partition_filters)
            known = None if ordinals is None else ordinals.buffers()[1].to_pybytes()
            memo = (known, str(predicate))
            found = self._kept.get(memo)
            if found is None:
                found = self._kept[memo] = self._files_left(
                    self._mask_of_filters(ordinals, predicate)
                )
            self._kept.move_to_end(memo)
            while len(self._kept) > _MAX_KEPT_LISTINGS:
                self._kept.popitem(last=False)
            return found

    def _files_left(self, mask: pa.BooleanArray | None) -> _FilesLeft:
        listing = self._part.listing
        size = listing.size_bytes if mask is None else listing.filter(mask).size_bytes
        return _FilesLeft(mask, size, SoftlyKept(self._jvm, partial(self._make_directories, mask)))

    def _kept_ordinals(self, partition_filters: Any) -> pa.Array | None:
        """Return the partitions that pass the filters, or None for all."""
        if partition_filters.isEmpty():
            return None
        return self._part.partitions.ordinals(partition_filters)

    def _make_directories(self, mask: pa.BooleanArray | None) -> Any:
        """Return a `Seq[PartitionDirectory]` of the files where the mask is true, or of all."""
        num_files = self._part.listing.num_files if mask is None else mask.true_count
        if num_files == 0:
            return self._jvm.nil
        if self._deleted is None:
            return self._part.files.directories(mask)
        values = self._rows_with_ranges(self._deleted, mask)
        files = self._part.files.statuses(mask).grouped(1).toSeq()
        return values.zip(files).map(partition_directory_function(self._jvm))

    def _mask_of_filters(
        self, ordinals: pa.Array | None, predicate: Predicate
    ) -> pa.BooleanArray | None:
        """Return which files of the listing are left, or None for all."""
        listing = self._part.listing
        masks = []
        if ordinals is not None:
            masks.append(pc.is_in(listing.ordinals, value_set=ordinals))
        if predicate != Predicate.TRUE:
            kept = _files_after_skipping(self._view, predicate)
            masks.append(pc.is_in(listing.column("path"), value_set=kept["path"]))
        mask = reduce(pc.and_, masks) if masks else None
        return None if mask is None or mask.false_count == 0 else mask

    def _rows_with_ranges(self, deleted: DeletedRows, mask: pa.BooleanArray | None) -> Any:
        """Return a row per file: its partition values, and its range among the deleted rows."""
        whole = self._part.listing
        listing = whole if mask is None else whole.filter(mask)
        values = listing.partitions.take(listing.ordinals)
        ranges = deleted.ranges(listing.files)
        names = [*values.column_names, *ranges.column_names]
        # Not column by column: a table without columns does not know how many rows it has.
        values = pa.table([*values.columns, *ranges.columns], names=names)
        return internal_rows(self._jvm, values, _with_ranges(self._part.partitions.schema))


def index_of_key(key: str) -> TableFileIndex | None:
    """Return an index of this key that is in use."""
    return _INDEXES.get(key)


def _files_after_skipping(view: FilesView, predicate: Predicate) -> pa.Table:
    try:
        return view.scan(predicate).files
    except UsageError:
        return view.files  # our predicates can't resolve a name: skipping is only a hint


def _with_ranges(schema: StructType) -> StructType:
    return StructType([*schema.fields, *RANGE_COLUMNS.fields])
