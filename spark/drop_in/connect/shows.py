"""SHOW and DESCRIBE TABLE of a Spark Connect client, over paths."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from optimist.core.sql.spark_statements.shows import Show
from optimist.core.statements.shows import shown_rows
from optimist.spark.commands.reading.read import open_version
from optimist.spark.rows.local_rows import local_frame, spark_columns
from optimist.spark.session.conf import session_zone_name

__all__ = ["show"]


def show(spark: SparkSession, statement: Show) -> DataFrame:
    """Return the rows of a statement, whose path may name a version, as `table@v3`."""
    snapshot = open_version(spark, str(statement.table.path)).snapshot
    rows = shown_rows(snapshot, statement, session_zone_name(spark))
    return local_frame(spark, rows, spark_columns(rows.schema))
