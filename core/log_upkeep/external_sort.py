"""Sorting and merging of more rows than memory holds, as Arrow batches (spec 5.8).

Rows are sorted in runs of bounded size. If there are several runs, they go to a temporary file of
this machine in small blocks, and the merge keeps only the blocks that it is at. An error of the
order costs readers time and never a row: each row that comes in goes out once.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "ExternalSort",
    "KeysOf",
    "filled",
    "merged",
    "regrouped",
    "sorted_batch",
    "sorted_rows",
]

KeysOf: TypeAlias = Callable[[pa.RecordBatch], Sequence[pa.Array]]
"""Returns the columns by which the rows of a batch are sorted, the most important one first."""
_Item = TypeVar("_Item")
_Place: TypeAlias = tuple[tuple[int, Any], ...]

_RUN_ROWS = 32_768
_RUN_BYTES = 48 << 20
_BLOCK_ROWS = 256
_BLOCK_BYTES = 512 << 10
_POOL_BLOCKS = 96
_BUFFER_BYTES = 1 << 20
"""Arrow writes each column of a block by itself: many small writes are joined."""
_FIRST, _ODD, _NULL = 0, 1, 2


class ExternalSort:
    """Sorts the rows of many batches. As a context manager it removes its temporary file.

    Args:
        keys: The columns to sort by.
    """

    def __init__(self, keys: KeysOf) -> None:
        self._keys = keys
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._file: Any = None
        self._sink: pa.NativeFile | None = None
        self._writer: pa.RecordBatchFileWriter | None = None
        self._blocks: list[tuple[_Place, int]] = []

    def __enter__(self) -> ExternalSort:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_writer()
        if self._file is not None:
            self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in more rows."""
        for part in _parts(batch, _RUN_ROWS, _RUN_BYTES):
            if self._waiting and (
                self._rows + part.num_rows > _RUN_ROWS or self._bytes + part.nbytes > _RUN_BYTES
            ):
                self._spill(self._take_run())
            self._waiting.append(part)
            self._rows += part.num_rows
            self._bytes += part.nbytes

    @property
    def is_on_disk(self) -> bool:
        """Whether the rows so far are too many to stay in memory."""
        return self._writer is not None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order. Call it once, after the last `add`."""
        if self._writer is None:
            if self._waiting:
                yield self._take_run()
            return
        if self._waiting:
            self._spill(self._take_run())
        self._close_writer()
        self._file.seek(0)
        alone = pa.ipc.IpcReadOptions(use_threads=False)
        with pa.ipc.open_file(self._file, options=alone) as reader:
            yield from self._merge_blocks(reader)

    def _take_run(self) -> pa.RecordBatch:
        whole = _joined(self._waiting)
        # Let go before the rows are copied once more.
        self._waiting, self._rows, self._bytes = [], 0, 0
        return _in_order(whole, self._keys)

    def _spill(self, run: pa.RecordBatch) -> None:
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="optimist-")  # noqa: SIM115 - see __exit__
            # Blocks are small: to hand their columns to threads costs more than to pack them.
            packed = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
            self._sink = pa.output_stream(self._file, buffer_size=_BUFFER_BYTES)
            self._writer = pa.ipc.new_file(self._sink, run.schema, options=packed)
        keys = self._keys(run)
        start = 0
        for block in _parts(run, _BLOCK_ROWS, _BLOCK_BYTES):
            self._blocks.append((_place(keys, start), len(self._blocks)))
            self._writer.write_batch(block)
            start += block.num_rows
        pa.default_memory_pool().release_unused()

    def _close_writer(self) -> None:
        if self._writer is not None and self._sink is not None:
            self._writer.close()
            self._sink.flush()

    def _merge_blocks(self, reader: pa.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
        """Read the blocks by their first rows: rows before the next block's first are final."""
        order = sorted(self._blocks)
        pool: list[pa.RecordBatch] = []
        for start in range(0, len(order), _POOL_BLOCKS):
            pool += [reader.get_batch(index) for _, index in order[start : start + _POOL_BLOCKS]]
            whole = _joined(pool)
            pool = []
            rows = _in_order(whole, self._keys)
            del whole
            pa.default_memory_pool().release_unused()  # blocks of all sizes come and go
            following = order[start + _POOL_BLOCKS : start + _POOL_BLOCKS + 1]
            end = rows.num_rows
            if following and following[0][0]:
                end = _rows_up_to(self._keys(rows), following[0][0], 0)
            if end < rows.num_rows:
                pool = [rows.slice(end)]
            if end:
                yield rows.slice(0, end)


