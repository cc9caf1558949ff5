"""The checkpoint after a RESTORE or CLONE, with typed columns that another checkpoint has (5.8).

Such a commit takes over all files of a version, with their statistics. To parse these and to sort
the files takes most of the time of a checkpoint, and the checkpoint of that version has both done.

Nothing is believed of the other checkpoint but that its typed columns belong to the texts beside
them, as the next checkpoint of its own table does. The two lists are read side by side, and in each
row the texts must be the same. Else this way is given up, and all texts are parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, takewhile

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
from optimist.core.log_upkeep.external_sort import (
    merged,
    regrouped,
    sorted_batch,
    sorted_rows,
)
from optimist.core.log_upkeep.sidecar_plan import KnownSidecar, known_sidecars

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
    path = origin.segment.log_path
    with _as_table_error(path):
        base = sorted_base(origin.store, origin.segment, layout, limits)
        sidecars = []
        if base is None:
            sidecars = known_sidecars(origin.store, origin.segment, layout, limits)
            if not sidecars:
                return None
        changes = changes_since_checkpoint(origin.store, origin.segment, limits)
    if changes is None:
        return None
    taken = _Taken(files, path, changes, layout, most)
    return taken.groups_of_sidecars(sidecars) if base is None else taken.groups_of_file(base)


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
    """The files of a version beside the rows of another checkpoint, in the same order.

    Args:
        files: The files, columns of `FILES_SCHEMA`.
        path: The log of the other checkpoint.
        changes: What the commits after it have changed.
        layout: The layout of the rows.
        most: The most rows of a row group.
    """

    def __init__(
        self, files: pa.Table, path: str, changes: Changes, layout: Layout, most: int
    ) -> None:
        self._files = files
        self._path = path
        self._changes = changes
        self._layout = layout
        self._most = most

    def groups_of_file(self, file: TypedFile) -> Iterator[pa.RecordBatch]:
        """Yield the row groups; files that came late are parsed, and wait in the last group."""
        schema = self._layout.add_schema
        with _as_table_error(file.path), file.opened(schema, None) as base:
            last = base.groups[-1:]
            if last and 2 * last[0][1] >= self._most:
                last = []
            body = base.groups[: len(base.groups) - len(last)]
            num_last = sum(rows.num_rows for rows in self._held(_rows_of_groups(base, last)))
            yield from self._in_order(_rows_of_groups(base, body), num_last)

    def groups_of_sidecars(self, known: Sequence[KnownSidecar]) -> Iterator[pa.RecordBatch]:
        """Yield the row groups; those of a few sidecars outside the last sort are parsed.

        If they are many, nothing is in order, so all rows are sorted again.
        """
        adds = [item for item in known if item.tags.kind == "add"]
        sort = adds[0].tags.sort if adds else ""
        first = list(takewhile(lambda item: sort and item.tags.sort == sort, adds))
        others = adds[len(first) :]
        with _as_table_error(self._path):
            if sum(item.tags.rows for item in others) > self._most:
                num_late = self._changes.added.num_rows
                typed = self._typed(self._rows_of_sidecars(adds), self._files.num_rows - num_late)
                yield from sorted_rows(
                    chain(typed, self._parsed(num_late)), self._layout.keys, self._most
                )
                return
            held = self._held(self._rows_of_sidecars(others))
            yield from self._in_order(
                self._rows_of_sidecars(first), sum(rows.num_rows for rows in held)
            )

    def _in_order(self, body: Iterator[pa.RecordBatch], num_last: int) -> Iterator[pa.RecordBatch]:
        """Yield sorted rows of the other checkpoint with the files after them, as row groups."""
        num_late = self._changes.added.num_rows + num_last
        late = self._parsed(num_late)
        rows = self._typed(body, self._files.num_rows - num_late)
        if 2 * num_late < self._most:
            rows = chain(rows, late)
        else:
            rows = merged(rows, sorted_batch(list(late), self._layout.keys), self._layout.keys)
        yield from regrouped(rows, self._most)

    def _parsed(self, num_late: int) -> Iterator[pa.RecordBatch]:
        """Yield so many of the last files, with typed columns from their own texts."""
        start = max(self._files.num_rows - num_late, 0)
        return map(self._layout.rows, self._files.slice(start).to_batches())

    def _typed(self, rows: Iterator[pa.RecordBatch], num_files: int) -> Iterator[pa.RecordBatch]:
        """Yield so many of the first files, with the typed columns of the other rows."""
        plain = self._layout.plain_schema.names
        done = 0
        for theirs in self._held(rows):
            mine = one_batch(self._files.slice(done, theirs.num_rows))
            done += theirs.num_rows
            is_same = all(mine.column(name).equals(theirs.column(name)) for name in _TEXTS)
            if done > num_files or not is_same:
                raise not_continued(self._path, "the files taken from it have other texts")
            columns = [
                mine.column(name) if name in plain else theirs.column(name)
                for name in self._layout.add_schema.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self._layout.add_schema)
        if done != num_files:
            raise not_continued(self._path, "it has not as many files as were taken")

    def _held(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(self._changes.without_touched, rows)

    def _rows_of_sidecars(self, known: Sequence[KnownSidecar]) -> Iterator[pa.RecordBatch]:
        for item in known:
            yield from item.file.rows("add", self._layout.add_schema)


def _rows_of_groups(base: OpenAdds, groups: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
    for number, _ in groups:
        yield from base.rows(number)
