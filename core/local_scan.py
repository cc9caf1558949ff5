"""`DeltaLog.to_arrow`: rows of a table as Arrow, without Spark and without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from optimist.core.data.access import DataAccess
from optimist.core.data.file_parts import FilePart, ensure_files_readable, file_parts, parts_of
from optimist.core.data.parquet_reader import RowLayout, read_batches
from optimist.core.errors import SchemaError, UsageError
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema import StructField, StructType
from optimist.core.snapshot import Snapshot

__all__ = ["to_arrow"]

_READERS = 8
_BATCH_ROWS = 131_072


def to_arrow(
    snapshot: Snapshot,
    predicate: str | Predicate | None = None,
    columns: Sequence[str] | None = None,
    *,
    access: DataAccess | None = None,
) -> pa.Table:
    """The rows of a version for which a predicate is true; see `DeltaLog.to_arrow`.

    1. The log leaves out the files that can't hold such a row.
    2. The rest is read: the columns asked for, and those that the predicate names.
    3. Every row is judged by the predicate itself, so the answer is exact.
    """
    scan = snapshot.scan(predicate)
    _ensure_exact(scan.predicate, snapshot.schema)
    ensure_files_readable(snapshot.table_path, snapshot.metadata.configuration, scan.files)
    wanted = _fields(snapshot, columns)
    read = _with_columns_of(scan.predicate, wanted, snapshot.schema)
    layout = RowLayout(read, snapshot.partition_columns, batch_rows=_BATCH_ROWS, access=access)
    names = list(wanted.names)

    def rows_of(part: FilePart) -> list[pa.RecordBatch]:
        batches = (_matching(batch, scan.predicate) for batch in read_batches(part, layout))
        return [batch.select(names) for batch in batches if batch.num_rows]

    parts = parts_of(file_parts(snapshot.table_path, scan.files))
    with ThreadPoolExecutor(max_workers=_READERS) as pool:
        batches = [batch for found in pool.map(rows_of, parts) for batch in found]
    return pa.Table.from_batches(batches, schema=RowLayout(wanted).arrow_schema)


def _fields(snapshot: Snapshot, columns: Sequence[str] | None) -> StructType:
    if columns is None:
        return snapshot.schema
    found: dict[str, StructField] = {}
    for name in columns:
        item = snapshot.schema.find(name)
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
