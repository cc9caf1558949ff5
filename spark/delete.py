"""DELETE by copy on write (spec 10.15, profiles D0, DP and DX of 2.13).

1. Without a condition, and where only partition columns decide, whole files go and no row is read.
2. Otherwise one pass finds the files with matching rows, out of those that statistics leave.
3. Those files go, and what stays of their rows is written again.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.rewritable_files import ensure_rewritable, num_records
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import Action, AddFile
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.data_writer import DataWriter
from optimist.spark.commands.write_options import conf_txn
from optimist.spark.condition import Condition, resolve_condition
from optimist.spark.idempotence import is_replay, progress
from optimist.spark.planes.planes import plane_of
from optimist.spark.rows.row_shape import without_void
from optimist.spark.rows.touched_files import TouchedFiles, aliased, matching_partitions

__all__ = ["Deletion", "delete", "plan_deletion", "removal_actions"]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a delete does to the files.

    Attributes:
        removed: The files that go.
        kept_rows: What was written again of them.
        num_deleted: Rows that go; None where only whole files go and their rows were not counted.
        scan_ms: How long the search took.
        rewrite_ms: How long the writing took.
    """

    removed: tuple[AddFile, ...]
    kept_rows: WrittenFiles
    num_deleted: int | None
    scan_ms: int
    rewrite_ms: int


def delete(
    spark: SparkSession,
    log: DeltaLog,
    condition: Column | str | None = None,
    *,
    alias: str | None = None,
) -> CommitResult | None:
    """Delete the rows for which the condition is true; all rows without one.

    Returns:
        The commit, or None if nothing matched and nothing had to be recorded.

    Raises:
        DeltaConcurrentModificationException: Another commit changed what this one read; nothing is
            deleted.
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        UsageError: The condition is not deterministic or holds a subquery.
    """
    log.update()
    txn = log.start_transaction()
    identity = conf_txn(log.options)
    if is_replay(txn, identity):
        return None
    txn.ensure_writable()
    started_s = log.clock.monotonic_s()
    with UncommittedFiles(log) as pending:
        writer = DataWriter(plane_of(spark, log), log, txn)
        resolved = None if condition is None else _resolved(writer, condition, alias)
        deletion = plan_deletion(spark, writer, resolved, pending, alias=alias)
        actions = removal_actions(log, deletion)
        if actions:
            actions = (*progress(log, identity), *actions)
        elapsed_ms = round((log.clock.monotonic_s() - started_s) * 1000)
        operation = Operation.delete([resolved.text] if resolved else ["true"])
        metrics = _metrics(deletion, elapsed_ms)
        return pending.commit(txn, actions, operation.with_metrics(metrics))


def plan_deletion(
    spark: SparkSession,
    writer: DataWriter,
    condition: Condition | None,
    pending: UncommittedFiles,
    *,
    alias: str | None = None,
) -> Deletion:
    """Find the files that hold matching rows, and write again what stays of them."""
    txn, clock = writer.txn, writer.log.clock
    started_s = clock.monotonic_s()
    candidates = txn.filter_files(None if condition is None else condition.predicate)
    if condition is not None and condition.is_partition_only:
        candidates = matching_partitions(spark, txn.snapshot, candidates, condition, alias=alias)
    if condition is None or condition.is_partition_only:
        scan_ms = round((clock.monotonic_s() - started_s) * 1000)
        return Deletion(add_files(candidates), WrittenFiles(), None, scan_ms, 0)
    touched = TouchedFiles(candidates, 0)
    if candidates.num_rows:
        touched = writer.plane.touched_files(txn.snapshot, candidates, condition, alias=alias)
    scanned_s = clock.monotonic_s()
    kept = WrittenFiles()
    if touched.table.num_rows:
        kept = _rewrite(writer, touched.table, condition, pending, alias)
    return Deletion(
        removed=touched.adds,
        kept_rows=kept,
        num_deleted=touched.num_matching,
        scan_ms=round((scanned_s - started_s) * 1000),
        rewrite_ms=round((clock.monotonic_s() - scanned_s) * 1000),
    )


def removal_actions(log: DeltaLog, deletion: Deletion) -> tuple[Action, ...]:
    """The removes, then the adds of the rows that stay."""
    now_ms = log.clock.now_ms()
    return (*(add.remove(now_ms) for add in deletion.removed), *deletion.kept_rows.adds)


def _resolved(writer: DataWriter, condition: Column | str, alias: str | None) -> Condition:
    snapshot = writer.txn.snapshot
    return resolve_condition(
        aliased(writer.plane.scan(snapshot), alias),
        condition,
        schema=snapshot.schema,
        partition_columns=snapshot.partition_columns,
    )


def _rewrite(
    writer: DataWriter,
    touched: pa.Table,
    condition: Condition,
    pending: UncommittedFiles,
    alias: str | None,
) -> WrittenFiles:
    ensure_rewritable(writer.txn.snapshot, "DELETE of single rows")
    frame = aliased(writer.plane.scan(writer.txn.snapshot, touched), alias)
    # A row goes only where the condition is true; null keeps it.
    kept = frame.where(~sf.coalesce(condition.column, sf.lit(False)))
    return writer.write(without_void(kept, writer.txn.snapshot.schema), pending)


def _metrics(deletion: Deletion, elapsed_ms: int) -> dict[str, object]:
    kept = deletion.kept_rows
    metrics: dict[str, object] = {
        "numAddedFiles": len(kept.adds),
        "numRemovedFiles": len(deletion.removed),
        "numDeletionVectorsAdded": 0,
        "numDeletionVectorsRemoved": 0,
        "numDeletionVectorsUpdated": 0,
        "numAddedChangeFiles": 0,
        "executionTimeMs": elapsed_ms,
        "scanTimeMs": deletion.scan_ms,
        "rewriteTimeMs": deletion.rewrite_ms,
        "numRemovedBytes": sum(add.size for add in deletion.removed),
        "numAddedBytes": kept.size_bytes,
    }
    num_deleted = deletion.num_deleted
    if num_deleted is None:
        num_deleted = num_records(deletion.removed)
    if num_deleted is not None:
        metrics |= {"numDeletedRows": num_deleted, "numCopiedRows": kept.num_rows}
    return metrics
