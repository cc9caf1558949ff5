"""PySpark in, PySpark out: read, write and change Delta tables from a Spark session."""

from optimist.spark.commands.maintenance.optimize_builder import DeltaOptimizeBuilder
from optimist.spark.commands.merge.builder import DeltaMergeBuilder
from optimist.spark.commands.reading.count import count
from optimist.spark.commands.reading.read import read
from optimist.spark.commands.table_builder import DeltaTableBuilder, IdentityGenerator
from optimist.spark.commands.table_transaction import DeltaTableTransaction
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.commands.writing.write import write
from optimist.spark.drop_in.builder import configure_spark_with_delta_pip, with_delta
from optimist.spark.drop_in.enable import disable, enable
from optimist.spark.native.file_selection import FileSelection, file_selections
from optimist.spark.streams.write_stream import write_stream

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "DeltaTableTransaction",
    "FileSelection",
    "IdentityGenerator",
    "configure_spark_with_delta_pip",
    "count",
    "disable",
    "enable",
    "file_selections",
    "read",
    "with_delta",
    "write",
    "write_stream",
]
