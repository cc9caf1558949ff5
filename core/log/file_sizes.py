"""`fileSizeHistogram` of a version checksum: how many files there are of which size (spec 5.9)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["FileSizeHistogram"]

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
"""Where bins begin, fine where files of tables mostly lie; other engines use the same ones."""


@dataclass(frozen=True, slots=True)
class FileSizeHistogram:
    """Counts and bytes per bin; a bin reaches from its boundary to the next, exclusively.

    Attributes:
        boundaries: Where each bin begins, in bytes, ascending from 0.
        file_counts: How many files are in each.
        total_bytes: What their sizes sum up to.
    """

    boundaries: tuple[int, ...]
    file_counts: tuple[int, ...]
    total_bytes: tuple[int, ...]

    @classmethod
    def of(cls, sizes: pa.ChunkedArray) -> FileSizeHistogram:
        """That of a column of sizes."""
        ordered = pc.take(sizes, pc.sort_indices(sizes)) if len(sizes) else sizes
        places = [bisect_left(_Values(ordered), start) for start in _BOUNDARIES]
        ends = [*places[1:], len(ordered)]
        parts = [ordered.slice(start, end - start) for start, end in zip(places, ends, strict=True)]
        sums = tuple(pc.sum(part, min_count=0).as_py() for part in parts)
        return cls(_BOUNDARIES, tuple(len(part) for part in parts), sums)

    @classmethod
    def empty(cls) -> FileSizeHistogram:
        """That of no files."""
        return cls(_BOUNDARIES, (0,) * len(_BOUNDARIES), (0,) * len(_BOUNDARIES))

    @classmethod
    def from_json(cls, body: Any) -> FileSizeHistogram | None:
        """Parse what stands in a checksum; None for what is no histogram, which is never needed."""
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
        """The value under the key `fileSizeHistogram`."""
        return {
            "sortedBinBoundaries": list(self.boundaries),
            "fileCounts": list(self.file_counts),
            "totalBytes": list(self.total_bytes),
        }

    def plus(self, added: Iterable[int], removed: Iterable[int]) -> FileSizeHistogram | None:
        """After a commit; None where it removes what the histogram does not have."""
        counts, totals = list(self.file_counts), list(self.total_bytes)
        for sign, sizes in ((1, added), (-1, removed)):
            for size in sizes:
                place = bisect_right(self.boundaries, size) - 1
                counts[place] += sign
                totals[place] += sign * size
        if min(counts) < 0 or min(totals) < 0:
            return None
        return FileSizeHistogram(self.boundaries, tuple(counts), tuple(totals))


@dataclass(frozen=True, slots=True)
class _Values(Sequence[int]):
    """An Arrow column as a sequence for `bisect`, which looks at few of its values."""

    column: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, index: Any) -> Any:
        return self.column[index].as_py()


def _whole_numbers(column: object) -> tuple[int, ...]:
    """The numbers of a list; nothing for what is no such list."""
    if not isinstance(column, list) or not all(type(item) is int for item in column):
        return ()
    return tuple(column)
