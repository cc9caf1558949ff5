"""Where scans take the files from: a version of a log, or a table of files."""

from __future__ import annotations

from typing import Protocol, TypeVar

import pyarrow as pa

from optimist.core.log.file_choice import FileChoice, Use

__all__ = ["FileSource", "KnownFiles"]

_Result = TypeVar("_Result")


class FileSource(Protocol):
    """Files that can be read as a whole, or in part."""

    def table(self) -> pa.Table:
        """Return all files, columns of `FILES_SCHEMA`, and keep them."""
        ...

    def whole(self) -> pa.Table | None:
        """Return all files if they are in memory, or so few that they may stay there, else None."""
        ...

    def read_chosen(self, choice: FileChoice, use: Use[_Result]) -> _Result:
        """Return what `use` makes of the chosen files, read without the others."""
        ...


class KnownFiles:
    """Files that are in memory."""

    def __init__(self, files: pa.Table) -> None:
        self._files = files

    def table(self) -> pa.Table:
        """Return all files."""
        return self._files

    def whole(self) -> pa.Table:
        """Return all files."""
        return self._files

    def read_chosen(self, choice: FileChoice, use: Use[_Result]) -> _Result:
        """Return what `use` makes of the chosen files."""
        return use(choice.of(batch) for batch in self._files.to_batches())
