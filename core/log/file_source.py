"""Where scans take the files from: a version of a log, or a table of files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa

from optimist.core.log.file_choice import FileChoice, Use
from optimist.core.values.exact_sums import exact_sum

__all__ = ["FileSource", "FileSums", "KnownFiles", "sums_of"]

_Result = TypeVar("_Result")


class FileSums(NamedTuple):
    """The number of files and the sum of their sizes."""

    num_files: int
    size_bytes: int


def sums_of(batches: Iterable[pa.RecordBatch]) -> FileSums:
    """Add up files, which need only have the column `size`."""
    num_files = size_bytes = 0
    for batch in batches:
        num_files += batch.num_rows
        size_bytes += exact_sum(batch.column("size"))
    return FileSums(num_files, size_bytes)


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

    def sums(self) -> FileSums:
        """Return the number of files and the sum of their sizes."""
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

    def sums(self) -> FileSums:
        """Return the number of files and the sum of their sizes."""
        return sums_of(self._files.to_batches())
