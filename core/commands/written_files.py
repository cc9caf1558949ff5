"""The data files that one write has made, with Spark or without it."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.protocol.actions import AddCDCFile, AddFile

__all__ = ["WrittenFiles"]


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files of one write.

    Attributes:
        adds: The actions that add the files. Files without rows were removed already.
        num_rows: The number of rows in all files.
        changes: The actions that add change files (spec 10.11).
    """

    adds: tuple[AddFile, ...] = ()
    num_rows: int = 0
    changes: tuple[AddCDCFile, ...] = ()

    @property
    def actions(self) -> tuple[AddFile | AddCDCFile, ...]:
        """The adds, then the changes."""
        return (*self.adds, *self.changes)

    @property
    def size_bytes(self) -> int:
        """The size of all files in bytes, without change files."""
        return sum(add.size for add in self.adds)
