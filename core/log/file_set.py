"""The live files of a version, or its tombstones, reconciled at first use (spec 5.6).

Writers that only append never read the files, and must not pay for them: a commit only adds its
batch of actions to those that wait. The first reader reconciles them, once. The result becomes the
base of the versions that follow.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.forking import ForkSafeLock
from optimist.core.log.file_choice import FileChoice, Use
from optimist.core.log.file_table import file_keys, last_per_key, without_keys

__all__ = ["LARGE_BATCH_ROWS", "Change", "ChosenFiles", "FileSet", "Load", "Stream"]

Result = TypeVar("Result")

Change: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]
Load: TypeAlias = Callable[[Change], tuple[pa.RecordBatch, ...]]
Stream: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]

LARGE_BATCH_ROWS = 16_384
"""From how many rows on a batch of actions is reconciled before sets take it."""

_MAX_RECENT = 64
_MAX_LARGE = 8
_MAX_BATCH_BYTES = 1 << 30
_KEPT_ROWS = 4_096


class ChosenFiles(Protocol):
    """A base outside memory of which some files can be read without the others."""

    def is_small(self) -> bool:
        """Return whether the base may stay in memory as a whole."""
        ...

    def read(self, choice: FileChoice, use: Use[Result]) -> Result:
        """Return what `use` makes of the chosen files, or those of a replacement."""
        ...


class FileSet:
    """An immutable set of logical files. Threads may share it.

    Args:
        schema: `FILES_SCHEMA` or `TOMBSTONES_SCHEMA`: the columns to keep.
        of_adds: Whether adds put files into the set and removes take them out (the live files), or
            the reverse (the tombstones).
        load: Reads the base when it is needed. It applies the given change to each batch, so that
            no batch need stay in memory unchanged. None means an empty base.
        stream: Reads the base without keeping it, and without a fallback if it is damaged.
        chosen: Reads some files of the base.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        of_adds: bool,
        load: Load | None = None,
        stream: Stream | None = None,
        chosen: ChosenFiles | None = None,
    ) -> None:
        self._schema = schema
        self._of_adds = of_adds
        # One attribute, so that a reader without the lock sees a base with its own actions.
        self._parts = (_Base(load, stream=stream, chosen=chosen).used_by(self), _NOTHING_WAITS)
        self._lock = ForkSafeLock()

    def with_actions(self, actions: pa.RecordBatch, *, are_distinct: bool = False) -> FileSet:
        """Return the set after a batch of `ACTIONS_SCHEMA`, at a cost independent of its size.

        Args:
            actions: Adds and removes in order.
            are_distinct: Whether no two of them are known to have the same key.
        """
        changed = FileSet(self._schema, of_adds=self._of_adds)
        base, waiting = self._parts
        needed = actions.select(["isAdd", *self._schema.names])
        after = waiting.with_large(needed) if are_distinct else waiting.with_batch(needed)
        changed._parts = (base.used_by(changed), after)
        return changed

    @property
    def is_resolved(self) -> bool:
        """Whether the files are in memory already, so that reading them costs nothing."""
        base, waiting = self._parts
        return not waiting and base.is_loaded

    @property
    def stays_in_memory(self) -> bool:
        """Whether the set may stay in memory although it could be read again later.

        This is true for a set that somebody has read, and for a small one. Actions that nobody has
        read would grow with the number of commits.
        """
        base, waiting = self._parts
        return base.is_loaded and waiting.num_rows <= max(_KEPT_ROWS, base.num_rows)

    @property
    def fits_in_memory(self) -> bool:
        """Whether the set is in memory already, or so small that it may stay there.

        Raises:
            TableError, LogFileNotFoundError: The base is damaged, and so is what may replace it.
        """
        chosen = self._parts[0].chosen
        return chosen is None or chosen.is_small()

    def read(self, choice: FileChoice, use: Use[Result]) -> Result:
        """Return what `use` makes of the files that a choice wants, read without the others.

        If the base turns out to be damaged, `use` is called again with the files of its
        replacement.

        Raises:
            TableError, LogFileNotFoundError: The base is damaged, and so is what may replace it.
        """
        base, waiting = self._parts
        chosen = base.chosen
        if chosen is None:
            return use(choice.of(batch) for batch in self.batches())
        merged = waiting.reconciled()
        touched = [file_keys(actions) for actions in merged]

        def reconciled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield _remove_keys(batch, file_keys(batch), touched) if touched else batch
            for chunk in self._files_entering(merged, touched):
                yield choice.of(chunk.batch)

        return chosen.read(choice, lambda batches: use(reconciled(batches)))

    def batches(self) -> tuple[pa.RecordBatch, ...]:
        """Return the reconciled files, in no order."""
        with self._lock:
            base, waiting = self._parts
            if waiting:
                base = _Base(None, self._reconcile(base, waiting)).used_by(self)
                self._parts = (base, _NOTHING_WAITS)
        return tuple(chunk.batch for chunk in base.chunks())

    def rows_in_memory(self, keys: pa.Array) -> pa.Table | None:
        """Return the files with these keys, or None if the files would have to be read first."""
        base, waiting = self._parts
        if not base.is_loaded:
            return None
        merged = waiting.reconciled()
        touched = _keys_of_each(merged, base)
        chunks = _without(_only(base.chunks(), keys), touched)
        chunks += _only(tuple(self._files_entering(merged, touched)), keys)
        return pa.Table.from_batches([chunk.batch for chunk in chunks], schema=self._schema)

    def stream(self) -> Iterator[pa.RecordBatch]:
        """Yield the reconciled files for a reader that needs them once, and keep nothing.

        Raises:
            TableError, LogFileNotFoundError: The base is damaged. `batches` may still find a
                replacement.
        """
        base, waiting = self._parts
        read = base.stream
        if read is None:
            yield from self.batches()
            return
        merged = waiting.reconciled()
        touched = [file_keys(actions) for actions in merged]
        for batch in read():
            yield _remove_keys(batch, file_keys(batch), touched) if touched else batch
        for chunk in self._files_entering(merged, touched):
            yield chunk.batch

    def table(self) -> pa.Table:
        """Return the reconciled files as one table."""
        return pa.Table.from_batches(self.batches(), schema=self._schema)

    def _reconcile(self, base: _Base, waiting: _Waiting) -> tuple[_Chunk, ...]:
        merged = waiting.reconciled()
        touched = _keys_of_each(merged, base)
        chunks = [*base.chunks_without(touched, self), *self._files_entering(merged, touched)]
        return _merge_small_chunks([chunk for chunk in chunks if chunk.batch.num_rows])

    def _files_entering(
        self, merged: Sequence[pa.RecordBatch], touched: Sequence[pa.Array]
    ) -> Iterator[_Chunk]:
        """Yield the files that each batch of actions puts into the set and later ones keep."""
        for index, actions in enumerate(merged):
            arrived = actions.column("isAdd")
            enters = arrived if self._of_adds else pc.invert(arrived)
            files = actions.select(self._schema.names)
            # As after CLONE, all files of a batch may enter: then it is not copied.
            entering = files if enters.true_count == len(enters) else files.filter(enters)
            yield from _without([_Chunk(entering)], touched[index + 1 :])


