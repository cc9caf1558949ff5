"""The files of a version, as deltalake shows them: URIs, partitions, statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core import Snapshot
from optimist.core.data.partition_values import partition_columns_of
from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.statements.partitions import distinct_values
from optimist.deltalake.filters import Filters, predicate_of

__all__ = ["add_actions", "file_uris", "partitions"]

_Path = tuple[str, ...]
_REQUIRED = ("path", "size_bytes", "modification_time")


def file_uris(snapshot: Snapshot, filters: Filters | None) -> list[str]:
    """Return the full paths of the files that may hold matching rows."""

    def uris(batches: Iterator[pa.RecordBatch]) -> list[str]:
        found = [snapshot.data_paths.full_paths(batch.column("path")) for batch in batches]
        return [uri for part in found for uri in part.to_pylist()]

    return snapshot.read_columns(("path",), uris, predicate_of(filters, snapshot.schema))


def partitions(snapshot: Snapshot, filters: Filters | None) -> list[dict[str, Any]]:
    """Return each partition with such files once, as its values by column; none without any."""
    names = list(snapshot.partition_columns)
    if not names:
        return []
    fields = snapshot.partition_schema
    distinct = snapshot.read_columns(
        ("partitionValues",),
        lambda batches: distinct_values(batches, fields),
        predicate_of(filters, snapshot.schema),
    )
    found: list[dict[str, Any]] = pa.table(
        {name: _as_text(distinct[name]) for name in names}
    ).to_pylist()
    return found


def _as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as deltalake writes them: times in UTC, and without its letter."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"))
    return values.cast(pa.string())


def _partition_values(files: pa.Table, snapshot: Snapshot) -> pa.Table:
    return partition_columns_of(files, snapshot.partition_schema)


def add_actions(snapshot: Snapshot, *, flatten: bool) -> pa.Table:
    """Return a row for each file: its path, size, time, rows, statistics and partition.

    Statistics are those of the columns that the table's properties name for them.

    Args:
        snapshot: The version.
        flatten: Whether structs become columns such as `min.x`, instead of one struct each.
    """
    files = snapshot.files
    statistics = FileStatistics(files, snapshot.schema)
    paths = stats_columns(
        snapshot.schema,
        snapshot.partition_columns,
        snapshot.properties,
        clustering_columns(snapshot.domain_metadata, snapshot.schema),
    )
    statistics.load(paths)
    columns: dict[str, Any] = {
        "path": files["path"],
        "size_bytes": files["size"],
        "modification_time": files["modificationTime"],
        "num_records": statistics.num_records,
    }
    groups = {
        "null_count": {path: _known(statistics, path).null_count for path in paths},
        "min": {path: _known(statistics, path).low for path in paths},
        "max": {path: _known(statistics, path).high for path in paths},
    }
    values = _partition_values(files, snapshot) if snapshot.partition_columns else None
    if values is not None:
        groups["partition"] = {(name,): values[name] for name in values.column_names}
    for group, found in groups.items():
        with_values = {path: array for path, array in found.items() if array is not None}
        columns |= _flat(group, with_values) if flatten else _nested(group, with_values)
    found = pa.table(columns)
    return found.cast(pa.schema([_as_required(item) for item in found.schema]))


def _as_required(item: pa.Field) -> pa.Field:
    return item.with_nullable(item.name not in _REQUIRED)


def _known(statistics: FileStatistics, path: _Path) -> Any:
    found = statistics.column(path)
    if found is None:
        raise LookupError(path)  # the paths are those of the schema's leaves
    return found


def _flat(group: str, found: dict[_Path, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    return {".".join((group, *path)): array for path, array in found.items()}


def _nested(group: str, found: dict[_Path, pa.ChunkedArray]) -> dict[str, pa.Array]:
    return {group: _struct(found)} if found else {}


def _struct(found: dict[_Path, pa.ChunkedArray]) -> pa.Array:
    """Return columns by their paths as one array of structs."""
    inner: dict[str, dict[_Path, pa.ChunkedArray]] = {}
    for (name, *rest), array in found.items():
        inner.setdefault(name, {})[tuple(rest)] = array
    parts = [
        below[()].combine_chunks() if () in below else _struct(below) for below in inner.values()
    ]
    return pc.make_struct(*parts, field_names=list(inner))
