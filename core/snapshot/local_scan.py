"""The rows of a table as Arrow, and their number, without Spark and without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.data.row_tracking import tracking_columns
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.argument_types import ensure_text
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.plugins.data_access import DataAccess
from optimist.core.predicates import Predicate
from optimist.core.runtime.read_ahead import read_ahead
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

__all__ = ["count_rows", "read_rows", "to_arrow"]

_READERS = 8
_BATCH_ROWS = 131_072


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
    _ensure_count(limit)
    scan = view.scan(predicate, limit=limit)
    wanted = _find_columns(view, columns)
    found = _matching_rows(view, scan, wanted, access)
    batches = list(found if limit is None else _take_first(found, limit))
    return pa.Table.from_batches(batches, schema=RowLayout(wanted).arrow_schema)


def read_rows(
    view: FilesView, columns: StructType, *, access: DataAccess | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a version in batches, with only the given columns (at least one)."""
    return _matching_rows(view, view.scan(None), columns, access)


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
    # Even without a predicate, one column must be read to count the rows.
    named = with_columns_of(scan.predicate, StructType(), view.schema)
    wanted = named or StructType(view.schema.fields[:1])
    found = _matching_rows(view, scan, wanted, access)
    return counted.rows + sum(int(batch.num_rows) for batch in found)


def _matching_rows(
    view: FilesView, scan: Scan, wanted: StructType, access: DataAccess | None
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of a scan's files, and read a few files ahead of the caller."""
    ensure_exact(scan.predicate, view.schema, remedy=READ_WITH_SPARK)
    read = with_columns_of(scan.predicate, wanted, view.schema)
    layout = row_layout(view, read, batch_rows=_BATCH_ROWS, access=access)
    names = list(wanted.names)

    def read_part(part: FilePart) -> list[pa.RecordBatch]:
        batches = (_filter_batch(batch, scan.predicate) for batch in read_batches(part, layout))
        return [batch.select(names) for batch in batches if batch.num_rows]

    parts = parts_of(file_parts(view.data_paths, scan.files))
    for batches in read_ahead(read_part, parts, threads=_READERS, ahead=2 * _READERS):
        yield from batches


def _take_first(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    missing = limit
    while missing > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, missing)
        missing -= batch.num_rows


def _ensure_count(limit: int | None) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise UsageError(
            f"The argument limit must be a number of rows, 0 or more, not {limit!r}.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="limit",
        )


def _find_columns(view: FilesView, columns: Sequence[str] | None) -> StructType:
    if columns is None:
        return view.schema
    found: dict[str, StructField] = {}
    tracked = StructType()
    if view.has_active("rowTracking"):
        tracked = tracking_columns(view.metadata.configuration)
    for name in columns:
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


def _filter_batch(batch: pa.RecordBatch, predicate: Predicate) -> pa.RecordBatch:
    return batch if predicate == Predicate.TRUE else batch.filter(row_mask(predicate, batch))
