"""A local Spark session whose JVM prints to a file instead of the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import SparkSession

__all__ = ["start_spark"]


def start_spark(log_file: Path, conf: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Start a session on this machine.

    Args:
        log_file: Receives what the JVM prints, from its start to its end.
        conf: Entries beside those that every demonstration has.
    """
    # Spark's workers must run this Python, with all that is installed in it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("optimist-flights")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "localhost")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # Off, so that jobs of this one process race as those of several would, instead of queueing.
        .config("spark.databricks.delta.commitLock.enabled", "false")
    )
    for key, value in conf.items():
        builder = builder.config(key, value)
    with _stderr_to(log_file):
        return builder.getOrCreate()


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Point file descriptor 2 to a file; a JVM that is started meanwhile keeps it for life."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("w") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