def sorted_rows(
    rows: Iterable[pa.RecordBatch], keys: KeysOf, group_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows in the order of their keys, as row groups, however many they are."""
    with ExternalSort(keys) as sort:
        for batch in rows:
            sort.add(batch)
        yield from filled(sort.batches(), group_rows)


def sorted_batch(batches: Sequence[pa.RecordBatch], keys: KeysOf) -> pa.RecordBatch:
    """Return the rows of some batches as one sorted batch."""
    return _in_order(_joined(batches), keys)


def _in_order(whole: pa.RecordBatch, keys: KeysOf) -> pa.RecordBatch:
    columns = keys(whole)
    if not columns:
        return whole
    names = [str(number) for number in range(len(columns))]
    order = [(name, "ascending") for name in names]
    indices = pc.sort_indices(pa.RecordBatch.from_arrays(columns, names=names), sort_keys=order)
    return whole.take(indices)


def merged(
    old: Iterator[pa.RecordBatch], new: pa.RecordBatch, keys: KeysOf
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted batches, with those of one sorted batch put where they belong."""
    new_keys = keys(new)
    begin = 0
    for batch in old:
        if new_keys and begin < new.num_rows and batch.num_rows:
            end = _rows_up_to(new_keys, _place(keys(batch), batch.num_rows - 1), begin)
            if end > begin:
                yield sorted_batch([batch, new.slice(begin, end - begin)], keys)
                begin = end
                continue
        yield batch
    if begin < new.num_rows:
        yield new.slice(begin)


def filled(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `most` rows, and the rest in a last one."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= most:
            whole = _joined(waiting)
            left = rows % most
            # Let go of the batches, which may be parts of larger ones, before others work.
            waiting = [whole.slice(rows - left)] if left else []
            for start in range(0, rows - most + 1, most):
                yield whole.slice(start, most)
            rows = left
    if rows:
        yield _joined(waiting)


def regrouped(items: Iterable[_Item], most: int) -> Iterator[_Item]:
    """Yield the same rows in batches of `most` rows at most, and at least half as many if possible.

    A batch that has such a size already is not copied. Row groups that are no batches are yielded
    as they come, each after the rows before it.
    """
    waiting: list[Any] = []
    rows = 0
    for item in items:
        if isinstance(item, pa.RecordBatch):
            waiting.append(item)
            rows += item.num_rows
            if 2 * rows < most:
                continue
        if rows:
            yield from _even_parts(waiting, most)
            waiting, rows = [], 0
        if not isinstance(item, pa.RecordBatch):
            yield item
    if rows:
        yield from _even_parts(waiting, most)


def _even_parts(batches: Sequence[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    whole = _joined(batches)
    count = -(-whole.num_rows // most)
    size = -(-whole.num_rows // count)
    for start in range(0, whole.num_rows, size):
        yield whole.slice(start, size)


def _parts(batch: pa.RecordBatch, most: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in parts of at most `most` rows and, as rows are on average, so many bytes."""
    fitting = most_bytes * batch.num_rows // max(batch.nbytes, 1)
    size = max(1, min(most, fitting))
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _rows_up_to(keys: Sequence[pa.Array], place: _Place, begin: int) -> int:
    """Return how many of the sorted rows are not behind a place, from the row `begin` on."""
    count = len(keys[0]) if keys else 0
    return bisect_right(
        range(count), place, lo=min(begin, count), key=lambda row: _place(keys, row)
    )


def _place(keys: Sequence[pa.Array], row: int) -> _Place:
    """Return what compares like the row in Arrow's order: values, then NaN, then null."""
    return tuple(_comparable(column[row]) for column in keys)


def _comparable(scalar: pa.Scalar) -> tuple[int, Any]:
    if not scalar.is_valid:
        return _NULL, 0
    kind = scalar.type
    if pa.types.is_temporal(kind):
        return _FIRST, scalar.value  # Python's own times end in the year 9999
    value = scalar.as_py()
    return (_ODD, 0) if value != value else (_FIRST, value)  # only NaN differs from itself
