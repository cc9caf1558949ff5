"""The metrics of an OPTIMIZE for its history and its caller, with Delta's names (spec 8.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors.html_repr import field_html
from optimist.core.errors.short_repr import short_repr
from optimist.core.maintenance.optimize.arrangements import (
    Arrangement,
    Candidates,
    Clustering,
    ZOrdering,
)
from optimist.core.maintenance.optimize.compacted_bin import CompactedBin
from optimist.core.maintenance.optimize.cubes import Cubes
from optimist.core.protocol.actions import AddFile

__all__ = ["CubeCounts", "FileSizes", "Optimized", "commit_metrics", "optimized"]


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The sizes of some files, in bytes.

    Attributes:
        smallest: The smallest size; None if there are no files.
        largest: The largest size; None if there are no files.
        num_files: The number of files.
        total: The sizes, summed.
    """

    smallest: int | None
    largest: int | None
    num_files: int
    total: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> FileSizes:
        """Summarize the sizes of files."""
        return cls(min(sizes, default=None), max(sizes, default=None), len(sizes), sum(sizes))

    @property
    def mean(self) -> float:
        """The mean size, or 0 without files."""
        return self.total / self.num_files if self.num_files else 0.0


@dataclass(frozen=True, slots=True)
class CubeCounts:
    """The files that an OPTIMIZE of a clustered table considered.

    Attributes:
        num_cubes: The number of cubes that it could rewrite; see `cubes`.
        in_cubes: The files of these cubes.
        others: The files in no cube and, without FULL, files in cubes by other columns.
    """

    num_cubes: int
    in_cubes: FileSizes
    others: FileSizes

    @classmethod
    def of(cls, files: pa.Table, clustering: Clustering) -> CubeCounts:
        """Count the files of a clustered table, given as rows of `Snapshot.files`."""
        cubes = Cubes.of(files, clustering.columns)
        inside = pc.and_(pc.or_(cubes.is_ours, clustering.is_full), pc.is_valid(cubes.ids))
        sizes = (files.filter(mask)["size"].to_pylist() for mask in (inside, pc.invert(inside)))
        num_cubes = len(cubes.ids.filter(inside).unique())
        return cls(num_cubes, *map(FileSizes.of, sizes))


@dataclass(frozen=True, slots=True)
class Optimized:
    """The result of an OPTIMIZE.

    Attributes:
        version: The newest version that it committed; None if there was nothing to do.
        added: The files that it wrote.
        removed: The files that these replaced.
        num_partitions: The number of partitions that it changed.
        num_bins: The number of bins that it committed.
        num_batches: The number of commits that it planned.
        num_considered: The number of files that it considered.
        num_vectors_removed: The number of deletion vectors that it removed.
        num_rows_purged: The number of deleted rows that no file holds any more.
        is_z_ordered: Whether it arranged rows in Z-order.
        cubes: The files of a clustered table that it considered; None for other tables.
        started_ms: The time when it began, in epoch milliseconds.
        ended_ms: The time when it ended, in epoch milliseconds.
    """

    version: int | None
    added: FileSizes
    removed: FileSizes
    num_partitions: int
    num_bins: int
    num_batches: int
    num_considered: int
    num_vectors_removed: int
    num_rows_purged: int
    is_z_ordered: bool
    cubes: CubeCounts | None
    started_ms: int
    ended_ms: int

    __repr__ = short_repr
    _repr_html_ = field_html


def optimized(
    bins: Sequence[CompactedBin],
    arrangement: Arrangement,
    candidates: Candidates,
    *,
    version: int | None,
    num_batches: int,
    period_ms: tuple[int, int],
) -> Optimized:
    """Summarize the bins that were committed."""
    removed = _files_before(bins)
    vectors = [add.deletion_vector for add in removed if add.deletion_vector is not None]
    partitions = {tuple(sorted(add.partition_values.items())) for add in removed}
    return Optimized(
        version=version,
        added=FileSizes.of([add.size for add in _files_after(bins)]),
        removed=FileSizes.of([add.size for add in removed]),
        num_partitions=len(partitions),
        num_bins=len(bins),
        num_batches=num_batches,
        num_considered=candidates.num_files,
        num_vectors_removed=len(vectors),
        num_rows_purged=sum(vector.cardinality for vector in vectors),
        is_z_ordered=isinstance(arrangement, ZOrdering),
        cubes=CubeCounts.of(candidates.files, arrangement)
        if isinstance(arrangement, Clustering)
        else None,
        started_ms=period_ms[0],
        ended_ms=period_ms[1],
    )


def commit_metrics(bins: Sequence[CompactedBin]) -> dict[str, object]:
    """Return the metrics of one commit."""
    added, removed = _files_after(bins), _files_before(bins)
    sizes = sorted(add.size for add in added)
    quarters = {
        "minFileSize": 0.0,
        "p25FileSize": 0.25,
        "p50FileSize": 0.5,
        "p75FileSize": 0.75,
        "maxFileSize": 1.0,
    }
    return {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": sum(add.size for add in removed),
        "numDeletionVectorsRemoved": sum(add.deletion_vector is not None for add in removed),
        **{
            name: sizes[round(part * (len(sizes) - 1))] if sizes else 0
            for name, part in quarters.items()
        },
    }


def _files_before(bins: Sequence[CompactedBin]) -> list[AddFile]:
    return [add for found in bins for add in found.before]


def _files_after(bins: Sequence[CompactedBin]) -> list[AddFile]:
    return [add for found in bins for add in found.after]
