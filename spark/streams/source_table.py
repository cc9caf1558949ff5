"""The table that a stream reads, opened by the path of its reader."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from optimist.core.errors.foreign_text import shown
from optimist.core.streams.options import no_time_travel
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.reading.read import names_older_version
from optimist.spark.session.conf import open_log

__all__ = ["open_source"]


def open_source(spark: SparkSession, path: str, filesystem: Mapping[str, str]) -> DeltaLog:
    """Return the handle of the table at a path.

    Args:
        spark: A classic session, or a Spark Connect client.
        path: The path.
        filesystem: Options of this call: keys that start with `fs.` or `dfs.`.

    Raises:
        UsageError: The path means an older version of a table (kind
            `DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS`).
    """
    log = open_log(spark, path, filesystem)
    if names_older_version(path) and not log.table_exists():
        raise no_time_travel(f"The path {shown(path)}")
    return log
