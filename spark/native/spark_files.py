"""The files of a listing as Spark has them, kept in the JVM with their version.

Sending a file to Spark costs a quarter of a kilobyte, and the JVM a microsecond or more. So the
whole list is sent once, and a query says only which files are left. If the list is not in the JVM
and a query needs less than half of it, only those files are sent. The JVM holds the list by soft
references: it may drop the list when it needs memory, and then the list is made again. The list
belongs to its listing, which belongs to its version, so no name or path is needed to find it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.spark.native.file_statuses import file_statuses
from optimist.spark.native.listing import FileListing
from optimist.spark.native.pruning import PartitionRows
from optimist.spark.native.scala_functions import pair_part_function, partition_directory_function
from optimist.spark.session.jvm import Jvm

__all__ = ["SoftlyKept", "SparkFiles"]


class SparkFiles:
    """The files of one listing inside the JVM, shared by threads.

    Args:
        jvm: The session's handles.
        listing: The files.
        partitions: The partitions of the listing.
    """

    def __init__(self, jvm: Jvm, listing: FileListing, partitions: PartitionRows) -> None:
        self._jvm = jvm
        self._listing = listing
        self._partitions = partitions
        self._statuses = SoftlyKept(jvm, lambda: _statuses_of(jvm, listing))
        self._directories = SoftlyKept(jvm, lambda: self._group_by_partition(None))

    def directories(self, mask: pa.BooleanArray | None) -> Any:
        """Return a `Seq[PartitionDirectory]` of the files where the mask is true, or of all.

        Raises:
            TableError: A path may not be opened; see `DataPaths.full_paths`.
        """
        if mask is not None or self._listing.data_paths.are_looked_at:
            return self._group_by_partition(mask)
        return self._directories.value()

    def statuses(self, mask: pa.BooleanArray | None) -> Any:
        """Return a `Seq[FileStatusWithMetadata]` of the files where the mask is true, or of all."""
        if self._listing.data_paths.are_looked_at or not self._is_worth_all(mask):
            some = self._listing if mask is None else self._listing.filter(mask)
            return _statuses_of(self._jvm, some)
        whole = self._statuses.value()
        if mask is None:
            return whole
        return _int_seq(self._jvm, pc.indices_nonzero(mask)).map(whole)

    def _is_worth_all(self, mask: pa.BooleanArray | None) -> bool:
        """Check whether to send all files, which must then all be allowed."""
        if mask is None or self._statuses.is_there():
            return True
        return mask.true_count > mask.false_count and self._are_plain

    @cached_property
    def _are_plain(self) -> bool:
        return self._listing.data_paths.are_plain(self._listing.column("path"))

    def _group_by_partition(self, mask: pa.BooleanArray | None) -> Any:
        """Group the files in the JVM, without a round trip per partition or file."""
        jvm = self._jvm
        statuses = self.statuses(mask)
        if not self._partitions.schema.fields:
            no_row = jvm.module("org.apache.spark.sql.catalyst.InternalRow$").empty()
            return jvm.seq([jvm.sources.PartitionDirectory(no_row, statuses)])
        ordinals = self._listing.ordinals
        given = _int_seq(jvm, ordinals if mask is None else ordinals.filter(mask))
        # Zipped, not found by path: a change feed lists a file once for each of its changes.
        first, second = (pair_part_function(jvm, name) for name in ("_1", "_2"))
        grouped = statuses.zip(given).groupMap(second, first)
        present = given.distinct()
        values, files = present.map(self._partitions.values()), present.map(grouped)
        return values.zip(files).map(partition_directory_function(jvm))


class SoftlyKept:
    """A Java object that the JVM may drop when it needs memory, and then makes again.

    Args:
        jvm: The session's handles.
        make: Makes the object, which never changes.
    """

    def __init__(self, jvm: Jvm, make: Callable[[], Any]) -> None:
        self._jvm = jvm
        self._make = make
        self._reference: Any = None

    def is_there(self) -> bool:
        """Check whether the object exists already."""
        return self._get_kept() is not None

    def value(self) -> Any:
        """Return the object.

        Two threads may both make it, but neither waits for the other.
        """
        found = self._get_kept()
        if found is None:
            found = self._make()
            self._reference = self._jvm.root.java.lang.ref.SoftReference(found)
        return found

    def _get_kept(self) -> Any:
        return None if self._reference is None else self._reference.get()


def _statuses_of(jvm: Jvm, listing: FileListing) -> Any:
    sizes, times = listing.column("size"), listing.column("modificationTime")
    return file_statuses(jvm, listing.paths, sizes, times).toIndexedSeq()


def _int_seq(jvm: Jvm, values: pa.Array) -> Any:
    """Return whole numbers as a Scala `Seq[Int]`."""
    java = jvm.root.java.nio
    data = pa.concat_arrays([values.cast(pa.int32())]).buffers()[1].to_pybytes()
    array = jvm.gateway.new_array(jvm.root.int, len(values))
    little = java.ByteOrder.LITTLE_ENDIAN
    java.ByteBuffer.wrap(data).order(little).asIntBuffer().get(array)
    return jvm.array_seq(array)
