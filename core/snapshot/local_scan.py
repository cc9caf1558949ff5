"""The rows of a table as Arrow, and their number, without Spark and without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.data.row_tracking import tracking_columns
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.reader_threads import reader_threads
from optimist.core.errors import OptimistError, SchemaError, UsageError
from optimist.core.errors.argument_types import ensure_text, flag, optional_whole
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.plugins.data_access import DataAccess
from optimist.core.predicates import Predicate, ensure_columns
from optimist.core.requests.arguments import several
from optimist.core.runtime.streamed_ahead import AheadLimits, stream_ahead
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.row_filter import (
    READ_WITH_SPARK,
    ensure_exact,
    row_mask,
    with_columns_of,
)
from optimist.core.snapshot.row_layout import row_layout
from optimist.core.snapshot.scan import Scan

__all__ = [
    "RowRequest",
    "count_rows",
    "read_ahead_limits",
    "read_rows",
    "run_reader",
    "size_of",
    "stream_rows",
    "take_first",
    "to_arrow",
]

_BATCH_ROWS = 131_072
_ROWS_TOGETHER, _BYTES_TOGETHER = _BATCH_ROWS * 3 // 4, 16 << 20
"""The predicate is evaluated for at least so many rows or bytes of a run at a time."""
_WINDOW = 256
_RUN_BYTES = 4 << 20
_RUN_FILES = 16
"""The most files that one thread reads one by one, because to start a thread costs time."""
_RUNS_OF_A_STREAM = 4
"""The least number of runs for each thread, so that all have about as much to do."""


def to_arrow(
    view: FilesView,
    predicate: str | Predicate | None = None,
    columns: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    access: DataAccess | None = None,
) -> pa.Table:
    """Return the rows of a version for which a predicate is true (see `DeltaLog.to_arrow`).

    1. The log leaves out the files that can't hold such a row. With a limit it also leaves out
       files that the limit does not need.
    2. The reader reads the other files: the requested columns, and those that the predicate names.
    3. The predicate is evaluated for every row, so the answer is exact.
    """
    request = RowRequest.of(view, predicate, columns, limit=limit)
    batches = list(stream_rows(view, request, access=access))
    return pa.Table.from_batches(batches, schema=request.arrow_schema)


def read_rows(
    view: FilesView, columns: StructType, *, access: DataAccess | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a version in batches, with only the given columns (at least one)."""
    return stream_rows(view, RowRequest(Predicate.TRUE, columns), access=access)


def count_rows(
    view: FilesView,
    predicate: str | Predicate | None = None,
    *,
    access: DataAccess | None = None,
) -> int:
    """Count the matching rows of a version, and read only files that the log does not decide."""
    counted = view.count(predicate)
    if counted.total is not None:
        return counted.total
    scan = replace(view.scan(predicate), files=counted.undecided)
    ensure_exact(scan.predicate, view.schema, remedy=READ_WITH_SPARK, zone=view.zone)
    # Even without a predicate, one column must be read to count the rows.
    named = with_columns_of(scan.predicate, StructType(), view.schema)
    wanted = named or StructType(view.schema.fields[:1])
    request = RowRequest(scan.predicate, wanted, in_order=False)
    found = _read_ahead(view, scan, request, access)
    return counted.rows + sum(int(batch.num_rows) for batch in found)


@dataclass(frozen=True, slots=True)
class RowRequest:
    """The rows and columns that a caller wants, found to be readable here.

    Attributes:
        predicate: The condition, with its columns in the schema's spelling.
        columns: The columns, in the wanted order.
        limit: The most rows, or None for all.
        in_order: Whether the rows must come in the order of the files, as the log has them.
    """

    predicate: Predicate
    columns: StructType
    limit: int | None = None
    in_order: bool = True

    @classmethod
    def of(
        cls,
        view: FilesView,
        predicate: str | Predicate | None,
        columns: Sequence[str] | None,
        *,
        limit: int | None = None,
        in_order: bool = True,
    ) -> RowRequest:
        """Check a caller's arguments against a version.

        Raises:
            UsageError: The predicate does not parse, names an unknown column, or has a part that
                only Spark can evaluate (kind `OPTIMIST_NEEDS_SPARK`); or the limit or the columns
                have a wrong type.
            SchemaError: There is no such column.
        """
        limit = optional_whole(limit, "limit", least=0)
        resolved = Predicate.TRUE
        if predicate is not None:
            resolved = ensure_columns(Predicate.of(predicate), view.schema)
        ensure_exact(resolved, view.schema, remedy=READ_WITH_SPARK, zone=view.zone)
        return cls(resolved, _find_columns(view, columns), limit, flag(in_order, "in_order"))

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the rows."""
        return RowLayout(self.columns).arrow_schema


def stream_rows(
    view: FilesView, request: RowRequest, *, access: DataAccess | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the requested rows in batches, and read a bounded way ahead of the caller.

    The files are chosen now, by the log alone. Data files are opened when rows are taken.
    """
    if request.limit is None:
        predicate = None if request.predicate == Predicate.TRUE else request.predicate
        return _read_ahead(view, view.scan(predicate), request, access)
    scan = view.scan(request.predicate, limit=request.limit)
    # Where the log can't tell how many rows match, whether the next file is needed is only known
    # after the one before it.
    doubtful = pc.is_in(scan.files["path"], view.count(request.predicate).undecided["path"])
    streams = 1 if pc.any(doubtful, min_count=0).as_py() else None
    found = _read_ahead(view, scan, request, access, streams=streams)
    return take_first(found, request.limit)


