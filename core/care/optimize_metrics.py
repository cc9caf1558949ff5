"""What an OPTIMIZE tells: its history and its caller, by the names that Delta has (spec 8.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optimist.core.care.compacted_bin import CompactedBin
from optimist.core.protocol.actions import AddFile
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.result import CommitResult

__all__ = ["FileSizes", "Optimized", "commit_metrics", "optimized"]


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
    def of(cls, adds: Sequence[AddFile]) -> FileSizes:
        """Those of these files."""
        sizes = [add.size for add in adds]
        return cls(min(sizes, default=None), max(sizes, default=None), len(sizes), sum(sizes))

    @property
    def mean(self) -> float:
        """The mean; 0 where there is no file."""
        return self.total / self.num_files if self.num_files else 0.0


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
        num_columns: How many columns the table has.
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
    num_columns: int
    started_ms: int
    ended_ms: int


def optimized(
    bins: Sequence[CompactedBin],
    snapshot: Snapshot,
    commits: Sequence[CommitResult],
    *,
    num_considered: int,
    num_batches: int,
    period_ms: tuple[int, int],
) -> Optimized:
    """What was done, from the bins that were committed."""
    removed = _before(bins)
    vectors = [add.deletion_vector for add in removed if add.deletion_vector is not None]
    partitions = {tuple(sorted(add.partition_values.items())) for add in removed}
    return Optimized(
        version=commits[-1].version if commits else None,
        added=FileSizes.of(_after(bins)),
        removed=FileSizes.of(removed),
        num_partitions=len(partitions),
        num_bins=len(bins),
        num_batches=num_batches,
        num_considered=num_considered,
        num_vectors_removed=len(vectors),
        num_rows_purged=sum(vector.cardinality for vector in vectors),
        num_columns=len(snapshot.schema),
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
