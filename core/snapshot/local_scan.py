"""Rows of a table as Arrow, and their number, without Spark and without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from optimist.core.data.access import DataAccess
from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet_reader import RowLayout, read_batches
from optimist.core.data.row_tracking import tracking_columns
from optimist.core.errors import SchemaError, UsageError
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.resolution import resolve_column
from optimist.core.read_ahead import read_ahead
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot.snapshot import Scan, Snapshot

__all__ = ["count_rows", "to_arrow"]

_READERS = 8
_BATCH_ROWS = 131_072


def to_arrow(
    snapshot: Snapshot,
    predicate: str | Predicate | None = None,
    columns: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    access: DataAccess | None = None,
) -> pa.Table:
    """The rows of a version for which a predicate is true; see `DeltaLog.to_arrow`.

    1. The log leaves out the files that can't hold such a row, and with a limit those that are not
       needed for it.
    2. The rest is read: the columns asked for, and those that the predicate names.
    3. Every row is judged by the predicate itself, so the answer is exact.
    """
    _ensure_count(limit)
    scan = snapshot.scan(predicate, limit=limit)
    wanted = _fields(snapshot, columns)
    found = _matching_rows(snapshot, scan, wanted, access)
    batches = list(found if limit is None else _first(found, limit))
    return pa.Table.from_batches(batches, schema=RowLayout(wanted).arrow_schema)


def count_rows(
    snapshot: Snapshot,
    predicate: str | Predicate | None = None,
    *,
    access: DataAccess | None = None,
) -> int:
    """How many rows of a version match; reads the files of which the log does not tell."""
    counted = snapshot.count(predicate)
    if counted.total is not None:
        return counted.total
    scan = replace(snapshot.scan(predicate), files=counted.undecided)
    # Without a predicate, too, something must be read to know how many rows there are.
    named = _with_columns_of(scan.predicate, StructType(), snapshot.schema)
    wanted = named or StructType(snapshot.schema.fields[:1])
    found = _matching_rows(snapshot, scan, wanted, access)
    return counted.rows + sum(int(batch.num_rows) for batch in found)


def _matching_rows(
    snapshot: Snapshot, scan: Scan, wanted: StructType, access: DataAccess | None
) -> Iterator[pa.RecordBatch]:
    """The matching rows of a scan's files; reads a few files ahead of who takes them."""
    _ensure_exact(scan.predicate, snapshot.schema)
    read = _with_columns_of(scan.predicate, wanted, snapshot.schema)
    layout = RowLayout.of(snapshot, read, batch_rows=_BATCH_ROWS, access=access)
    names = list(wanted.names)

    def rows_of(part: FilePart) -> list[pa.RecordBatch]:
        batches = (_matching(batch, scan.predicate) for batch in read_batches(part, layout))
        return [batch.select(names) for batch in batches if batch.num_rows]

    parts = parts_of(file_parts(snapshot.table_path, scan.files))
    for batches in read_ahead(rows_of, parts, threads=_READERS, ahead=2 * _READERS):
        yield from batches


def _first(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    missing = limit
    while missing > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, missing)
        missing -= batch.num_rows


def _ensure_count(limit: int | None) -> None:
    if limit is not None and (isinstance(limit, bool) or limit < 0):
        raise UsageError(
            f"limit must be a number of rows, 0 or more, not {limit!r}.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="limit",
        )


def _fields(snapshot: Snapshot, columns: Sequence[str] | None) -> StructType:
    if columns is None:
        return snapshot.schema
    found: dict[str, StructField] = {}
    tracked = StructType()
    if snapshot.properties.enable_row_tracking:
        tracked = tracking_columns(snapshot.metadata.configuration)
    for name in columns:
        item = snapshot.schema.find(name) or tracked.find(name)
        if item is None:
            raise SchemaError(
                f"{snapshot.table_path} has no column {name!r}. Its columns are: "
                f"{', '.join(snapshot.schema.names)}.",
                kind="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        found[item.name] = item
    if not found:
        raise UsageError(
            "Name at least one column, or leave columns out to get all.",
            kind="OPTIMIST_NO_COLUMNS",
        )
    return StructType(tuple(found.values()))


def _with_columns_of(predicate: Predicate, wanted: StructType, schema: StructType) -> StructType:
    names = {path[0].lower() for path in predicate.columns()}
    missing = (item for item in schema if item.name.lower() in names)
    return StructType((*wanted, *(item for item in missing if wanted.find(item.name) is None)))


def _ensure_exact(predicate: Predicate, schema: StructType) -> None:
    """Every part must be one whose truth this engine knows for each row."""
    empty = RowLayout(schema).arrow_schema.empty_table()
    for part in predicate.conjuncts():
        columns = [resolve_column(path, schema) for path in part.columns()]
        has_plain_order = all(column is None or column.has_plain_order for column in columns)
        if not has_plain_order or evaluate(part, empty) is None:
            raise UsageError(
                f"The part {str(part)!r} of the predicate needs Spark to be judged row by row. "
                "Read with optimist.spark.read and filter there, or leave the part out.",
                kind="OPTIMIST_NEEDS_SPARK",
                part=str(part),
            )


def _matching(batch: pa.RecordBatch, predicate: Predicate) -> pa.RecordBatch:
    if predicate == Predicate.TRUE:
        return batch
    mask = evaluate(predicate, pa.Table.from_batches([batch]))
    assert mask is not None, str(predicate)
    return batch.filter(mask)
