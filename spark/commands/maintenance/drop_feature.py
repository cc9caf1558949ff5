"""DROP FEATURE with Spark: files that have deletion vectors are written again by the executors."""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.core.local.compaction import LocalBins
from optimist.core.maintenance.features.drop_feature import DropRequest
from optimist.core.maintenance.features.drop_feature import drop_feature as drop
from optimist.core.maintenance.features.feature_removal import CaredFor
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.maintenance.optimize import optimize

__all__ = ["drop_feature"]


def drop_feature(
    spark: SparkSession, log: DeltaLog, feature: str, *, truncates_history: bool = False
) -> None:
    """Take a feature out of a table's protocol; see `DeltaLog.drop_feature`.

    Args:
        spark: The session.
        log: The table.
        feature: The feature's name.
        truncates_history: Whether the log of old versions is cut off.
    """
    table = CaredFor(
        lambda: log.start_transaction(log.snapshot()),
        lambda: optimize(spark, log, Rearrangement(purges=True)),
        LocalBins(),
    )
    drop(table, DropRequest(feature, truncates_history))
