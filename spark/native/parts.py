"""The parts of a scan, each with files of one kind, and the kept listings of versions.

Listing the files of a version (typed partition values, the partition of each file) takes time for
every file, and a version never changes. So a listing is kept with its version: one per session that
read it and per time zone of its partition values. The objects that Spark got from it are kept, too.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from optimist.core.forking import ForkSafeLock
from optimist.core.skipping.aggregates import CountedFiles
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.native.listing import FileListing
from optimist.spark.native.metadata_column import RowTracking
from optimist.spark.native.pruning import PartitionRows
from optimist.spark.native.row_sets import is_sparse
from optimist.spark.native.spark_files import SparkFiles
from optimist.spark.rows.stored_columns import is_read_by_id, stored_schema
from optimist.spark.session.jvm import Jvm

__all__ = ["ScanPart", "parts_of_files", "parts_of_version"]

_MAX_KEPT = 4
_LOCK = ForkSafeLock()
_KEPT: weakref.WeakKeyDictionary[
    FilesView, OrderedDict[tuple[Jvm, str | None], tuple[ScanPart, ...]]
] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Files of one kind.

    Attributes:
        name: Distinguishes the part in keys; empty if its files have no deletion vectors.
        listing: The files.
        partitions: The partitions of the listing, for Spark.
        files: The files of the listing, for Spark.
        statistics: Those of the files, parsed where they are asked for.
    """

    name: str
    listing: FileListing
    partitions: PartitionRows
    files: SparkFiles
    statistics: FileStatistics

    def counted_files(self, mask: pa.BooleanArray | None) -> CountedFiles:
        """Return the files where the mask is true, or all, to be counted by the log."""
        if mask is None or mask.true_count > len(mask) // 4:
            return CountedFiles(self.statistics, self.listing.partition_values, mask)
        few = self.listing.filter(mask)  # so few that only theirs should be parsed
        statistics = FileStatistics(few.files, self.statistics.schema)
        return CountedFiles(statistics, few.partition_values)

    @property
    def is_sparse(self) -> bool:
        """True if the deleted rows go into a sparse set of `row_sets`."""
        return self.name.endswith("sparse")


def parts_of_version(jvm: Jvm, view: FilesView, zone: str | None) -> tuple[ScanPart, ...]:
    """Return all files of a version in parts, listed at the first call.

    Args:
        jvm: The session's handles.
        view: The version, or other files that are read like those of a version.
        zone: The zone in which timestamps of partitions are read; None if the table has none.

    Raises:
        TableError: A partition value in the log is damaged.
    """
    with _LOCK:
        kept = _KEPT.setdefault(view, OrderedDict())
        found = kept.get((jvm, zone))
        if found is not None:
            kept.move_to_end((jvm, zone))
            return found
    # Outside of the lock: two threads may do the same work, but no thread waits for another table.
    listed = parts_of_files(jvm, view, view.files, zone)
    with _LOCK:
        kept[jvm, zone] = listed
        while len(kept) > _MAX_KEPT:
            kept.popitem(last=False)
    return listed


def parts_of_files(
    jvm: Jvm, view: FilesView, files: pa.Table, zone: str | None
) -> tuple[ScanPart, ...]:
    """Return some files of a version in parts, listed at each call."""
    return tuple(_make_part(jvm, view, name, some, zone) for name, some in _split_by_kind(files))


def _make_part(jvm: Jvm, view: FilesView, name: str, files: pa.Table, zone: str | None) -> ScanPart:
    tracking = RowTracking.of(view)
    listing = FileListing.of(
        view.data_paths,
        files,
        view.partition_schema,
        zone=zone or "UTC",
        constants=tracking.constants(files) if tracking else None,
    )
    stored = stored_schema(
        view.partition_schema,
        by_id=is_read_by_id(view),
        partition_columns=view.partition_columns,
    )
    schema = StructType([*stored, *(tracking.constant_fields if tracking else ())])
    partitions = PartitionRows(jvm, listing.partitions, schema)
    return ScanPart(
        name,
        listing,
        partitions,
        SparkFiles(jvm, listing, partitions),
        FileStatistics(files, view.schema),
    )


def _split_by_kind(files: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Return the names of the parts and their files, first those without deleted rows."""
    has_vector = pc.is_valid(files["deletionVector"])
    if not pc.any(has_vector, min_count=0).as_py():
        yield "", files
        return
    with_vector = files.filter(has_vector)
    sparse = is_sparse(with_vector["deletionVector"].combine_chunks())
    parts = (
        ("", files.filter(pc.invert(has_vector))),
        ("&rows=dense", with_vector.filter(pc.invert(sparse))),
        ("&rows=sparse", with_vector.filter(sparse)),
    )
    yield from ((name, some) for name, some in parts if some.num_rows)
