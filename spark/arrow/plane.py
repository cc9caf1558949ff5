"""Which plane moves the rows of a table: Spark's own readers and writers, or pyarrow (design 5)."""

from __future__ import annotations

from enum import Enum

from pyspark.sql import SparkSession

from optimist.core.errors import ConfigError
from optimist.core.options import EngineOptions
from optimist.core.paths import scheme_of
from optimist.spark.versions import is_connect

__all__ = ["NATIVE_SCHEMES", "Plane", "plane_of"]

NATIVE_SCHEMES = ("", "file", "hdfs", "viewfs")
"""Schemes that every Hadoop opens without a connector to install."""


class Plane(Enum):
    """Who moves rows."""

    NATIVE = "native"
    ARROW = "arrow"


def plane_of(spark: SparkSession, path: str, options: EngineOptions) -> Plane:
    """The plane for one table.

    Args:
        spark: The session.
        path: The table.
        options: `spark_plane` forces either plane.

    Raises:
        ConfigError: The native plane is asked for on Spark Connect, which has no JVM to plan in
            (kind `OPTIMIST_CLASSIC_SPARK_NEEDED`).
    """
    if is_connect(spark):
        if options.spark_plane == Plane.NATIVE.value:
            raise ConfigError(
                "optimist.spark.plane=native needs classic PySpark, and this session is a Spark "
                "Connect client. Leave the option out, or set it to arrow.",
                kind="OPTIMIST_CLASSIC_SPARK_NEEDED",
                key="optimist.spark.plane",
            )
        return Plane.ARROW
    if options.spark_plane != "auto":
        return Plane(options.spark_plane)
    return Plane.NATIVE if scheme_of(path) in NATIVE_SCHEMES else Plane.ARROW
