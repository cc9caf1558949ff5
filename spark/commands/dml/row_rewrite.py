"""The common part of DELETE, UPDATE and MERGE on Spark: the run and the change of rows.

If the work is small, the driver does it all without a Spark job; see `DriverShortcut`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import SparkSession

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.row_rewrite import RowTarget, rewrite_rows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.row_writer import RowWriter
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.driver_shortcut import local_condition
from optimist.spark.commands.dml.target import Target
from optimist.spark.conditions.condition import Condition
from optimist.spark.session.callback_errors import told_as_write
from optimist.spark.session.conf import reset_session_version, session_zone_name
from optimist.spark.session.unchanged_conf import unchanged_conf

__all__ = ["InDriver", "rewrite", "run"]

InDriver: TypeAlias = Callable[[RowWriter, "LocalCondition | None"], RowTarget]
"""Makes the `RowTarget` of a command in the driver. It raises an `OptimistError` if only Spark can
compute a value.
"""


def run(
    spark: SparkSession,
    log: TableHandle,
    work: Callable[[OptimisticTransaction, UncommittedFiles], Changes],
    begin: Callable[[], OptimisticTransaction] | None = None,
) -> RowCounts:
    """Run a command to its commit, and again after a conflict if the options say so.

    Args:
        spark: The session.
        log: The table.
        work: Does the command's work in a transaction; its uncommitted files are taken care of.
        begin: Begins the transaction; by default on the newest version.

    Returns:
        The counts of changed rows.
    """

    def once(txn: OptimisticTransaction) -> RowCounts:
        def checked(pending: UncommittedFiles) -> Changes:
            with unchanged_conf(spark):
                return work(txn, pending)

        return run_command(txn, checked).counts

    with told_as_write():
        counts = run_until_it_lands(begin or (lambda: log.start_transaction(log.snapshot())), once)
    reset_session_version(spark, log.options)
    return counts


def rewrite(
    target: Target,
    condition: Condition | None,
    pending: UncommittedFiles,
    watch: Stopwatch,
    *,
    in_driver: InDriver,
    on_spark: RowTarget,
) -> Rewrite:
    """Find the matching rows, and mark them in vectors or write their files again.

    Args:
        target: The table.
        condition: The condition; None for all rows.
        pending: Takes care of the written files.
        watch: Measures the search and the writing.
        in_driver: Makes the rows if the driver knows the condition and the files are small.
        on_spark: The rows otherwise.
    """
    candidates = target.txn.filter_files(None if condition is None else condition.predicate)

    def rewrite_target(rows: RowTarget, own: UncommittedFiles) -> Rewrite:
        return rewrite_rows(rows, candidates, own, watch)

    shortcut = target.shortcut
    if shortcut.takes(candidates) and shortcut.knows(condition):
        zone = session_zone_name(target.spark)
        known = None if condition is None else local_condition(condition, zone)
        done = shortcut.done(
            pending,
            lambda writer: rewrite_target(in_driver(writer, known), writer.pending),
            is_checked=on_spark.command != "DELETE",  # rows that stay may break later rules
        )
        if done is not None:
            return done
    return rewrite_target(on_spark, pending)
