"""The chosen files of one Parquet file of a checkpoint, with late materialisation (spec 5.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.column_cache import ColumnCache
from optimist.core.log.file_choice import FileChoice, Stage
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.group_bounds import GroupBounds
from optimist.core.log.limits import ensure_bounded
from optimist.core.log.parquet_actions import AddReader

__all__ = ["ChosenAdds"]

_LARGEST_SHARE = 8
"""A row group's columns are kept if they take at most this fraction of the cache."""


class ChosenAdds:
    """The adds of one open file that a choice wants.

    Args:
        path: The file's path, for the cache.
        file: The file.
        size_bytes: Its size in the store.
        choice: Which adds are wanted.
        cache: Keeps the columns that decide.
        explaining: Turns errors of reading a row group, or the footer, into one that names it.
    """

    def __init__(
        self,
        path: str,
        file: CheckpointFile,
        size_bytes: int,
        *,
        choice: FileChoice,
        cache: ColumnCache,
        explaining: Callable[[int | None], AbstractContextManager[None]],
    ) -> None:
        self._path = path
        self._file = file
        self._size_bytes = size_bytes
        self._choice = choice
        self._cache = cache
        self._explaining = explaining
        with explaining(None):
            self._adds = AddReader(file, size_bytes)

    @property
    def num_adds(self) -> int | None:
        """The number of adds in the file, wanted or not, if the footer shows it."""
        return self._adds.num_adds

    @property
    def most_adds(self) -> int:
        """The same number, or the rows of all row groups with adds if the footer leaves it open."""
        if self.num_adds is not None:
            return self.num_adds
        metadata = self._file.metadata
        return sum(metadata.row_group(group).num_rows for group in self._adds.groups)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the chosen adds, in the choice's columns."""
        for group in self._groups():
            names: list[str] = []
            kept: pa.BooleanArray | None = None
            for stage in self._choice.stages:
                names += stage.columns
                kept = self._kept_by(stage, group, names, kept)
                if not kept.true_count:
                    break
            else:
                yield from self._rows(group, kept)

    def _groups(self) -> Sequence[int]:
        groups = self._adds.groups
        if self._choice.may_hold is None or not groups:
            return groups
        with self._explaining(None):
            bounds = GroupBounds(self._file, groups)
        may_hold = self._choice.may_hold(bounds)
        return [group for group, may in zip(groups, may_hold.to_pylist(), strict=True) if may]

    def _kept_by(
        self, stage: Stage, group: int, names: Sequence[str], kept: pa.BooleanArray | None
    ) -> pa.BooleanArray:
        """Return which rows of the group a stage leaves, of those that are left before it."""
        masks, start = [], 0
        for batch in self._deciding(group, names):
            before = None if kept is None else kept.slice(start, batch.num_rows)
            masks.append(_kept_of(stage, pa.Table.from_batches([batch]), before))
            start += batch.num_rows
        return pa.concat_arrays(masks) if masks else pa.array([], pa.bool_())

    def _deciding(self, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of a row group, from the cache or for it."""
        schema = pa.schema([FILES_SCHEMA.field(name) for name in names])
        keys = {name: (self._path, group, name) for name in names}
        kept = {name: self._cache.get(key) for name, key in keys.items()}
        missing = pa.schema([field for field in schema if kept[field.name] is None])
        if not missing.names:
            yield pa.RecordBatch.from_arrays([kept[name] for name in names], schema=schema)
            return
        collected: list[pa.RecordBatch] | None = []
        start = 0
        for batch in self._read(group, missing):
            columns = [
                batch.column(name) if column is None else column.slice(start, batch.num_rows)
                for name, column in kept.items()
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            start += batch.num_rows
            if collected is not None:
                collected.append(batch)
                size = sum(each.nbytes for each in collected)
                collected = collected if size <= self._cache.max_bytes // _LARGEST_SHARE else None
        if collected:
            whole = pa.concat_batches(collected)
            for name in missing.names:
                self._cache.put(keys[name], whole.column(name))

    def _rows(self, group: int, kept: pa.BooleanArray | None) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in self._read(group, self._choice.schema):
            mask = None if kept is None else kept.slice(start, batch.num_rows)
            start += batch.num_rows
            if mask is not None and mask.true_count < batch.num_rows:
                batch = batch.filter(mask)
            if batch.num_rows:
                yield batch

    def _read(self, group: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield columns of a row group. Errors name it, but not those of whoever consumes them."""
        num_bytes = 0
        with self._explaining(group):
            for batch in self._adds.batches(schema, [group]):
                num_bytes += batch.nbytes
                ensure_bounded(num_bytes, self._size_bytes)
                yield batch


def _kept_of(stage: Stage, files: pa.Table, before: pa.BooleanArray | None) -> pa.BooleanArray:
    if before is None or before.true_count == len(before):
        return stage.keep(files)
    if not before.true_count:
        return before
    return pc.replace_with_mask(before, before, stage.keep(files.filter(before)))
