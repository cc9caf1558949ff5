"""`ChangeScan`: the rows of a change feed, read when they are asked for (spec 10.11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.changes.feed import ChangeFeed
from optimist.core.changes.files import COMMIT_VERSION
from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.table_ref import TableRef
from optimist.core.errors.short_repr import path_in_repr
from optimist.core.predicates import Predicate
from optimist.core.runtime.streamed_ahead import stream_ahead
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.local_scan import (
    RowRequest,
    count_rows,
    read_ahead_limits,
    run_reader,
    size_of,
    take_first,
)
from optimist.core.snapshot.row_scan import RowScan

__all__ = ["ChangeScan", "scan_changes"]

_WINDOW = 256
_VIEW = "view"


class ChangeScan(RowScan):
    """Changes of a range of versions, as an Arrow stream that can be read any number of times.

    It is a `RowScan` in all else: nothing is read before rows are asked for, and then a few files
    are read ahead, in bounded memory.

    Attributes:
        versions: The versions, as a range; empty if no version lies between the bounds.
        version: The last of them, whose columns the rows have.
        schema: The Arrow schema of the rows, with the three columns of the change last.
    """

    def __init__(self, table: TableRef, feed: ChangeFeed, request: RowRequest) -> None:
        super().__init__(
            feed.derived,
            request,
            access=table.data_access(),
            clock=table.clock,
            budget_s=table.options.storage_budget_s,
        )
        self._views = feed.views
        self.versions = feed.versions
        if feed.versions:
            self.version = feed.versions[-1]

    def __repr__(self) -> str:
        first, stop = self.versions.start, self.versions.stop
        path = path_in_repr(self._view.table_path)
        return f"ChangeScan(table_path={path}, versions=range({first}, {stop}))"

    def _stream(self, request: RowRequest) -> Iterator[pa.RecordBatch]:
        readers = [run_reader(view, request, self._access) for view in self._views]

        def open_part(item: tuple[int, FilePart]) -> Iterator[pa.RecordBatch]:
            number, part = item
            return readers[number]([part])

        parts = _costed_parts(_parts_by_version(self._views, request.predicate))
        # Whether a limit needs the next file is only known after the one before it.
        streams = None if request.limit is None else 1
        limits = read_ahead_limits(self._view.table_path, streams)
        found = stream_ahead(open_part, parts, size_of, limits, in_order=request.in_order)
        return found if request.limit is None else take_first(found, request.limit)

    def _count(self, predicate: Predicate) -> int:
        return sum(count_rows(view, predicate, access=self._access) for view in self._views)


def scan_changes(
    table: TableRef,
    feed: ChangeFeed,
    predicate: str | Predicate | None = None,
    columns: Sequence[str] | None = None,
    *,
    in_order: bool = False,
) -> ChangeScan:
    """Return the rows of a feed for which a predicate is true, to be read when asked for.

    Raises:
        UsageError, SchemaError: See `DeltaLog.to_arrow`.
    """
    # Both views have the same columns, so that what is asked of one is asked of the other.
    request = RowRequest.of(feed.derived, predicate, columns, in_order=in_order)
    return ChangeScan(table, feed, request)


def _parts_by_version(views: Sequence[FilesView], predicate: Predicate) -> pa.Table:
    """Return the files that may hold matching rows, commit by commit, each with its view."""
    wanted = None if predicate == Predicate.TRUE else predicate
    found = []
    for number, view in enumerate(views):
        parts = file_parts(view.data_paths, view.scan(wanted).files)
        found.append(parts.append_column(_VIEW, pa.repeat(number, parts.num_rows)))
    parts = pa.concat_tables(found)
    texts = pc.map_lookup(parts["partitionValues"], pa.scalar(COMMIT_VERSION), "first")
    order = pc.sort_indices(
        pa.table({"version": texts.cast(pa.int64())}), [("version", "ascending")]
    )
    return parts.take(order)


def _costed_parts(parts: pa.Table) -> Iterator[tuple[tuple[int, FilePart], int]]:
    """Yield the files with their views and sizes. Only some of them become values at a time."""
    for start in range(0, parts.num_rows, _WINDOW):
        window = parts.slice(start, _WINDOW)
        for number, part in zip(window[_VIEW].to_pylist(), parts_of(window), strict=True):
            yield (number, part), max(0, part.file_size or 0)
