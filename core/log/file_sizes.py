"""The sizes of a table's files: their sum, and their histogram (spec 5.9)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.values.exact_sums import exact_sum

__all__ = ["FileSizeHistogram", "ensure_possible", "total_bytes"]

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_BOUNDARIES: tuple[int, ...] = (
    0,
    *(_KIB << power for power in range(3, 13)),
    *range(8 * _MIB, 40 * _MIB, 4 * _MIB),
    *range(40 * _MIB, 120 * _MIB, 8 * _MIB),
    *range(120 * _MIB, 144 * _MIB, 4 * _MIB),
    *range(144 * _MIB, 576 * _MIB, 16 * _MIB),
    *range(576 * _MIB, 1408 * _MIB, 64 * _MIB),
    *range(1408 * _MIB, 2048 * _MIB, 128 * _MIB),
    *range(2048 * _MIB, 4096 * _MIB, 256 * _MIB),
    *(_GIB << power for power in range(2, 9)),
)
"""The lower bounds of the bins in bytes, narrow around usual file sizes. Other engines use the
same."""


_MOST_BYTES = 1 << 62
"""Half of the largest long, which leaves room for additions such as the cost of opening a file."""


def total_bytes(sizes: pa.ChunkedArray) -> int:
    """Return the sum of the sizes of a table's live files, or of any part of them.

    Raises:
        TableError: The log claims more than any store holds (kind `OPTIMIST_IMPOSSIBLE_COUNT`).
    """
    total = exact_sum(sizes)
    ensure_possible(total)
    return total


def ensure_possible(total: int) -> None:
    """Refuse a sum of sizes that is larger than any store.

    Raises:
        TableError: The sum is that large (kind `OPTIMIST_IMPOSSIBLE_COUNT`).
    """
    if total > _MOST_BYTES:
        raise TableError(
            f"The log claims that the table's files have {total} bytes, more than any store can "
            "hold. The log is damaged or was forged. Nothing was read or written. Read an older "
            "version, or remove the files with impossible sizes from the log.",
            kind="OPTIMIST_IMPOSSIBLE_COUNT",
            claimed=total,
        )


@dataclass(frozen=True, slots=True)
class FileSizeHistogram:
    """Counts and bytes per bin. A bin goes from its boundary to the next one's.

    Attributes:
        boundaries: The lower bound of each bin, in bytes, ascending from 0.
        file_counts: The number of files in each.
        total_bytes: The sum of their sizes.
    """

    boundaries: tuple[int, ...]
    file_counts: tuple[int, ...]
    total_bytes: tuple[int, ...]

    @classmethod
    def of(cls, sizes: pa.ChunkedArray) -> FileSizeHistogram:
        """Return the histogram of a column of sizes."""
        ordered = pc.take(sizes, pc.sort_indices(sizes)) if len(sizes) else sizes
        starts = [bisect_left(_Values(ordered), start) for start in _BOUNDARIES]
        ends = [*starts[1:], len(ordered)]
        parts = [ordered.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
        sums = tuple(map(exact_sum, parts))
        return cls(_BOUNDARIES, tuple(len(part) for part in parts), sums)

    @classmethod
    def empty(cls) -> FileSizeHistogram:
        """Return the histogram of no files."""
        return cls(_BOUNDARIES, (0,) * len(_BOUNDARIES), (0,) * len(_BOUNDARIES))

    @classmethod
    def from_json(cls, body: Any) -> FileSizeHistogram | None:
        """Parse a checksum's entry, or return None if it is not a histogram: it is optional."""
        if not isinstance(body, Mapping):
            return None
        boundaries, counts, totals = (
            _whole_numbers(body.get(key))
            for key in ("sortedBinBoundaries", "fileCounts", "totalBytes")
        )
        is_sorted = all(low < high for low, high in pairwise(boundaries))
        if boundaries[:1] != (0,) or not is_sorted:
            return None
        if not len(boundaries) == len(counts) == len(totals):
            return None
        return cls(boundaries, counts, totals)

    def to_json(self) -> dict[str, list[int]]:
        """Return the value under the key `fileSizeHistogram`."""
        return {
            "sortedBinBoundaries": list(self.boundaries),
            "fileCounts": list(self.file_counts),
            "totalBytes": list(self.total_bytes),
        }

    def plus(self, added: Iterable[int], removed: Iterable[int]) -> FileSizeHistogram | None:
        """Return the histogram after a commit, or None if it removes files that are not counted."""
        counts, totals = list(self.file_counts), list(self.total_bytes)
        for sign, sizes in ((1, added), (-1, removed)):
            for size in sizes:
                index = bisect_right(self.boundaries, size) - 1
                counts[index] += sign
                totals[index] += sign * size
        if min(counts) < 0 or min(totals) < 0:
            return None
        return FileSizeHistogram(self.boundaries, tuple(counts), tuple(totals))


@dataclass(frozen=True, slots=True)
class _Values(Sequence[int]):
    """An Arrow column as a sequence for `bisect`, which reads few of its values."""

    column: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, index: Any) -> Any:
        return self.column[index].as_py()


def _whole_numbers(column: object) -> tuple[int, ...]:
    """Return the numbers of a list, or none if it is not a list of whole numbers."""
    if not isinstance(column, list) or not all(type(item) is int for item in column):
        return ()
    return tuple(column)
