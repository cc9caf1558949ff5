"""Which PySpark versions this plane runs on, and where they differ.

Classes of Spark that moved or changed between 4.0 and 4.3 are named here and nowhere else.
"""

from __future__ import annotations

import re

import pyspark
from pyspark.sql import SparkSession

from optimist.core.errors import UsageError

__all__ = [
    "CLASSIC_DATASET",
    "FILE_SOURCES",
    "FIRST_SUPPORTED",
    "ensure_supported",
    "has_filter_pushdown",
    "is_connect",
]

FIRST_SUPPORTED = (4, 0)
_FIRST_WITH_FILTER_PUSHDOWN = (4, 1)
CLASSIC_DATASET = "org.apache.spark.sql.classic.Dataset"
FILE_SOURCES = "org.apache.spark.sql.execution.datasources"


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client, which has no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def ensure_supported(spark: SparkSession) -> None:
    """Refuse sessions that the native plane can't serve.

    Raises:
        UsageError: A Spark Connect session (kind `OPTIMIST_CLASSIC_SPARK_NEEDED`), or a PySpark
            before 4.0 (kind `OPTIMIST_UNSUPPORTED_PYSPARK`).
    """
    if is_connect(spark):
        raise UsageError(
            "This session is a Spark Connect client; reading and writing tables needs classic "
            "PySpark "
            'today. Build the session with master("local[*]") or on the driver, or use '
            "optimist.core, "
            "which needs no Spark.",
            kind="OPTIMIST_CLASSIC_SPARK_NEEDED",
        )
    if _version() < FIRST_SUPPORTED:
        raise UsageError(
            f"PySpark {pyspark.__version__} is too old; 4.0 or newer is needed.",
            kind="OPTIMIST_UNSUPPORTED_PYSPARK",
            version=pyspark.__version__,
        )


def has_filter_pushdown() -> bool:
    """Whether Spark pushes filters to Python data sources (4.1 and later do)."""
    return _version() >= _FIRST_WITH_FILTER_PUSHDOWN


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