class _Chunk:
    """A batch of files, with its keys once they are needed."""

    __slots__ = ("_keys", "batch")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._keys: pa.Array | None = None

    def keys(self) -> pa.Array:
        """Return the keys of the files."""
        if self._keys is None:
            self._keys = file_keys(self.batch)
        return self._keys


def _only(chunks: Sequence[_Chunk], wanted: pa.Array) -> list[_Chunk]:
    """Return the files with these keys of each chunk."""
    return [_Chunk(chunk.batch.filter(mask)) for chunk, mask in _masks(chunks, wanted)]


def _without(chunks: Sequence[_Chunk], touched: Sequence[pa.Array]) -> list[_Chunk]:
    """Return the chunks without the files with these keys, uncopied if they have none of them."""
    if not chunks or not touched:
        return list(chunks)
    return [
        _Chunk(chunk.batch.filter(pc.invert(mask))) if mask.true_count else chunk
        for chunk, mask in _masks(chunks, pa.chunked_array(touched, pa.string()))
    ]


def _masks(
    chunks: Sequence[_Chunk], wanted: pa.Array | pa.ChunkedArray
) -> Iterator[tuple[_Chunk, pa.BooleanArray]]:
    """Yield each chunk with a mask of its files that have one of these keys.

    Arrow hashes the wanted keys once in each call, so all chunks are asked in one.
    """
    keys = pa.chunked_array([chunk.keys() for chunk in chunks], pa.string())
    if len(wanted) > len(keys):
        wanted = wanted.filter(pc.is_in(wanted, value_set=keys))
    is_wanted = pc.is_in(keys, value_set=wanted).combine_chunks()
    start = 0
    for chunk in chunks:
        length = chunk.batch.num_rows
        yield chunk, is_wanted.slice(start, length)
        start += length


