"""Replacing files by others: what DELETE and UPDATE do to a table (spec 10.15)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.commands.rewritable_files import num_records, num_vectors
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.protocol.actions import Action, AddFile

__all__ = ["Rewrite"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The files that are removed, and those written in their place.

    Attributes:
        removed: The files that are removed.
        written: The files that take their place.
        num_matching: How many rows the condition is true for; None if that is every row of the
            removed files, and they were not counted.
        scan_ms: How long the search for the files took.
        rewrite_ms: How long the writing took.
    """

    removed: tuple[AddFile, ...]
    written: WrittenFiles
    num_matching: int | None
    scan_ms: int
    rewrite_ms: int

    @property
    def num_matching_rows(self) -> int | None:
        """How many rows the condition is true for, by statistics where they were not counted.

        None if a file has no such statistics.
        """
        return num_records(self.removed) if self.num_matching is None else self.num_matching

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """The removes, then the adds."""
        return (*(add.remove(now_ms) for add in self.removed), *self.written.adds)

    def metrics(self, elapsed_ms: int) -> dict[str, object]:
        """The history's metrics about files (spec 8.3); each command adds its own about rows."""
        return {
            "numAddedFiles": len(self.written.adds),
            "numRemovedFiles": len(self.removed),
            "numDeletionVectorsAdded": 0,
            "numDeletionVectorsRemoved": num_vectors(self.removed),
            "numDeletionVectorsUpdated": 0,
            "numAddedChangeFiles": 0,
            "executionTimeMs": elapsed_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
            "numRemovedBytes": sum(add.size for add in self.removed),
            "numAddedBytes": self.written.size_bytes,
        }
