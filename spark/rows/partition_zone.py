"""The zone of partition values that old writers wrote as instants without a zone.

It is the session's zone when a frame is made. A frame that follows its table keeps it. Else the
same rows would get other values if somebody changed the session's zone.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.core.snapshot.files_view import FilesView
from optimist.spark.session.conf import session_zone_name

__all__ = ["partition_zone"]


def partition_zone(spark: SparkSession, view: FilesView) -> str | None:
    """Return the zone for partition values of a new frame, or None if they need none."""
    return session_zone_name(spark) if view.has_zoned_partitions else None
