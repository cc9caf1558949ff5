"""`UpdateValues`: what the source's rows give to the rows that they update, by file and position.

The values wait in memory, and on this machine's disk where they are many. Those of a file are in
batches of few rows, each in the order of the positions, so that the rows of a part of a file are
found without reading all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.scratch_directory import ScratchDirectory

__all__ = ["UpdateValues"]

_HELD_BYTES = 64 << 20
"""More bytes are written to disk."""
_BATCH_ROWS = 1 << 14
_FILE = "values.arrow"


class UpdateValues:
    """Values by file and position. Several threads may add them, and later read them.

    End it with `close`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._parts: dict[str, list[tuple[int, int, int]]] = {}
        self._num_batches = 0
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._directory: ScratchDirectory | None = None
        self._sink: Any = None
        self._writer: Any = None
        self._reader: Any = None

    def add(self, file: str, rows: pa.Table) -> None:
        """Add values for rows of a file.

        Args:
            file: The log's name for the file.
            rows: The position of each row, in rising order, and the number of its clause; then the
                source's columns.

        Raises:
            StorageError: The disk is full, or failed.
        """
        with self._lock:
            for batch in rows.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS):
                first, last = batch.column(0)[0].as_py(), batch.column(0)[-1].as_py()
                self._parts.setdefault(file, []).append((first, last, self._num_batches))
                self._num_batches += 1
                self._keep(batch)

    def at(self, file: str, positions: pa.Array) -> pa.Table:
        """Return the source's columns for rows of a file, which all have values.

        Args:
            file: The log's name for the file.
            positions: The positions of the rows, in rising order; at least one.

        Raises:
            StorageError: The disk is full, or failed.
        """
        first, last = positions[0].as_py(), positions[-1].as_py()
        found = [
            self._batch(number)
            for low, high, number in self._parts[file]
            if low <= last and high >= first
        ]
        rows = pa.Table.from_batches(found).combine_chunks()
        (known,) = rows.column(0).chunks
        places = pc.index_in(positions, value_set=known)
        return rows.select(range(2, rows.num_columns)).take(places)

    def parts(self, file: str, clause: int) -> Iterator[pa.Table]:
        """Yield the source's columns for the rows of a file that a clause updates, in any order."""
        for _, _, number in self._parts.get(file, ()):
            rows = pa.Table.from_batches([self._batch(number)])
            rows = rows.filter(pc.equal(rows.column(1), clause))
            yield rows.select(range(2, rows.num_columns))

    def close(self) -> None:
        """Free the memory, and remove the values from the disk."""
        self._held, self._reader = [], None
        if self._sink is not None:
            with suppress(OSError):
                self._sink.close()
        if self._directory is not None:
            self._directory.close()

    def _keep(self, batch: pa.RecordBatch) -> None:
        if self._directory is not None:
            self._write(self._directory, [batch])
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > _HELD_BYTES:
            self._directory = ScratchDirectory()
            self._write(self._directory, self._held)
            self._held = []

    def _write(self, directory: ScratchDirectory, batches: Sequence[pa.RecordBatch]) -> None:
        with directory.errors("written"):
            if self._writer is None:
                self._sink = pa.OSFile(directory.path(_FILE), "wb")
                self._writer = pa.ipc.new_file(self._sink, batches[0].schema)
            for batch in batches:
                self._writer.write_batch(batch)

    def _batch(self, number: int) -> pa.RecordBatch:
        if self._directory is None:
            return self._held[number]
        with self._lock:
            if self._reader is None:
                self._end_writing(self._directory)
            with self._directory.errors("read"):
                return self._reader.get_batch(number)

    def _end_writing(self, directory: ScratchDirectory) -> None:
        with directory.errors("written"):
            self._writer.close()
            self._sink.close()
        with directory.errors("read"):
            self._reader = pa.ipc.open_file(pa.OSFile(directory.path(_FILE)))
