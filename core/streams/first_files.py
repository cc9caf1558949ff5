"""The files of the version that a stream reads first, in the order of its offsets (spec 11.2).

They are sorted by (modification time, path). However many they are, memory holds a part of them:
the sorted files are in a temporary file of this machine, of which a batch reads its own blocks.
"""

from __future__ import annotations

import io
import mmap
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log_upkeep.external_sort import ExternalSort, filled
from optimist.core.snapshot import Snapshot
from optimist.core.streams.indexed_files import Capacity, IndexedFiles

__all__ = ["FirstFiles"]

_BLOCK_ROWS = 4_096
_INDEX = pa.field("index", pa.int64())


class _Block(NamedTuple):
    """What is known of a block that is not in memory."""

    last_index: int
    num_files: int
    size_bytes: int


class FirstFiles:
    """The files of one version with their indexes. For one thread at a time.

    Args:
        data: The blocks, as an Arrow file with the columns of `FILES_SCHEMA` and the index.
        blocks: What is known of each.
    """

    def __init__(self, data: pa.Buffer, blocks: Sequence[_Block]) -> None:
        self._reader = pa.ipc.open_file(data)
        self._blocks = blocks

    @classmethod
    def of(cls, snapshot: Snapshot, exclude_regex: str | None) -> FirstFiles:
        """Sort the files of a version.

        Files with a matching path are counted but left out.
        """
        return snapshot.read_columns(
            FILES_SCHEMA.names, partial(_sorted, exclude_regex=exclude_regex)
        )

    def between(self, after: int, upto: int | None = None) -> IndexedFiles:
        """Return the files whose index is above `after` and, if given, not above `upto`."""
        found = []
        for block in self.after(after):
            found.append(block.between(after, upto))
            if upto is not None and len(found[-1]) < len(block):
                break
        return IndexedFiles.joined(found)

    def after(self, index: int) -> Iterator[IndexedFiles]:
        """Yield the files whose index is above this one, in blocks."""
        for number in range(self._first_after(index), len(self._blocks)):
            yield self._read(number).between(index)

    def last_in(self, capacity: Capacity, after: int) -> int | None:
        """Return the index of the last file that a batch takes, or None if it takes all.

        Args:
            capacity: The room of the batch.
            after: The index after which it begins.
        """
        last = after
        for some in self.after(after):
            taken = capacity.take(some)
            if taken:
                last = some.indexes[taken - 1].as_py()
            if taken < len(some):
                return last
        return None

    def sums_after(self, index: int) -> tuple[int, int]:
        """Return the number of the files whose index is above this one, and their bytes."""
        first = self._first_after(index)
        rest = self._blocks[first + 1 :]
        num_files = sum(block.num_files for block in rest)
        size_bytes = sum(block.size_bytes for block in rest)
        if first < len(self._blocks):
            begun = self._read(first).between(index)
            num_files, size_bytes = num_files + len(begun), size_bytes + begun.size_bytes
        return num_files, size_bytes

    def _first_after(self, index: int) -> int:
        return bisect_right([block.last_index for block in self._blocks], index)

    def _read(self, number: int) -> IndexedFiles:
        rows = self._reader.get_batch(number)
        files = pa.Table.from_batches([rows.select(FILES_SCHEMA.names)])
        return IndexedFiles(files, rows.column(_INDEX.name))


def _sorted(batches: Iterator[pa.RecordBatch], exclude_regex: str | None) -> FirstFiles:
    with ExternalSort(lambda rows: [rows.column("modificationTime"), rows.column("path")]) as sort:
        for batch in batches:
            sort.add(batch)
        if not sort.is_on_disk:
            sink = io.BytesIO()
            blocks = _write_blocks(sort, sink, exclude_regex)
            return FirstFiles(pa.py_buffer(sink.getvalue()), blocks)
        with tempfile.TemporaryFile(prefix="optimist-") as file:
            blocks = _write_blocks(sort, file, exclude_regex)
            file.flush()
            # A mapping needs no open file, and a child process can read it, too.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return FirstFiles(pa.py_buffer(mapped), blocks)


def _write_blocks(sort: ExternalSort, file: BinaryIO, exclude_regex: str | None) -> list[_Block]:
    blocks: list[_Block] = []
    packed = pa.ipc.IpcWriteOptions(compression="lz4")
    num_before = 0
    with pa.ipc.new_file(file, FILES_SCHEMA.append(_INDEX), options=packed) as writer:
        for rows in filled(sort.batches(), _BLOCK_ROWS):
            kept = IndexedFiles.of(pa.Table.from_batches([rows]), exclude_regex, num_before)
            num_before += rows.num_rows
            if not len(kept):
                continue
            blocks.append(_Block(kept.indexes[-1].as_py(), len(kept), kept.size_bytes))
            writer.write_table(kept.files.append_column(_INDEX, kept.indexes))
    return blocks
