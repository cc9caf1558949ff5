"""History and details of a table as DataFrames, with exactly Delta's columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from optimist.core.protocol.actions import CommitInfo
from optimist.core.snapshot.table_detail import TableDetail
from optimist.core.snapshot.time_travel import CommitRecord
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.rows.local_rows import local_frame

__all__ = ["DETAIL_SCHEMA", "HISTORY_SCHEMA", "detail_frame", "history_frame"]

_TEXT_MAP = st.MapType(st.StringType(), st.StringType())
HISTORY_SCHEMA = (
    st.StructType()
    .add("version", st.LongType())
    .add("timestamp", st.TimestampType())
    .add("userId", st.StringType())
    .add("userName", st.StringType())
    .add("operation", st.StringType())
    .add("operationParameters", _TEXT_MAP)
    .add(
        "job",
        st.StructType()
        .add("jobId", st.StringType())
        .add("jobName", st.StringType())
        .add("jobRunId", st.StringType())
        .add("runId", st.StringType())
        .add("jobOwnerId", st.StringType())
        .add("triggerType", st.StringType()),
    )
    .add("notebook", st.StructType().add("notebookId", st.StringType()))
    .add("clusterId", st.StringType())
    .add("readVersion", st.LongType())
    .add("isolationLevel", st.StringType())
    .add("isBlindAppend", st.BooleanType())
    .add("operationMetrics", _TEXT_MAP)
    .add("userMetadata", st.StringType())
    .add("engineInfo", st.StringType())
)
DETAIL_SCHEMA = (
    st.StructType()
    .add("format", st.StringType())
    .add("id", st.StringType())
    .add("name", st.StringType())
    .add("description", st.StringType())
    .add("location", st.StringType())
    .add("createdAt", st.TimestampType())
    .add("lastModified", st.TimestampType())
    .add("partitionColumns", st.ArrayType(st.StringType()))
    .add("clusteringColumns", st.ArrayType(st.StringType()))
    .add("numFiles", st.LongType())
    .add("sizeInBytes", st.LongType())
    .add("properties", _TEXT_MAP)
    .add("minReaderVersion", st.IntegerType())
    .add("minWriterVersion", st.IntegerType())
    .add("tableFeatures", st.ArrayType(st.StringType()))
)
_TEXT_FIELDS = {
    "job": ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType"),
    "notebook": ("notebookId",),
}


def history_frame(spark: SparkSession, log: DeltaLog, limit: int | None) -> DataFrame:
    """The commits that the log still holds, newest first.

    Raises:
        TableNotFoundError: There is no table.
    """
    rows = [_history_row(record) for record in log.history(limit)]
    return _frame(spark, rows, HISTORY_SCHEMA)


def detail_frame(spark: SparkSession, log: DeltaLog, name: str | None = None) -> DataFrame:
    """One row about the table as it is now.

    Args:
        spark: The session.
        log: The table.
        name: The name in a catalog by which the table was asked for; None for its path.

    Raises:
        TableNotFoundError: There is no table.
    """
    row = _detail_row(log.detail())
    return _frame(spark, [{**row, "name": name or row["name"]}], DETAIL_SCHEMA)


def _frame(spark: SparkSession, rows: list[dict[str, object]], schema: st.StructType) -> DataFrame:
    fields = [pa.field(field.name, _arrow_type(field.dataType)) for field in schema.fields]
    told = [{name: _whole_characters(value) for name, value in row.items()} for row in rows]
    table = pa.Table.from_pylist(told, schema=pa.schema(fields))
    return local_frame(spark, table, schema)


def _arrow_type(data_type: st.DataType) -> pa.DataType:
    if isinstance(data_type, st.StructType):
        return pa.struct([(field.name, _arrow_type(field.dataType)) for field in data_type.fields])
    if isinstance(data_type, st.MapType):
        return pa.map_(_arrow_type(data_type.keyType), _arrow_type(data_type.valueType))
    if isinstance(data_type, st.ArrayType):
        return pa.list_(_arrow_type(data_type.elementType))
    return _ARROW_TYPES[data_type.simpleString()]


_ARROW_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


_CALENDAR_MS = range(-62_135_596_800_000, 253_402_300_800_000)
"""From the year 1 to the end of 9999: what Python's times, and so PySpark's rows, can hold."""


def _whole_characters(value: Any) -> Any:
    """The value with `?` for lone surrogates: any writer may put any text into a commitInfo."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: _whole_characters(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_whole_characters(item) for item in value)
    return value


def _micros(timestamp_ms: int | None) -> int | None:
    """A time for a column; null where no column can hold it."""
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
        "job": _struct(info.extra.get("job"), _TEXT_FIELDS["job"]),
        "notebook": _struct(info.extra.get("notebook"), _TEXT_FIELDS["notebook"]),
        "clusterId": _text(info.extra.get("clusterId")),
        "readVersion": info.read_version,
        "isolationLevel": info.isolation_level,
        "isBlindAppend": info.is_blind_append,
        "operationMetrics": _texts(info.operation_metrics),
        "userMetadata": info.user_metadata,
        "engineInfo": info.engine_info,
    }


def _texts(values: Mapping[str, object] | None) -> list[tuple[str, str | None]] | None:
    """Any JSON value as text; text stays as it is (spec 8.2)."""
    if values is None:
        return None
    return [(key, _text(value)) for key, value in values.items()]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _struct(value: object, names: tuple[str, ...]) -> dict[str, str | None] | None:
    if not isinstance(value, Mapping):
        return None
    return {name: _text(value.get(name)) for name in names}


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
