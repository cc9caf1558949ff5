"""Files that VACUUM will delete, kept on the local disk until their number is known.

VACUUM records in the log how many files it will delete, before it deletes the first. The list may
have millions of files, so it is kept on the disk and not in memory.

Rows arrive in batches of any length, from a filtered listing or one per commit. They are returned
in pages, so that each delete request is full.
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
"""A multiple of the number of objects that a store deletes by one request."""


class DeadFiles:
    """Rows of `LISTED_SCHEMA` in a temporary file, as a context manager for one thread.

    Attributes:
        num_files: The number of files.
        size_bytes: Their sizes, summed.
        num_directories: The number of directories.
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
        """Store rows for later."""
        files = batch.filter(pc.invert(batch.column("is_directory")))
        self.num_files += files.num_rows
        self.num_directories += batch.num_rows - files.num_rows
        self.size_bytes += pc.sum(files.column("size"), min_count=0).as_py()
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._num_waiting += batch.num_rows
        if self._num_waiting >= _PAGE_ROWS:
            self._write_rows(self._num_waiting // _PAGE_ROWS * _PAGE_ROWS)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows in full pages, the last one excepted, and end the additions."""
        self._write_rows(self._num_waiting)
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)

    def _write_rows(self, num_rows: int) -> None:
        if not num_rows:
            return
        rows = pa.Table.from_batches(self._waiting, LISTED_SCHEMA).combine_chunks()
        self._writer.write_table(rows.slice(0, num_rows), max_chunksize=_PAGE_ROWS)
        self._waiting = rows.slice(num_rows).to_batches()
        self._num_waiting -= num_rows
