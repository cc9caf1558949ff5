"""PySpark in, PySpark out: read, write and change Delta tables from a Spark session."""

from optimist.spark.count import count
from optimist.spark.reader import read
from optimist.spark.tables import DeltaTable
from optimist.spark.writer import write

__all__ = ["DeltaTable", "count", "read", "write"]
