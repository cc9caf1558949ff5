"""The zone of partition values that name an instant without one, as old writers wrote them.

It is that of the session when a frame is made. A frame that follows its table keeps it: else the
same rows would get other values because somebody has set the session's zone in between.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.core.snapshot.files_view import FilesView
from optimist.spark.session.conf import session_zone_name

__all__ = ["has_zoned_partitions", "partition_zone"]


def has_zoned_partitions(view: FilesView) -> bool:
    """Whether partition values are instants."""
    return any(str(item.data_type) == "timestamp" for item in view.partition_schema)


def partition_zone(spark: SparkSession, view: FilesView) -> str | None:
    """The zone for the partition values of a frame that is made now; None if they need none."""
    return session_zone_name(spark) if has_zoned_partitions(view) else None
