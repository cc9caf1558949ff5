"""What an OPTIMIZE tells: its history and its caller, by the names that Delta has (spec 8.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.maintenance.optimize.arrangements import Arrangement, Clustering, ZOrdering
from optimist.core.maintenance.optimize.compacted_bin import CompactedBin
from optimist.core.maintenance.optimize.cubes import Cubes
from optimist.core.protocol.actions import AddFile

__all__ = ["CubeCounts", "FileSizes", "Optimized", "commit_metrics", "optimized"]


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The sizes of some files, in bytes.

    Attributes:
        smallest: The smallest; None where there is no file.
        largest: The largest.
        num_files: How many there are.
        total: All of them together.
    """

    smallest: int | None
    largest: int | None
    num_files: int
    total: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> FileSizes:
        """Those of files of these sizes."""
        return cls(min(sizes, default=None), max(sizes, default=None), len(sizes), sum(sizes))

    @property
    def mean(self) -> float:
        """The mean; 0 where there is no file."""
        return self.total / self.num_files if self.num_files else 0.0


@dataclass(frozen=True, slots=True)
class CubeCounts:
    """The files that an OPTIMIZE of a clustered table looked at.

    Attributes:
        num_cubes: How many cubes there were that it could arrange again; see `cubes`.
        in_cubes: The files of these.
        others: Those in no cube, or, but for OPTIMIZE FULL, in one by other columns.
    """

    num_cubes: int
    in_cubes: FileSizes
    others: FileSizes

    @classmethod
    def of(cls, files: pa.Table, clustering: Clustering) -> CubeCounts:
        """The counts for files, rows of `Snapshot.files`, of a table that is clustered so."""
        cubes = Cubes.of(files, clustering.columns)
        inside = pc.and_(pc.or_(cubes.is_ours, clustering.is_full), pc.is_valid(cubes.ids))
        sizes = (files.filter(mask)["size"].to_pylist() for mask in (inside, pc.invert(inside)))
        num_cubes = len(cubes.ids.filter(inside).unique())
        return cls(num_cubes, *map(FileSizes.of, sizes))


@dataclass(frozen=True, slots=True)
class Optimized:
    """What an OPTIMIZE did.

    Attributes:
        version: The newest version that it made; None if there was nothing to do.
        added: The files that it wrote.
        removed: The files that these have taken the place of.
        num_partitions: How many partitions it worked on.
        num_bins: How many groups of files it put together.
        num_batches: How many commits it wanted to make.
        num_considered: How many files it looked at.
        num_vectors_removed: How many deletion vectors are gone.
        num_rows_purged: How many rows, deleted by these, are in no file any more.
        is_z_ordered: Whether it arranged rows in Z-order.
        cubes: What it looked at of a clustered table; None for other tables.
        started_ms: When it began, in milliseconds since the epoch.
        ended_ms: When it ended.
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


def optimized(
    bins: Sequence[CompactedBin],
    arrangement: Arrangement,
    candidates: pa.Table,
    *,
    version: int | None,
    num_batches: int,
    period_ms: tuple[int, int],
) -> Optimized:
    """What was done, from the bins that were committed."""
    removed = _before(bins)
    vectors = [add.deletion_vector for add in removed if add.deletion_vector is not None]
    partitions = {tuple(sorted(add.partition_values.items())) for add in removed}
    return Optimized(
        version=version,
        added=FileSizes.of([add.size for add in _after(bins)]),
        removed=FileSizes.of([add.size for add in removed]),
        num_partitions=len(partitions),
        num_bins=len(bins),
        num_batches=num_batches,
        num_considered=candidates.num_rows,
        num_vectors_removed=len(vectors),
        num_rows_purged=sum(vector.cardinality for vector in vectors),
        is_z_ordered=isinstance(arrangement, ZOrdering),
        cubes=CubeCounts.of(candidates, arrangement)
        if isinstance(arrangement, Clustering)
        else None,
        started_ms=period_ms[0],
        ended_ms=period_ms[1],
    )


def commit_metrics(bins: Sequence[CompactedBin]) -> dict[str, object]:
    """The metrics of one commit."""
    added, removed = _after(bins), _before(bins)
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


def _before(bins: Sequence[CompactedBin]) -> list[AddFile]:
    return [add for found in bins for add in found.before]


def _after(bins: Sequence[CompactedBin]) -> list[AddFile]:
    return [add for found in bins for add in found.after]
