"""The rows of DESCRIBE HISTORY and DESCRIBE DETAIL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from optimist.core.protocol.actions import CommitInfo
from optimist.core.snapshot.table_detail import TableDetail
from optimist.core.snapshot.time_travel import CommitRecord
from optimist.core.statements.result_columns import DETAIL, HISTORY

__all__ = ["detail_rows", "history_rows"]

_CALENDAR_MS = range(-62_135_596_800_000, 253_402_300_800_000)
"""From the year 1 to the end of 9999: the times that Python, and so PySpark's rows, can hold."""


def history_rows(records: Sequence[CommitRecord]) -> pa.Table:
    """Return a row for each commit, in the order given."""
    return _table([_history_row(record) for record in records], HISTORY)


def detail_rows(detail: TableDetail, name: str | None = None) -> pa.Table:
    """Return one row about a table.

    Args:
        detail: The facts about the table.
        name: Its name in a catalog; None for a table that was named by its path.
    """
    row = _detail_row(detail)
    return _table([{**row, "name": name or row["name"]}], DETAIL)


def _table(rows: list[dict[str, object]], columns: pa.Schema) -> pa.Table:
    whole = [{name: _whole_characters(value) for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(whole, schema=columns)


def _whole_characters(value: Any) -> Any:
    """Replace half characters by `?`: a writer may put any text into a commitInfo."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: _whole_characters(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_whole_characters(item) for item in value)
    return value


def _micros(timestamp_ms: int | None) -> int | None:
    """Return a time for a column, or None if no column can hold it."""
    if timestamp_ms is None or timestamp_ms not in _CALENDAR_MS:
        return None
    return timestamp_ms * 1000


def _history_row(record: CommitRecord) -> dict[str, object]:
    info = record.info or CommitInfo()
    return {
        "version": record.version,
        "timestamp": _micros(record.timestamp_ms),
        "userId": info.user_id,
        "userName": info.user_name,
        "operation": info.operation,
        "operationParameters": _texts(info.operation_parameters),
        "job": _struct(info.extra.get("job"), "job"),
        "notebook": _struct(info.extra.get("notebook"), "notebook"),
        "clusterId": _text(info.extra.get("clusterId")),
        "readVersion": info.read_version,
        "isolationLevel": info.isolation_level,
        "isBlindAppend": info.is_blind_append,
        "operationMetrics": _texts(info.operation_metrics),
        "userMetadata": info.user_metadata,
        "engineInfo": info.engine_info,
    }


def _texts(values: Mapping[str, object] | None) -> list[tuple[str, str | None]] | None:
    """Turn any JSON values but texts into text (spec 8.2)."""
    if values is None:
        return None
    return [(key, _text(value)) for key, value in values.items()]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _struct(value: object, column: str) -> dict[str, str | None] | None:
    if not isinstance(value, Mapping):
        return None
    return {field.name: _text(value.get(field.name)) for field in HISTORY.field(column).type}


def _detail_row(detail: TableDetail) -> dict[str, object]:
    return {
        "format": detail.format,
        "id": detail.id,
        "name": detail.name,
        "description": detail.description,
        "location": detail.location,
        "createdAt": _micros(detail.created_at_ms),
        "lastModified": _micros(detail.last_modified_ms),
        "partitionColumns": list(detail.partition_columns),
        "clusteringColumns": list(detail.clustering_columns),
        "numFiles": detail.num_files,
        "sizeInBytes": detail.size_in_bytes,
        "properties": list(detail.properties.items()),
        "minReaderVersion": detail.min_reader_version,
        "minWriterVersion": detail.min_writer_version,
        "tableFeatures": list(detail.table_features),
    }
