"""`write_stream`: a stream into a table, for sessions that are not enabled and for Connect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from optimist.core.paths import join
from optimist.core.plugins.table_path import TablePath, path_text
from optimist.spark.session.arguments import ensure_frame
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.streams.sink import StreamSink

__all__ = ["batch_function", "write_stream"]

_QUERY: Final = "sql.streaming.queryId"


def write_stream(
    df: DataFrame,
    path: TablePath,
    checkpointLocation: str,
    *,
    outputMode: str = "append",
    trigger: Mapping[str, Any] | None = None,
    **options: object,
) -> StreamingQuery:
    """Start a query that writes a stream to a table, each batch in one transaction.

    A batch that the table has already is not written again. So after any crash the same call
    continues, and no row is lost or doubled.

    Args:
        df: The stream; its session is used.
        path: The table; the first batch creates it.
        checkpointLocation: The folder where Spark keeps the query's progress; each query needs its
            own.
        outputMode: `append`, or `complete` to replace all rows with each batch.
        trigger: The arguments of `DataStreamWriter.trigger`, such as `{"availableNow": True}`.
        options: `partitionBy` for a new table, and the options of `write`. Those that choose rows
            to replace have no effect.

    Returns:
        The running query.

    Raises:
        UsageError: A table does not support the mode (kind `DELTA_UNSUPPORTED_OUTPUT_MODE`), or an
            option is wrong. Nothing was started.
        ArgumentTypeError: `df` is not a DataFrame, or `path` not a path; this is a `TypeError`,
            too.
    """
    ensure_frame(df)
    partition_by: Any = options.pop("partitionBy", ())
    sink = StreamSink.of(path_text(path), outputMode, options, partition_by=_names(partition_by))
    writer = df.writeStream.outputMode(outputMode).foreachBatch(
        batch_function(sink, checkpointLocation)
    )
    writer = writer.option("checkpointLocation", checkpointLocation)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def batch_function(
    sink: StreamSink, checkpoint: str, *, reads_target: bool = False
) -> Callable[[DataFrame, int], None]:
    """Return the function that Spark calls with each batch.

    On Spark Connect it is called in a process of the server.

    Args:
        sink: The table.
        checkpoint: The query's checkpoint.
        reads_target: True if the query's source is known to be the table itself.
    """
    known: list[str] = []

    def add(batch: DataFrame, number: int) -> None:
        if not known:
            known.append(_query_id(batch.sparkSession, checkpoint))
        sink.add_batch(batch, batch, known[0], number, reads_target=reads_target)

    return add


def _query_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the query's id, which stays the same when the query is started again."""
    # Only the JVM's threads have it, and Python's threads need not match them (PYSPARK_PIN_THREAD).
    known = None if is_connect(spark) else spark.sparkContext.getLocalProperty(_QUERY)
    if known is not None:
        return str(known)
    # Spark writes this file before the first batch.
    text = spark.read.text(join(checkpoint, "metadata")).collect()[0][0]
    return str(json.loads(text)["id"])
