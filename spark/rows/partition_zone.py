"""The zone of partition values that name an instant without one, as old writers wrote them.

It is that of the session when a frame is made. A frame that follows its table keeps it: else the
same rows would get other values because somebody has set the session's zone in between.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.core.snapshot.files_view import FilesView
from optimist.spark.session.conf import session_zone_name

__all__ = ["partition_zone"]


def partition_zone(spark: SparkSession, view: FilesView) -> str | None:
    """The zone for the partition values of a frame that is made now; None if they need none."""
    return session_zone_name(spark) if view.has_zoned_partitions else None
