"""The replacement of files, or of their vectors, by DELETE, UPDATE and MERGE (spec 10.15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optimist.core.commands.marked_files import MarkedFile
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.statistics.stats_text import num_live_rows_in
from optimist.core.protocol.actions import Action, AddFile

__all__ = ["Rewrite"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The files that are removed, written instead, or given a new vector.

    Attributes:
        removed: The files that are removed.
        written: The files that replace them.
        num_matching: The number of rows that the condition matches; None if it is every row of the
            removed files, and they were not counted.
        marked: The files that stay, with fewer live rows by a new vector.
    """

    removed: tuple[AddFile, ...]
    written: WrittenFiles
    num_matching: int | None
    marked: tuple[MarkedFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no file of the table changes."""
        return not (self.removed or self.marked)

    @property
    def num_matching_rows(self) -> int | None:
        """The number of rows that the condition matches, by statistics if they were not counted.

        None if a file has no such statistics.
        """
        return num_live_rows_in(self.removed) if self.num_matching is None else self.num_matching

    @property
    def num_vectors_updated(self) -> int:
        """The number of files that had a vector and got another one."""
        return _num_vectors([file.before for file in self.marked])

    @property
    def num_vectors_removed(self) -> int:
        """The number of vectors that are gone, including those that were replaced."""
        return _num_vectors(self.removed) + self.num_vectors_updated

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """Return the removes, then the adds, then the change files."""
        removed = (*self.removed, *(file.before for file in self.marked))
        return (
            *(add.remove(now_ms) for add in removed),
            *(file.after for file in self.marked),
            *self.written.actions,
        )

    def metrics(self) -> dict[str, object]:
        """Return the history's metrics about files (spec 8.3).

        Commands add rows and time.

        A file that got another vector is neither added nor removed.
        """
        return {
            "numAddedFiles": len(self.written.adds),
            "numRemovedFiles": len(self.removed),
            "numDeletionVectorsAdded": len(self.marked),
            "numDeletionVectorsRemoved": self.num_vectors_removed,
            "numDeletionVectorsUpdated": self.num_vectors_updated,
            "numAddedChangeFiles": len(self.written.changes),
            "numRemovedBytes": sum(add.size for add in self.removed),
            "numAddedBytes": self.written.size_bytes,
        }


def _num_vectors(adds: Sequence[AddFile]) -> int:
    """Count the files with a deletion vector, which is removed with its file (spec 8.3)."""
    return sum(add.deletion_vector is not None for add in adds)
