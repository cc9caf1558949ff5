"""Files that are to be deleted, kept aside on the local disk until their number is known.

VACUUM tells in the log how many files it is about to delete, before it deletes the first. The list
may have millions of files, so it is kept on the disk and not in memory.

What is put aside comes in batches of any length: those of a listing from which most was sifted out,
or one for each commit. It is given back in pages, so that the requests that delete it are full.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.listed_files import LISTED_SCHEMA

__all__ = ["DeadFiles"]

_PAGE_ROWS = 64_000
"""A multiple of how many objects a store deletes by one request."""


class DeadFiles:
    """Rows of `LISTED_SCHEMA` in a temporary file, as a context; for one thread.

    Attributes:
        num_files: How many files there are.
        size_bytes: Their sizes, summed.
        num_directories: How many directories there are.
    """

    def __init__(self) -> None:
        self.num_files = 0
        self.size_bytes = 0
        self.num_directories = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it has no name; see __exit__
        self._waiting: list[pa.RecordBatch] = []
        self._num_waiting = 0
        self._writer = pa.ipc.new_stream(self._file, LISTED_SCHEMA)

    def __enter__(self) -> DeadFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Put rows aside."""
        files = batch.filter(pc.invert(batch.column("is_directory")))
        self.num_files += files.num_rows
        self.num_directories += batch.num_rows - files.num_rows
        self.size_bytes += pc.sum(files.column("size"), min_count=0).as_py()
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._num_waiting += batch.num_rows
        if self._num_waiting >= _PAGE_ROWS:
            self._write(self._num_waiting // _PAGE_ROWS * _PAGE_ROWS)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in pages of equal length but for the last; afterwards none can be added."""
        self._write(self._num_waiting)
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)

    def _write(self, num_rows: int) -> None:
        if not num_rows:
            return
        rows = pa.Table.from_batches(self._waiting, LISTED_SCHEMA).combine_chunks()
        self._writer.write_table(rows.slice(0, num_rows), max_chunksize=_PAGE_ROWS)
        self._waiting = rows.slice(num_rows).to_batches()
        self._num_waiting -= num_rows
