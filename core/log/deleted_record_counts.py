"""The histogram of files by deleted records, a part of a version checksum (spec 5.9)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DeletedRecordCounts"]

_BOUNDARIES = (0, 1, *(10**power for power in range(1, 8)), (1 << 31) - 1)
"""The lower bounds of the bins, in deleted records, as the protocol names them."""


@dataclass(frozen=True, slots=True)
class DeletedRecordCounts:
    """How many files are in each bin of deleted records. The last bin has no end."""

    file_counts: tuple[int, ...]

    @classmethod
    def of(cls, deleted: pa.Array | pa.ChunkedArray) -> DeletedRecordCounts:
        """Return the histogram of a column of deleted records per file, without nulls."""
        at_least = [len(deleted), *(_count_from(deleted, start) for start in _BOUNDARIES[1:]), 0]
        return cls(tuple(a - b for a, b in pairwise(at_least)))

    @classmethod
    def from_json(cls, body: Any) -> DeletedRecordCounts | None:
        """Parse a checksum's entry, or return None if it is not a histogram: it is optional."""
        counts = body.get("deletedRecordCounts") if isinstance(body, Mapping) else None
        if not isinstance(counts, list) or len(counts) != len(_BOUNDARIES):
            return None
        if not all(type(count) is int and count >= 0 for count in counts):
            return None
        return cls(tuple(counts))

    def to_json(self) -> dict[str, list[int]]:
        """Return the value under the key `deletedRecordCountsHistogramOpt`."""
        return {"deletedRecordCounts": list(self.file_counts)}

    def plus(self, came: Iterable[int], went: Iterable[int]) -> DeletedRecordCounts | None:
        """Return the histogram after a commit, or None if it removes files that are not counted."""
        counts = list(self.file_counts)
        for sign, numbers in ((1, came), (-1, went)):
            for number in numbers:
                counts[bisect_right(_BOUNDARIES, number) - 1] += sign
        return DeletedRecordCounts(tuple(counts)) if min(counts) >= 0 else None


def _count_from(deleted: pa.Array | pa.ChunkedArray, start: int) -> int:
    return int(pc.sum(pc.greater_equal(deleted, start), min_count=0).as_py())
