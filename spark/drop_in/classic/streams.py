"""What Spark's streams ask about Delta tables: the sink, and each of its batches."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.spark.drop_in.classic.options import only_path, write_options
from optimist.spark.session.jvm import text_map
from optimist.spark.streams.sink import StreamSink

__all__ = ["add_batch", "refuse_path_name", "sink"]

_PATH = "path"
_CLUSTERING_COLUMNS = "__clustering_columns"


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
    _sink(spark, asked).add_batch(frame, read, query_id, batch_id, reads_target=False)


def refuse_path_name(spark: SparkSession, name: Any, _: Any) -> None:  # noqa: ARG001 - an answer
    """Refuse a stream that calls a table by its path as if that were a name, as Delta does.

    Raises:
        UsageError: Always (kind `DELTA_INVALID_V1_TABLE_CALL`).
    """
    raise UsageError(
        f"A stream can't name the table {shown(str(name))} by its path. Nothing was read or "
        "written. Give the path to load(...) or start(...), with format('delta').",
        kind="DELTA_INVALID_V1_TABLE_CALL",
        table=str(name),
    )


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
