"""How many rows a command changed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_ROWS", "RowCounts"]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows of the table changed, and how many were added.

    Attributes:
        updated: Rows that were updated; of a MERGE those that match.
        updated_by_source: Rows that match none of a MERGE's source and were updated.
        deleted: Rows that were deleted; of a MERGE those that match.
        deleted_by_source: Rows that match none of a MERGE's source and were deleted.
        copied: Rows that were written again as they were.
        inserted: Rows that were added.
        is_counted: False where whole files were removed, and the log does not say how many rows
            they had.
    """

    updated: int = 0
    updated_by_source: int = 0
    deleted: int = 0
    deleted_by_source: int = 0
    copied: int = 0
    inserted: int = 0
    is_counted: bool = True

    @property
    def all_updated(self) -> int:
        """Rows that were updated."""
        return self.updated + self.updated_by_source

    @property
    def all_deleted(self) -> int:
        """Rows that were deleted."""
        return self.deleted + self.deleted_by_source

    @property
    def num_affected(self) -> int:
        """Rows that were changed or added; -1 where they were not counted, as in Delta."""
        return self.all_updated + self.all_deleted + self.inserted if self.is_counted else -1


NO_ROWS = RowCounts()
"""Nothing changed, or the command does not count."""