def _read_ahead(
    view: FilesView,
    scan: Scan,
    request: RowRequest,
    access: DataAccess | None,
    *,
    streams: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of a scan's files, and read a few files ahead of the caller."""
    limits = read_ahead_limits(view.table_path, streams)
    read_run = run_reader(view, replace(request, predicate=scan.predicate), access)
    parts = _costed_parts(file_parts(view.data_paths, scan.files))
    most = 1
    if streams is None and request.limit is None and is_on_disk(view.table_path):
        most = min(_RUN_FILES, scan.files.num_rows // (_RUNS_OF_A_STREAM * limits.streams))

    return stream_ahead(read_run, _runs_of(parts, most), size_of, limits, in_order=request.in_order)


def read_ahead_limits(table_path: str, streams: int | None = None) -> AheadLimits:
    """Return how far the rows of a table are read ahead of the caller.

    Args:
        table_path: The table's directory.
        streams: The most files that are read at a time; None for as many as are worth a thread.
    """
    most = reader_threads(table_path) if streams is None else streams
    return AheadLimits(streams=most, cost=96 << 20, held_bytes=16 << 20)


def run_reader(
    view: FilesView, request: RowRequest, access: DataAccess | None
) -> Callable[[Sequence[FilePart]], Iterator[pa.RecordBatch]]:
    """Return the function that yields the requested rows of some data files of a view."""
    read = with_columns_of(request.predicate, request.columns, view.schema)
    layout = row_layout(view, read, zone=view.zone, batch_rows=_BATCH_ROWS, access=access)
    names = list(request.columns.names)

    def read_run(run: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        batches = chain.from_iterable(read_batches(part, layout) for part in run)
        if request.predicate == Predicate.TRUE:
            yield from (batch.select(names) for batch in batches)
            return
        for rows in _put_together(batches):
            mask = row_mask(request.predicate, rows, zone=view.zone)
            kept = rows.select(names).filter(mask)
            if kept.num_rows:
                yield from kept.combine_chunks().to_batches()

    return read_run


def _put_together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the batches of small files several at a time, before an error those that were read."""
    waiting: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    try:
        for batch in batches:
            waiting.append(batch)
            num_rows += batch.num_rows
            num_bytes += size_of(batch)
            if num_rows >= _ROWS_TOGETHER or num_bytes >= _BYTES_TOGETHER:
                yield pa.Table.from_batches(waiting)
                waiting, num_rows, num_bytes = [], 0, 0
    except OptimistError:
        if waiting:
            yield pa.Table.from_batches(waiting)
        raise
    if waiting:
        yield pa.Table.from_batches(waiting)


def _costed_parts(files: pa.Table) -> Iterator[tuple[FilePart, int]]:
    """Yield the files with their sizes by the log. Only some of them become values at a time."""
    for start in range(0, files.num_rows, _WINDOW):
        for part in parts_of(files.slice(start, _WINDOW)):
            yield part, max(0, part.file_size or 0)


def _runs_of(
    parts: Iterable[tuple[FilePart, int]], most: int
) -> Iterator[tuple[Sequence[FilePart], int]]:
    """Put small files together that one thread reads one by one, each run with its size."""
    run: list[FilePart] = []
    num_bytes = 0
    for part, size in parts:
        run.append(part)
        num_bytes += size
        if len(run) >= most or num_bytes >= _RUN_BYTES:
            yield run, num_bytes
            run, num_bytes = [], 0
    if run:
        yield run, num_bytes


def size_of(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch."""
    return int(batch.nbytes)


def take_first(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the first rows, and take no more batches than that needs."""
    missing = limit
    while missing > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, min(missing, batch.num_rows))
        missing -= batch.num_rows


def _find_columns(view: FilesView, columns: Sequence[str] | None) -> StructType:
    if columns is None:
        return view.schema
    found: dict[str, StructField] = {}
    tracked = StructType()
    if view.has_active("rowTracking"):
        tracked = tracking_columns(view.metadata.configuration)
    for name in several(columns, "columns"):
        ensure_text(name, "columns")
        item = view.schema.find(name) or tracked.find(name)
        if item is None:
            raise SchemaError(
                f"The table {view.table_path} has no column {quoted(name)}. Its columns are: "
                f"{listed(view.schema.names)}.",
                kind="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        found[item.name] = item
    if not found:
        raise UsageError(
            "The argument columns is an empty list. Name at least one column, or leave the "
            "argument out to get all columns.",
            kind="OPTIMIST_NO_COLUMNS",
        )
    return StructType(tuple(found.values()))
