"""The checkpoint after a RESTORE or CLONE, with typed columns that another checkpoint has (5.8).

Such a commit takes over all files of a version, with their statistics. To parse these and to sort
the files takes most of the time of a checkpoint, and the checkpoint of that version has both done.

Nothing is believed of the other checkpoint but that its typed columns belong to the texts beside
them, as the next checkpoint of its own table does. The two lists are read side by side, and in each
row the texts must be the same. Else this way is given up, and all texts are parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import pyarrow as pa

from optimist.core.errors import StorageError
from optimist.core.log.limits import LogLimits
from optimist.core.log.many_files import FilesOrigin
from optimist.core.log.typed_rows import OpenAdds, TypedFile, not_continued
from optimist.core.log_upkeep.base_checkpoint import (
    Changes,
    changes_since_checkpoint,
    one_batch,
    sorted_base,
)
from optimist.core.log_upkeep.checkpoint_layout import Layout
from optimist.core.log_upkeep.external_sort import merged, regrouped, sorted_batch

__all__ = ["taken_rows"]

_TEXTS = ("stats", "partitionValues")
"""What the typed columns are made from."""


def taken_rows(
    files: pa.Table, origin: FilesOrigin, layout: Layout, limits: LogLimits, most: int
) -> Iterator[pa.RecordBatch] | None:
    """Return a version's files as row groups of a layout, or None if they must be parsed.

    Args:
        files: The live files of the version, columns of `FILES_SCHEMA`.
        origin: Where the version has all of its files from.
        layout: The layout of the rows.
        limits: The most that is read of a log.
        most: The most rows of a row group.

    Raises:
        TableError: The log of the origin is damaged or can't be read. The iterator raises the same,
            or an error of the kind `OPTIMIST_MALFORMED_CHECKPOINT` if the texts differ.
    """
    if not _is_of_texts_alone(layout):
        return None
    with _as_table_error(origin.segment.log_path):
        base = sorted_base(origin.store, origin.segment, layout, limits)
        if base is None:
            return None
        changes = changes_since_checkpoint(origin.store, origin.segment, limits)
    return None if changes is None else _Taken(files, base, changes, layout).groups(most)


def _is_of_texts_alone(layout: Layout) -> bool:
    """Return whether typed columns follow from the texts, in whatever session they were made."""
    has_times = any(str(field.data_type) == "timestamp" for field in layout.structs.partitions)
    return bool(layout.structs.fields) and "stats" in layout.plain_schema.names and not has_times


@contextmanager
def _as_table_error(path: str) -> Iterator[None]:
    """Say of a store that fails what is said of a damaged file: the texts are parsed instead."""
    try:
        yield
    except StorageError as error:
        raise not_continued(path, error) from error


class _Taken:
    """The files of a version beside the rows of another checkpoint, in the same order."""

    def __init__(self, files: pa.Table, base: TypedFile, changes: Changes, layout: Layout) -> None:
        self._files = files
        self._base = base
        self._changes = changes
        self._layout = layout

    def groups(self, most: int) -> Iterator[pa.RecordBatch]:
        """Yield the row groups; files that came late are parsed, and wait in the last group."""
        path, schema = self._base.path, self._layout.add_schema
        with _as_table_error(path), self._base.opened(schema, None) as base:
            last = base.groups[-1:]
            if last and 2 * last[0][1] >= most:
                last = []
            body = base.groups[: len(base.groups) - len(last)]
            num_late = self._changes.added.num_rows
            num_late += sum(rows.num_rows for rows in self._held(base, last))
            num_first = self._files.num_rows - num_late
            late = map(self._layout.rows, self._files.slice(max(num_first, 0)).to_batches())
            rows = self._typed(base, body, num_first)
            if 2 * num_late < most:
                rows = chain(rows, late)
            else:
                rows = merged(rows, sorted_batch(list(late), self._layout.keys), self._layout.keys)
            yield from regrouped(rows, most)

    def _typed(
        self, base: OpenAdds, groups: list[tuple[int, int]], num_files: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield so many files with the typed columns of the other checkpoint's rows."""
        plain = self._layout.plain_schema.names
        done = 0
        for theirs in self._held(base, groups):
            mine = one_batch(self._files.slice(done, theirs.num_rows))
            done += theirs.num_rows
            is_same = all(mine.column(name).equals(theirs.column(name)) for name in _TEXTS)
            if done > num_files or not is_same:
                raise not_continued(self._base.path, "the files taken from it have other texts")
            columns = [
                mine.column(name) if name in plain else theirs.column(name)
                for name in self._layout.add_schema.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self._layout.add_schema)
        if done != num_files:
            raise not_continued(self._base.path, "it has not as many files as were taken")

    def _held(self, base: OpenAdds, groups: list[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        for number, _ in groups:
            for rows in base.rows(number):
                yield self._changes.without_touched(rows)
