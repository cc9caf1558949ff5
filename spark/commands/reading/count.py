"""`count`: the number of matching rows, taken from the log if possible (spec 9.5).

`read(...).count()` uses the log only in sessions of the drop-in, and for whole partitions, since it
takes a rule of the optimizer, which is a JVM class (`drop_in/java/AnswerAggregates.java`). This
function also counts in other sessions, and by filters on any column.
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from optimist.spark.conditions.condition import resolve_condition
from optimist.spark.planes.planes import plane_of
from optimist.spark.session.arguments import ensure_condition
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log

__all__ = ["count"]


def count(
    spark: SparkSession,
    path: str,
    predicate: Column | str | None = None,
) -> int:
    """Count the rows of a table's newest version that match, or all of them without a predicate.

    Partition values and statistics decide for most files, and Spark counts only in the others.
    Without a predicate, or with one on partition columns alone, no job runs if all files have
    statistics.

    Args:
        spark: A classic session, or a Spark Connect client.
        path: The table.
        predicate: SQL text or a column.

    Raises:
        pyspark.errors.AnalysisException: Spark can't resolve the predicate.
        TableNotFoundError: The path has no table.
        ArgumentTypeError: The predicate is neither text nor a column.
        UsageError: The predicate is not deterministic or holds a subquery.
    """
    with original_errors():
        ensure_condition(predicate)
        log = open_log(spark, path)
        snapshot = log.snapshot()
        plane = plane_of(spark, log.table)
        if predicate is None:
            counted = snapshot.count()
            condition = None
        else:
            condition = resolve_condition(
                plane.scan(snapshot),
                predicate,
                schema=snapshot.schema,
                partition_columns=snapshot.partition_columns,
                began_ms=log.table.clock.now_ms(),
            )
            counted = snapshot.count(condition.predicate)
        if counted.total is not None:
            return counted.total
        rows = plane.scan_files(snapshot, counted.undecided)
        matching = rows if condition is None else rows.where(condition.column)
        return counted.rows + matching.count()
