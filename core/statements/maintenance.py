"""OPTIMIZE, REORG, VACUUM, RESTORE and the other statements that maintain a table."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

import pyarrow as pa

from optimist.core.commands.manifests import generate_manifests
from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.local.compaction import LocalBins
from optimist.core.local.merge.stored_source import batches_of
from optimist.core.local.recomputed_statistics import recompute_statistics
from optimist.core.local.target import LocalTarget
from optimist.core.maintenance.copies.restore import RestoredTable, RestoreTo
from optimist.core.maintenance.copies.restore import restore as restore_table
from optimist.core.maintenance.features.drop_feature import DropRequest
from optimist.core.maintenance.features.drop_feature import drop_feature as drop
from optimist.core.maintenance.features.feature_removal import CaredFor
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.optimize.dropped_columns import columns_by_footers
from optimist.core.maintenance.optimize.optimize import optimize as optimize_table
from optimist.core.maintenance.optimize.optimize_metrics import Optimized
from optimist.core.maintenance.vacuum.vacuum import Vacuumed, VacuumRequest
from optimist.core.maintenance.vacuum.vacuum import vacuum as vacuum_files
from optimist.core.requests.alterations import DropFeature
from optimist.core.runtime.budget import Budget, within_budget
from optimist.core.runtime.progress import ProgressReport
from optimist.core.snapshot.table_detail import table_detail
from optimist.core.snapshot.time_travel import commit_history
from optimist.core.sql.statements import (
    Analyze,
    DescribeDetail,
    DescribeHistory,
    Generate,
    Optimize,
    Reorg,
    Restore,
    TimeTravel,
    Vacuum,
)
from optimist.core.statements.context import OpenTable, StatementContext, begin
from optimist.core.statements.history import detail_rows, history_rows
from optimist.core.statements.optimized import optimized_rows
from optimist.core.statements.result_rows import NO_ROWS, restored_rows, vacuumed_rows

__all__ = [
    "analyze",
    "describe_detail",
    "describe_history",
    "drop_feature",
    "generate",
    "history_of",
    "optimize",
    "rearrange",
    "reorg",
    "restore",
    "restore_to",
    "vacuum",
    "vacuum_table",
]


def describe_history(_: StatementContext, log: OpenTable, statement: DescribeHistory) -> pa.Table:
    """Run DESCRIBE HISTORY."""
    return history_of(log, statement.limit)


def history_of(log: OpenTable, limit: int | None) -> pa.Table:
    """Return the commits that the log holds, newest first, at most `limit` of them."""
    table = log.table
    with _budget(log):
        latest = log.snapshot().version
        records = commit_history(table.store, table.log_path, limit=limit, latest_version=latest)
    return history_rows(records)


def describe_detail(
    context: StatementContext, log: OpenTable, statement: DescribeDetail
) -> pa.Table:
    """Run DESCRIBE DETAIL."""
    with _budget(log):
        return detail_rows(table_detail(log.snapshot()), context.shown_name(statement.table))


def generate(_: StatementContext, log: OpenTable, statement: Generate) -> pa.Table:
    """Run GENERATE."""
    with _budget(log):
        generate_manifests(log.table, log.snapshot(), statement.mode)
    return NO_ROWS


def analyze(_: StatementContext, log: OpenTable, statement: Analyze) -> pa.Table:
    """Run ANALYZE TABLE ... COMPUTE DELTA STATISTICS."""
    del statement
    with _budget(log):
        report = ProgressReport(log.table.clock, None, "COMPUTE STATS")
        recompute_statistics(LocalTarget(begin(log)(), report), None)
    return NO_ROWS


def optimize(context: StatementContext, log: OpenTable, statement: Optimize) -> pa.Table:
    """Run OPTIMIZE."""
    wanted = Rearrangement(z_order_by=statement.zorder_by, is_full=statement.is_full)
    where = None if statement.where is None else statement.where.sql
    return rearrange(context, log, wanted, where)


def reorg(context: StatementContext, log: OpenTable, statement: Reorg) -> pa.Table:
    """Run REORG TABLE ... APPLY (PURGE).

    Raises:
        UsageError: It is APPLY (UPGRADE UNIFORM) (kind `OPTIMIST_NOT_BUILT_YET`).
    """
    if statement.uniform_version is not None:
        raise not_built_yet(f"{statement.statement} APPLY (UPGRADE UNIFORM)")
    wanted = Rearrangement(purges=True, columns_of=columns_by_footers(log.table))
    return rearrange(context, log, wanted, None if statement.where is None else statement.where.sql)


def rearrange(
    context: StatementContext, log: OpenTable, wanted: Rearrangement, where: str | None = None
) -> pa.Table:
    """Write files of a table again, and return the row of OPTIMIZE.

    Args:
        context: Who writes the files.
        log: The table.
        wanted: What is asked for, without a condition.
        where: SQL over partition columns; None for all partitions.
    """
    if where is not None:
        wanted = replace(wanted, chosen=context.in_partitions(log, where), text=where)
    done = _write_again(context, log, wanted)
    return optimized_rows(done, log.snapshot(), context.num_tasks_at_once)


def _write_again(context: StatementContext, log: OpenTable, wanted: Rearrangement) -> Optimized:
    return optimize_table(begin(log), context.bins(log), wanted)


def vacuum(context: StatementContext, log: OpenTable, statement: Vacuum) -> pa.Table:
    """Run VACUUM."""
    hours, inventory = statement.retain_hours, None
    if statement.inventory is not None:
        inventory = context.rows(statement.inventory, "VACUUM ... USING INVENTORY")
    request = VacuumRequest(
        None if hours is None else float(hours),
        statement.is_dry_run,
        statement.mode,
        None if inventory is None else batches_of(inventory),
    )
    done = vacuum_table(context, log, request)
    return vacuumed_rows(done, log.table.table_path, is_dry_run=statement.is_dry_run)


def vacuum_table(context: StatementContext, log: OpenTable, request: VacuumRequest) -> Vacuumed:
    """Delete the files that no version within the retention period needs."""
    with _budget(log):
        return vacuum_files(begin(log), replace(request, delete=context.deletes(log)))


def restore(context: StatementContext, log: OpenTable, statement: Restore) -> pa.Table:
    """Run RESTORE."""
    return restored_rows(restore_to(context, log, statement.travel))


def restore_to(
    context: StatementContext, log: OpenTable, travel: TimeTravel
) -> RestoredTable | None:
    """Bring a table back to a version or a time, or return None if it is there.

    Raises:
        UsageError: The text is no time (kind `DELTA_TIMESTAMP_INVALID`).
        TableError, ConcurrentWriteException: See `core.maintenance.copies.restore`.
    """
    text = travel.timestamp
    to = RestoreTo(travel.version, None if text is None else context.epoch_ms(text), text)
    return restore_table(begin(log)(), to, log.snapshot)


def drop_feature(context: StatementContext, log: OpenTable, change: DropFeature) -> None:
    """Remove a feature from a table's protocol (`DeltaLog.drop_feature`)."""
    purges = Rearrangement(purges=True)
    table = CaredFor(begin(log), lambda: _write_again(context, log, purges), LocalBins())
    drop(table, DropRequest(change.feature, change.truncates_history))


def _budget(log: OpenTable) -> AbstractContextManager[Budget]:
    return within_budget(log.clock, log.options.storage_budget_s)
