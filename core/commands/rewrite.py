"""The replacement of files, or of their vectors, by DELETE, UPDATE and MERGE (spec 10.15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optimist.core.commands.marked_files import MarkedFile
from optimist.core.commands.removed_files import RemovedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.log.many_files import ManyFiles
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

    removed: RemovedFiles
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
        return self.removed.num_live_rows if self.num_matching is None else self.num_matching

    @property
    def num_vectors_updated(self) -> int:
        """The number of files that had a vector and got another one."""
        return _num_vectors([file.before for file in self.marked])

    @property
    def num_vectors_removed(self) -> int:
        """The number of vectors that are gone, including those that were replaced."""
        return self.removed.num_vectors + self.num_vectors_updated

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """Return the removes, then the adds, then the change files."""
        return (*self.removed.actions(now_ms), *self._other_actions(now_ms))

    def changes(self, now_ms: int) -> tuple[tuple[Action, ...], ManyFiles | None]:
        """Return `actions`, but with the removed files as columns if there are many."""
        if self.marked:  # whose rows were read, which costs far more than their values
            return self.actions(now_ms), None
        removes, files = self.removed.removes(now_ms)
        return (*removes, *self._other_actions(now_ms)), files

    def _other_actions(self, now_ms: int) -> tuple[Action, ...]:
        return (
            *(file.before.remove(now_ms) for file in self.marked),
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
            "numRemovedBytes": self.removed.size_bytes,
            "numAddedBytes": self.written.size_bytes,
        }


def _num_vectors(adds: Sequence[AddFile]) -> int:
    """Count the files with a deletion vector, which is removed with its file (spec 8.3)."""
    return sum(add.deletion_vector is not None for add in adds)
