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
    """Start a query that writes the rows of a stream to a table, each batch in one transaction.

    A batch that the table has already is not written again, so after any crash the same call goes
    on without a row lost or doubled.

    Args:
        df: The stream; its session is used.
        path: The table; the first batch makes it.
        checkpointLocation: Where Spark keeps how far the query is; each query needs its own.
        outputMode: `append`, or `complete` to replace all rows with each batch.
        trigger: The arguments of `DataStreamWriter.trigger`, such as `{"availableNow": True}`.
        options: `partitionBy` for a new table, and those of `write`; the ones that choose rows to
            replace have no effect.

    Returns:
        The running query.

    Raises:
        UsageError: The mode is none that a table takes (kind `DELTA_UNSUPPORTED_OUTPUT_MODE`), or
            an option is wrong. Nothing was started.
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
    """What Spark calls with each batch; on Spark Connect it does so in a process of the server.

    Args:
        sink: The table.
        checkpoint: The query's checkpoint.
        reads_target: Whether the query's source is known to be the table itself.
    """
    known: list[str] = []

    def add(batch: DataFrame, number: int) -> None:
        if not known:
            known.append(_query_id(batch.sparkSession, checkpoint))
        sink.add_batch(batch, batch, known[0], number, reads_target=reads_target)

    return add


def _query_id(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query whose batch this is, which stays the same when it is started again."""
    # Python's threads need not be those of the JVM (PYSPARK_PIN_THREAD), which alone have it.
    known = None if is_connect(spark) else spark.sparkContext.getLocalProperty(_QUERY)
    if known is not None:
        return str(known)
    # Spark writes it before the first batch.
    text = spark.read.text(join(checkpoint, "metadata")).collect()[0][0]
    return str(json.loads(text)["id"])
