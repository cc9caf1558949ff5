"""The number of rows that a command changed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_ROWS", "RowCounts"]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The numbers of rows that were changed and added.

    Attributes:
        updated: Updated rows; for a MERGE those that match a source row.
        updated_by_source: Updated rows that match no source row of a MERGE.
        deleted: Deleted rows; for a MERGE those that match a source row.
        deleted_by_source: Deleted rows that match no source row of a MERGE.
        copied: Rows that were written again unchanged.
        inserted: Added rows.
        is_counted: False if whole files were removed whose row counts the log does not have.
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
        """All updated rows."""
        return self.updated + self.updated_by_source

    @property
    def all_deleted(self) -> int:
        """All deleted rows."""
        return self.deleted + self.deleted_by_source

    @property
    def num_affected(self) -> int:
        """The number of changed or added rows, or -1 if unknown, as in Delta."""
        return self.all_updated + self.all_deleted + self.inserted if self.is_counted else -1


NO_ROWS = RowCounts()
"""The counts if nothing changed, or if the command does not count."""
