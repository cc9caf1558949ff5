"""The files of a listing as Spark has them, held in the JVM for all queries of a version.

Handing a file to Spark costs a quarter of a kilobyte, and the JVM a microsecond or more. So the
whole list is handed over once, and a query says only which of them are left; a query that needs
less than half of a list that is not there hands over just that. The JVM holds the list by soft
references: it gives it up where it needs the memory, and then the list is made anew. Nothing here
is known by a name or a path: the list goes with its listing, which goes with its version.
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
    """The files of one listing inside the JVM; threads share it.

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
        self._directories = SoftlyKept(jvm, lambda: self._grouped(None))

    def directories(self, mask: pa.BooleanArray | None) -> Any:
        """`Seq[PartitionDirectory]` of the files where the mask is true; None for all files.

        Raises:
            TableError: A path may not be opened; see `DataPaths.full_paths`.
        """
        if mask is not None or self._listing.data_paths.are_looked_at:
            return self._grouped(mask)
        return self._directories.value()

    def statuses(self, mask: pa.BooleanArray | None) -> Any:
        """`Seq[FileStatusWithMetadata]` of the same."""
        if self._listing.data_paths.are_looked_at or not self._is_worth_all(mask):
            some = self._listing if mask is None else self._listing.filter(mask)
            return _statuses_of(self._jvm, some)
        whole = self._statuses.value()
        if mask is None:
            return whole
        return _int_seq(self._jvm, pc.indices_nonzero(mask)).map(whole)

    def _is_worth_all(self, mask: pa.BooleanArray | None) -> bool:
        """Whether to hand over all files, of which none may then be one that can be refused."""
        if mask is None or self._statuses.is_there():
            return True
        return mask.true_count > mask.false_count and self._are_plain

    @cached_property
    def _are_plain(self) -> bool:
        return self._listing.data_paths.are_plain(self._listing.column("path"))

    def _grouped(self, mask: pa.BooleanArray | None) -> Any:
        """Grouped in the JVM: no round trip per partition or file."""
        jvm = self._jvm
        statuses = self.statuses(mask)
        if not self._partitions.schema.fields:
            no_row = jvm.module("org.apache.spark.sql.catalyst.InternalRow$").empty()
            return jvm.seq([jvm.sources.PartitionDirectory(no_row, statuses)])
        ordinals = self._listing.ordinals
        given = _int_seq(jvm, ordinals if mask is None else ordinals.filter(mask))
        # Zipped, not looked up by path: a change feed lists a file once for each of its changes.
        first, second = (pair_part_function(jvm, name) for name in ("_1", "_2"))
        grouped = statuses.zip(given).groupMap(second, first)
        present = given.distinct()
        values, files = present.map(self._partitions.values()), present.map(grouped)
        return values.zip(files).map(partition_directory_function(jvm))


class SoftlyKept:
    """A Java object that the JVM may give up when it needs memory; it is then made anew.

    Args:
        jvm: The session's handles.
        make: Makes the object, which never changes.
    """

    def __init__(self, jvm: Jvm, make: Callable[[], Any]) -> None:
        self._jvm = jvm
        self._make = make
        self._reference: Any = None

    def is_there(self) -> bool:
        """Whether it need not be made."""
        return self._found() is not None

    def value(self) -> Any:
        """The object; two threads may both make it, but none waits for the other."""
        found = self._found()
        if found is None:
            found = self._make()
            self._reference = self._jvm.root.java.lang.ref.SoftReference(found)
        return found

    def _found(self) -> Any:
        return None if self._reference is None else self._reference.get()


def _statuses_of(jvm: Jvm, listing: FileListing) -> Any:
    sizes, times = listing.column("size"), listing.column("modificationTime")
    return file_statuses(jvm, listing.paths, sizes, times).toIndexedSeq()


def _int_seq(jvm: Jvm, values: pa.Array) -> Any:
    """Whole numbers as a Scala `Seq[Int]`, in one piece."""
    java = jvm.root.java.nio
    data = pa.concat_arrays([values.cast(pa.int32())]).buffers()[1].to_pybytes()
    array = jvm.gateway.new_array(jvm.root.int, len(values))
    little = java.ByteOrder.LITTLE_ENDIAN
    java.ByteBuffer.wrap(data).order(little).asIntBuffer().get(array)
    return jvm.array_seq(array)
