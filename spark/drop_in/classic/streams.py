"""Answers to Spark's streams over Delta tables: sources, and sinks with their batches."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join, parent_of
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import logs_at
from optimist.core.streams.unblocked import Allowed
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.reading.read import epoch_millis
from optimist.spark.drop_in.compiler import dropin
from optimist.spark.drop_in.shared.options import only_path, schema_given, write_options
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES
from optimist.spark.session.conf import engine_options, open_log
from optimist.spark.session.jvm import Jvm, known_to_spark, text_map
from optimist.spark.streams.sink import StreamSink
from optimist.spark.streams.source import (
    StreamSource,
    ensure_same_columns,
    stream_schema,
)
from optimist.spark.streams.source_table import open_source

__all__ = ["add_batch", "refuse_path_name", "schema", "sink", "source"]

_PATH = "path"
_CLUSTERING_COLUMNS = "__clustering_columns"


def schema(spark: SparkSession, options: Any, given: Any) -> Any:
    """Return the columns of a stream over a table.

    Args:
        spark: The session.
        options: A Java map of the reader's options.
        given: The schema that the user gave, a Java object; None if they gave none.

    Raises:
        UsageError: A schema is given, or an option is wrong.
        TableNotFoundError: There is no table.
    """
    if given is not None:
        raise schema_given()
    _, planner = _stream(spark, options)
    with known_to_spark():
        return Jvm.of(spark).struct(stream_schema(planner))


def source(spark: SparkSession, options: Any, asked: Any) -> Any:
    """Return the source of a query that starts, a Java `DeltaSource`.

    Args:
        spark: The session of the stream.
        options: As for `schema`.
        asked: The schema of the frame that the query is started from, as JSON, and the place of
            the source in the query's checkpoint.

    Raises:
        TableError: The table has other columns by now.
        UsageError: The stream may not go on by its log of schemas.
    """
    expected, source_path = asked
    log, planner = _stream(spark, options)
    if planner.tracking is not None:
        _begin_tracking(spark, planner, source_path)
    if expected is not None:
        ensure_same_columns(planner, StructType.fromJson(json.loads(expected)))
    made = StreamSource(spark, log, planner)
    jvm = Jvm.of(spark)
    columns = jvm.struct(stream_schema(planner))
    return dropin(jvm).DeltaSource(made, jvm.session, log.table_path, columns)


def sink(spark: SparkSession, _: Any, asked: Any) -> None:
    """Refuse a sink that no batch could be given to, before the query starts.

    Args:
        spark: The session.
        asked: A Java map of the options, a Java list of the partition columns, and the output mode.

    Raises:
        UsageError: The mode is none that a table takes, or an option is wrong.
    """
    _sink(spark, asked)


def add_batch(spark: SparkSession, asked: Any, batch: Any) -> None:
    """Commit a batch.

    Args:
        spark: The session of the stream.
        asked: As for `sink`.
        batch: The rows, the rows with the plan that made them, the query's id and the batch's
            number.
    """
    rows, planned, query_id, batch_id = batch
    frame, read = DataFrame(rows, spark), DataFrame(planned, spark)
    _sink(spark, asked).add_batch(frame, read, query_id, batch_id)


def refuse_path_name(spark: SparkSession, name: Any, _: Any) -> None:  # noqa: ARG001 - an answer
    """Refuse a stream that takes a table's path for a name, as Delta does.

    Raises:
        UsageError: Always (kind `DELTA_INVALID_V1_TABLE_CALL`).
    """
    raise UsageError(
        f"A stream can't name the table {shown(str(name))} by its path. Nothing was read or "
        "written. Give the path to load(...) or start(...), with format('delta').",
        kind="DELTA_INVALID_V1_TABLE_CALL",
        table=str(name),
    )


def _stream(spark: SparkSession, options: Any) -> tuple[DeltaLog, StreamPlanner]:
    given = text_map(spark, options)
    folded = {key.lower(): value for key, value in given.items()}
    path = only_path([folded[_PATH]] if _PATH in folded else [])
    files = {key: text for key, text in given.items() if key.startswith(FILESYSTEM_PREFIXES)}
    log = open_source(spark, path, files)
    parsed = StreamOptions.parse(given, partial(epoch_millis, spark))
    if parsed.schema_location is None:
        return log, StreamPlanner.of(log.table, parsed, log.snapshot)
    place = open_log(spark, parsed.schema_location, files).table
    log_of = logs_at(place, parsed.tracking_id)
    return log, StreamPlanner.of(log.table, parsed, log.snapshot, log_of)


def _begin_tracking(spark: SparkSession, planner: StreamPlanner, source_path: str) -> None:
    """Let a query start that has a log of schemas (`SchemaTracking.begin`)."""
    tracking, table = planner.tracking, planner.table
    if tracking is None:
        return
    checkpoint = open_log(spark, parent_of(parent_of(source_path))).table_path
    is_inside = tracking.log.path.startswith(join(checkpoint, ""))
    if not is_inside and not table.options.streaming_schema_outside_checkpoint:
        raise UsageError(
            f"Schema location {tracking.log.path} must be placed under checkpoint location "
            f"{checkpoint}. Nothing was read. Give a schemaTrackingLocation below it.",
            kind="DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
            location=tracking.log.path,
            checkpoint=checkpoint,
        )
    allowed = Allowed(planner.options, engine_options(spark))
    tracking.begin(source_path, allowed, checks_path=table.options.streaming_schema_path_check)


def _sink(spark: SparkSession, asked: Any) -> StreamSink:
    options, partition_by, mode = asked
    given = text_map(spark, options)
    folded = {key.lower(): value for key, value in given.items()}
    return StreamSink.of(
        only_path([folded[_PATH]] if _PATH in folded else []),
        mode,
        write_options(given),
        partition_by=tuple(partition_by),
        cluster_by=tuple(json.loads(folded.get(_CLUSTERING_COLUMNS, "[]"))),
    )
