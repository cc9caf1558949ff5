"""The live files of a version, or its tombstones, reconciled at first use (spec 5.6).

Writers that only append never look at the files, and must not pay for them: a commit only puts its
batch beside those that wait. Whoever looks first pays once; the result becomes the base of all
later versions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import file_keys, last_per_key, without_keys

__all__ = ["FileSet"]

_LARGE_BATCH_ROWS = 131_072
_MAX_BATCH_BYTES = 1 << 30


class FileSet:
    """An immutable set of logical files; threads may share it.

    Args:
        schema: `FILES_SCHEMA` or `TOMBSTONES_SCHEMA`: the columns that are kept.
        of_adds: Whether adds put files into the set and removes take them out (the live files), or
            the other way round (the tombstones).
        load: Reads the base; called once, when it is needed. None means an empty base.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        of_adds: bool,
        load: Callable[[], tuple[pa.RecordBatch, ...]] | None = None,
    ) -> None:
        self._schema = schema
        self._of_adds = of_adds
        # One attribute, so that a reader without the lock sees a base and the actions that belong
        # to it.
        self._parts = (_Base(load), _NO_BATCHES)
        self._mutex = threading.Lock()

    def with_actions(self, actions: pa.RecordBatch) -> FileSet:
        """The set after a batch of `ACTIONS_SCHEMA`; costs the same for a set of any size."""
        changed = FileSet(self._schema, of_adds=self._of_adds)
        base, waiting = self._parts
        needed = actions.select(["isAdd", *self._schema.names])
        changed._parts = (base, _merged_tail((*waiting, needed), _last_of_each_key))
        return changed

    @property
    def is_resolved(self) -> bool:
        """Whether the files are in memory already, so that looking at them costs nothing."""
        base, waiting = self._parts
        return not waiting and base.is_loaded

    def batches(self) -> tuple[pa.RecordBatch, ...]:
        """The files, reconciled; the order means nothing."""
        with self._mutex:
            base, waiting = self._parts
            if waiting:
                base = _Base(None, self._reconciled(base, waiting))
                self._parts = (base, _NO_BATCHES)
        return tuple(chunk.batch for chunk in base.chunks())

    def table(self) -> pa.Table:
        """The files, reconciled, as one table."""
        return pa.Table.from_batches(self.batches(), schema=self._schema)

    def _reconciled(self, base: _Base, waiting: tuple[pa.RecordBatch, ...]) -> tuple[_Chunk, ...]:
        chunks = list(base.chunks())
        for actions in _merged_all(waiting):
            touched = file_keys(actions)
            arrived = actions.column("isAdd")
            entering = actions.filter(arrived if self._of_adds else pc.invert(arrived))
            kept = (chunk.without(touched) for chunk in chunks)
            added = _Chunk(entering.select(self._schema.names))
            chunks = [chunk for chunk in (*kept, added) if chunk.batch.num_rows]
        return _with_merged_tail(chunks)


class _Chunk:
    """A batch of files and, once somebody has asked, its keys."""

    __slots__ = ("_keys", "batch")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._keys: pa.Array | None = None

    def without(self, gone: pa.Array) -> _Chunk:
        """The chunk less the files with these keys; itself, uncopied, if it has none of them."""
        if self._keys is None:
            self._keys = file_keys(self.batch)
        remaining = without_keys(self.batch, self._keys, gone)
        return self if remaining is self.batch else _Chunk(remaining)


class _Base:
    """Reconciled files; read when first needed, and shared by all versions built on them."""

    def __init__(
        self,
        load: Callable[[], tuple[pa.RecordBatch, ...]] | None,
        chunks: tuple[_Chunk, ...] = (),
    ) -> None:
        self._load = load
        self._chunks = chunks
        self._mutex = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        return self._load is None

    def chunks(self) -> tuple[_Chunk, ...]:
        with self._mutex:
            if self._load is not None:
                self._chunks = tuple(_Chunk(batch) for batch in self._load())
                self._load = None
            return self._chunks


_NO_BATCHES: tuple[pa.RecordBatch, ...] = ()


def _merged_tail(
    batches: tuple[pa.RecordBatch, ...], merge: Callable[..., pa.RecordBatch]
) -> tuple[pa.RecordBatch, ...]:
    """Merge batches at the end until each is more than twice as long as the next.

    So there are at most logarithmically many, and each row is copied as seldom as in a binary
    counter: a chain of small commits costs next to nothing each, and memory stays flat.
    """
    merged = list(batches)
    while (
        len(merged) > 1
        and merged[-2].num_rows <= 2 * merged[-1].num_rows
        and _fits_one_batch(merged[-2:])
    ):
        last = merged.pop()
        merged[-1] = merge((merged[-1], last))
    return tuple(merged)


def _merged_all(batches: tuple[pa.RecordBatch, ...]) -> list[pa.RecordBatch]:
    """As few batches as can be, each row the last of its key in its batch."""
    merged = [batches[0]]
    for batch in batches[1:]:
        if _fits_one_batch([merged[-1], batch]):
            merged[-1] = _concat((merged[-1], batch))
        else:
            merged.append(batch)
    return [last_per_key(batch) for batch in merged]


def _fits_one_batch(batches: list[pa.RecordBatch]) -> bool:
    # Text in one Arrow array is addressed by 32-bit offsets: 2 GiB at most.
    return int(sum(batch.nbytes for batch in batches)) < _MAX_BATCH_BYTES


def _with_merged_tail(chunks: list[_Chunk]) -> tuple[_Chunk, ...]:
    """Small batches at the end merged as in `_merged_tail`; large ones are never copied."""
    large = len(chunks)
    while large and chunks[large - 1].batch.num_rows < _LARGE_BATCH_ROWS:
        large -= 1
    small = _merged_tail(tuple(chunk.batch for chunk in chunks[large:]), _concat)
    untouched = {id(chunk.batch): chunk for chunk in chunks}
    return (*chunks[:large], *(untouched.get(id(batch)) or _Chunk(batch) for batch in small))


def _last_of_each_key(batches: tuple[pa.RecordBatch, ...]) -> pa.RecordBatch:
    return last_per_key(_concat(batches))


def _concat(batches: tuple[pa.RecordBatch, ...]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches)
    columns = [pa.concat_arrays(column.chunks) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
