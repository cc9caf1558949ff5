"""The source of a stream in a classic session, which answers Spark's micro-batches.

Spark holds `java/DeltaSource.java`, which asks by a word. Offsets are exchanged as JSON, and a
batch is a frame over the batch's files, on the plane that serves the table.
"""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.errors import TableError
from optimist.core.forking import ForkSafeLock
from optimist.core.streams.indexed_files import Capacity
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.planner import StreamPlanner
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.reading.change_feed import joined_views
from optimist.spark.planes.planes import plane_of
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["StreamSource", "ensure_same_columns", "is_read_by", "stream_schema"]

_QUERY = "sql.streaming.queryId"
_LOG = logging.getLogger(__name__)
_LOCK = ForkSafeLock()
_READ_BY: dict[str, dict[str, str]] = {}
"""The tables that queries of this process read, by the queries' ids and the keys of the sources."""


def is_read_by(query_id: str, table_path: str) -> bool:
    """Check whether a running query has a stream over a table."""
    with _LOCK:
        return table_path in _READ_BY.get(query_id, {}).values()


def stream_schema(planner: StreamPlanner) -> StructType:
    """Return the columns of a stream as Spark has them, all nullable."""
    return to_spark_schema(planner.stream_schema)


def ensure_same_columns(planner: StreamPlanner, expected: StructType) -> None:
    """Refuse a frame whose columns differ from the table's present columns.

    Args:
        planner: The stream of a query that starts.
        expected: The columns of the frame.

    Raises:
        TableError: The columns differ (kind `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
    """
    if expected == stream_schema(planner):
        return
    path = planner.table.table_path
    raise TableError(
        f"The schema of the Delta table {path} has changed since the stream's DataFrame was made. "
        "Nothing was read. Make the DataFrame anew, and start the query from that.",
        kind="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
        path=path,
    )


class StreamSource(JavaIdentity):
    """The stream of one query over one table.

    Attributes:
        planner: The stream.
    """

    class Java:
        """The interface for which py4j makes a proxy."""

        implements = ["scala.Function2"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, spark: SparkSession, log: DeltaLog, planner: StreamPlanner) -> None:
        super().__init__()
        self.planner = planner
        self._spark = spark
        self._log = log
        self._last_version: int | None = None
        self._query_id: str | None = spark.sparkContext.getLocalProperty(_QUERY)
        self._note_query()

    # The JVM calls this method.

    def apply(self, word: str, argument: Any) -> Any:
        """Do what the word asks."""
        with callback():
            if word == "latest":
                start, is_all = argument
                return self._latest_offset(_offset(start), is_all=is_all)
            if word == "batch":
                start, end = argument
                return self._frame_of_batch(_offset(start), StreamOffset.from_json(end))._jdf
            if word == "prepare":
                self._last_version = self.planner.latest_version()
            elif word == "done":
                self.planner.done_with(StreamOffset.from_json(argument))
            elif word == "stop":
                self._forget_query()
            elif word == "metrics":
                return Jvm.of(self._spark).root.java.util.HashMap(self._metrics(argument))
            return None

    def _latest_offset(self, start: StreamOffset | None, *, is_all: bool) -> str | None:
        capacity = Capacity() if is_all else self.planner.capacity()
        bound = self._last_version
        end = self.planner.latest_offset(start, capacity, last_version=bound)
        return None if end is None else end.to_json()

    def _frame_of_batch(self, start: StreamOffset | None, end: StreamOffset) -> DataFrame:
        views = self.planner.views_between(start, end)
        _LOG.info(
            "The stream over %s reads %d files up to %s.",
            self._log.table_path,
            sum(view.num_files for view in views),
            end.to_json(),
        )
        filled = [view for view in views if view.num_files] or views[:1]
        return joined_views(plane_of(self._spark, self._log.table), filled)

    def _metrics(self, position: str | None) -> dict[str, str]:
        """Return what is left to read, for the progress of the query."""
        if position is None:
            return {}
        left = self.planner.backlog(StreamOffset.from_json(position))
        return {
            "numFilesOutstanding": str(left.files),
            "numBytesOutstanding": str(left.size_bytes),
            "numVersionsOutstanding": str(left.versions),
        }

    def _note_query(self) -> None:
        if self._query_id is None:
            return
        with _LOCK:
            _READ_BY.setdefault(self._query_id, {})[self.toString()] = self._log.table_path

    def _forget_query(self) -> None:
        """Forget the table of a query that has ended.

        The query may have been started again since.
        """
        with _LOCK:
            sources = _READ_BY.get(self._query_id or "", {})
            sources.pop(self.toString(), None)
            if not sources:
                _READ_BY.pop(self._query_id or "", None)


def _offset(text: str | None) -> StreamOffset | None:
    return None if text is None else StreamOffset.from_json(text)