class _Base:
    """Reconciled files, read when first needed, and shared by all versions built on them."""

    def __init__(
        self,
        load: Load | None,
        chunks: tuple[_Chunk, ...] = (),
        *,
        stream: Stream | None = None,
        chosen: ChosenFiles | None = None,
    ) -> None:
        self._load = load
        self._stream = stream
        self._chosen = chosen
        self._chunks = chunks
        self._lock = ForkSafeLock()
        self._users: weakref.WeakSet[FileSet] = weakref.WeakSet()

    def used_by(self, user: FileSet) -> _Base:
        """Note that a set may read this base as long as the set lives, and return the base."""
        with self._lock:
            self._users.add(user)
        return self

    @property
    def is_loaded(self) -> bool:
        return self._load is None

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no files."""
        return self.is_loaded and not self._chunks

    @property
    def stream(self) -> Stream | None:
        """The function that reads the base without keeping it, or None if it is in memory."""
        return None if self.is_loaded else self._stream

    @property
    def chosen(self) -> ChosenFiles | None:
        """Reads some files of the base, or None if it is in memory."""
        return None if self.is_loaded else self._chosen

    @property
    def num_rows(self) -> int:
        """The number of files in memory."""
        return sum(chunk.batch.num_rows for chunk in self._chunks)

    def chunks(self) -> tuple[_Chunk, ...]:
        with self._lock:
            if self._load is not None:
                self._chunks = tuple(_Chunk(batch) for batch in self._load(lambda batch: batch))
                self._load = None
            return self._chunks

    def chunks_without(self, touched: Sequence[pa.Array], user: FileSet) -> list[_Chunk]:
        """Return the chunks without the files with these keys.

        If no set other than `user` will ask again, each batch is filtered as it is read and not
        kept unchanged: a table of a million files is never in memory twice.
        """
        with self._lock:
            load, is_shared = self._load, any(other is not user for other in self._users)
        if load is not None and not is_shared:
            changed = load(lambda batch: _remove_keys(batch, file_keys(batch), touched))
            return [_Chunk(batch) for batch in changed]
        return _without(self.chunks(), touched)


class _Waiting:
    """Actions on top of a base, oldest first: the latest unchanged, the others merged.

    In a chain of small commits each commit costs almost nothing: only every `_MAX_RECENT`-th one
    merges those before it. Like the digits of a binary counter, larger batches change less often,
    so that a row is copied few times. Memory stays flat.
    """

    __slots__ = ("_merged", "_recent")

    def __init__(
        self, merged: tuple[pa.RecordBatch, ...] = (), recent: tuple[pa.RecordBatch, ...] = ()
    ) -> None:
        self._merged = merged
        self._recent = recent

    def __len__(self) -> int:
        return len(self._merged) + len(self._recent)

    @property
    def num_rows(self) -> int:
        """The number of waiting actions."""
        return sum(batch.num_rows for batch in (*self._merged, *self._recent))

    def with_batch(self, batch: pa.RecordBatch) -> _Waiting:
        recent = (*self._recent, batch)
        if len(recent) < _MAX_RECENT and batch.num_rows < LARGE_BATCH_ROWS:
            return _Waiting(self._merged, recent)
        merged = _merge_to_few(recent)
        return _Waiting(_merge_tail((*self._merged, *merged), _last_of_each_key))

    def with_large(self, batch: pa.RecordBatch) -> _Waiting:
        """Return the same with a large batch that has each key once, and is not copied."""
        merged = (*self._merged, *_merge_to_few(self._recent), batch)
        if len(merged) > _MAX_LARGE:
            merged = _merge_tail(merged, _last_of_each_key)
        return _Waiting(merged)

    def reconciled(self) -> list[pa.RecordBatch]:
        """Return few batches, with only the last row of each key within a batch."""
        if not self._recent:  # the others are reconciled already, and few
            return list(self._merged)
        return _merge_to_few((*self._merged, *self._recent))


_NOTHING_WAITS = _Waiting()


def _keys_of_each(merged: Sequence[pa.RecordBatch], base: _Base) -> list[pa.Array]:
    """Return the keys of each batch of actions, or none if there is nothing before them."""
    is_alone = len(merged) == 1 and base.is_empty
    return [] if is_alone else [file_keys(actions) for actions in merged]


def _merge_tail(
    batches: tuple[pa.RecordBatch, ...], merge: Callable[..., pa.RecordBatch]
) -> tuple[pa.RecordBatch, ...]:
    """Merge batches at the end until each is more than twice as long as the next.

    At most logarithmically many batches remain, except those too large to be joined in one.
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


def _merge_to_few(batches: tuple[pa.RecordBatch, ...]) -> list[pa.RecordBatch]:
    groups: list[list[pa.RecordBatch]] = []
    size = 0
    for batch in batches:
        size += batch.nbytes
        if not groups or size >= _MAX_BATCH_BYTES:
            groups.append([])
            size = batch.nbytes
        groups[-1].append(batch)
    return [_last_of_each_key(tuple(group)) for group in groups]


def _fits_one_batch(batches: list[pa.RecordBatch]) -> bool:
    # Text in one Arrow array has 32-bit offsets: 2 GiB at most.
    return int(sum(batch.nbytes for batch in batches)) < _MAX_BATCH_BYTES


def _merge_small_chunks(chunks: list[_Chunk]) -> tuple[_Chunk, ...]:
    """Merge small batches at the end as in `_merge_tail`, and never copy large ones."""
    large = len(chunks)
    while large and chunks[large - 1].batch.num_rows < LARGE_BATCH_ROWS:
        large -= 1
    small = _merge_tail(tuple(chunk.batch for chunk in chunks[large:]), _concat)
    untouched = {id(chunk.batch): chunk for chunk in chunks}
    return (*chunks[:large], *(untouched.get(id(batch)) or _Chunk(batch) for batch in small))


def _remove_keys(
    batch: pa.RecordBatch, keys: pa.Array, touched: Sequence[pa.Array]
) -> pa.RecordBatch:
    for gone in touched:
        batch, keys = without_keys(batch, keys, gone)
    return batch


def _last_of_each_key(batches: tuple[pa.RecordBatch, ...]) -> pa.RecordBatch:
    return last_per_key(_concat(batches))


def _concat(batches: tuple[pa.RecordBatch, ...]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches)
    columns = [pa.concat_arrays(column.chunks) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
