"""The rows that a commit deleted or restored by a new deletion vector (spec 10.10, 10.11).

The rows in which two vectors differ are a set of positions in a file. They are read as a file with
an invented vector that deletes every *other* row, so that no reader needs to know about changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyroaring import BitMap64

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import (
    ensure_rows_exist,
    inline_vector,
    read_deletion_vectors,
)
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.actions import DeletionVectorDescriptor

__all__ = ["ReplacedVector", "RowDifference", "all_but", "row_differences"]


@dataclass(frozen=True, slots=True)
class ReplacedVector:
    """One file whose vector a commit replaced.

    Attributes:
        path: The path of the file in the log.
        before: The vector of its `remove`; None for none.
        after: The vector of its `add`; None for none.
        num_rows: The number of rows in the file, deleted ones included.
    """

    path: str
    before: DeletionVectorDescriptor | None
    after: DeletionVectorDescriptor | None
    num_rows: int


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Positions in one file, from 0: the rows that were deleted, and those that were restored."""

    deleted: BitMap64
    restored: BitMap64


def row_differences(
    replaced: Sequence[ReplacedVector], paths: DataPaths, access: DataAccess | None
) -> tuple[RowDifference, ...]:
    """Return the rows that each replacement deleted and restored, in order.

    Raises:
        TableError: A vector is gone or damaged; see `read_deletion_vectors` and
            `ensure_rows_exist`.
    """
    given = [vector for item in replaced for vector in (item.before, item.after) if vector]
    read = iter(read_deletion_vectors(given, paths, access))
    found = []
    for item in replaced:
        before = BitMap64() if item.before is None else next(read)
        after = BitMap64() if item.after is None else next(read)
        ensure_rows_exist(before | after, item.num_rows, item.path)
        found.append(RowDifference(after - before, before - after))
    return tuple(found)


def all_but(kept: BitMap64, num_rows: int) -> DeletionVectorDescriptor | None:
    """Return a vector that deletes all rows except those kept, or None if there are no others.

    Args:
        kept: The positions to keep, from 0.
        num_rows: The number of rows in the file.
    """
    others = BitMap64()
    others.add_range(0, num_rows)
    others -= kept
    return inline_vector(others) if others else None
