"""The handle's methods for a table's maintenance: OPTIMIZE, RESTORE, CLONE, VACUUM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import (
    ensure_kind,
    ensure_optional_function,
    ensure_optional_text,
    ensure_text,
    flag,
    whole_number,
    wrong_type,
)
from optimist.core.log.timestamps import Timestamp, epoch_ms, format_timestamp
from optimist.core.plugins.table_path import TablePath
from optimist.core.requests.arguments import several
from optimist.core.runtime.budget import one_operation
from optimist.core.table import by_need
from optimist.core.table.table_handle import TableHandle

if TYPE_CHECKING:
    from optimist.core.local.recomputed_statistics import Recomputed
    from optimist.core.maintenance.copies.clone import ClonedTable
    from optimist.core.maintenance.copies.clone_source import CloneSource
    from optimist.core.maintenance.copies.restore import RestoredTable
    from optimist.core.maintenance.fsck.findings import CheckedTable, UndoneRepair
    from optimist.core.maintenance.fsck.sample import Sample
    from optimist.core.maintenance.optimize.arrangements import Rearrangement
    from optimist.core.maintenance.optimize.optimize_metrics import Optimized
    from optimist.core.maintenance.vacuum.vacuum import Vacuumed, VacuumProgress
    from optimist.core.predicates import Predicate
    from optimist.core.requests.columns import ColumnName
    from optimist.core.requests.table_definition import Columns
    from optimist.core.runtime.progress import Progress
    from optimist.core.transaction.optimistic import OptimisticTransaction
    from optimist.core.transaction.result import CommitResult, MaybeNone

__all__ = ["MaintenanceCommands"]

Inventory: TypeAlias = pa.Table | Iterable[pa.RecordBatch]


class MaintenanceCommands(TableHandle):
    """The methods of `DeltaLog` that maintain a table."""

    @one_operation
    def optimize(
        self,
        predicate: str | Predicate | None = None,
        *,
        z_order_by: Iterable[ColumnName] = (),
        full: bool = False,
        progress: Progress | None = None,
    ) -> Optimized:
        """Make few large files of many small ones. No row changes, and no other writer fails.

        Files below `optimize.minFileSize`, and those of which many rows are deleted, are written
        again in groups of at most `optimize.maxFileSize`, in this process, one group after the
        other. All groups are one commit, unless `optimize.batchSize` says otherwise.

        In a clustered table, the rows since the last OPTIMIZE are arranged by the clustering
        columns, together with earlier rows that were too few to arrange.

        Args:
            predicate: Which partitions: SQL text or a tree over partition columns; None for all.
            z_order_by: Arrange all rows of each partition by these columns, so that each file has
                a narrow range of each of them.
            full: Also arrange rows that are arranged by other clustering columns.
            progress: Called after each group, see `FileProgress`.

        Returns:
            What was done; its `version` is None if there was nothing to do.

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: The predicate names a column that is no partition column, or only Spark can
                evaluate it (kind `OPTIMIST_NEEDS_SPARK`); the columns have no statistics; or the
                table is clustered, and is given a predicate or columns, or it is not, and `full` is
                asked for.
            DeltaConcurrentModificationException: Other commits came first, again and again.
        """
        columns = several(z_order_by, "z_order_by")
        wanted = by_need.Rearrangement(
            z_order_by=tuple(map(by_need.path_of, columns)), is_full=flag(full, "full")
        )
        return self._rearrange(wanted, predicate, progress)

    @one_operation
    def purge(
        self, predicate: str | Predicate | None = None, *, progress: Progress | None = None
    ) -> Optimized:
        """Write files again that have a deletion vector, or hold a column that was dropped.

        That is REORG TABLE ... APPLY (PURGE): readers need no vector any more, and VACUUM can
        remove the deleted rows and columns from the store. Arguments, result and errors are those
        of `optimize`.
        """
        wanted = by_need.Rearrangement(
            purges=True, columns_of=by_need.columns_by_footers(self.table)
        )
        return self._rearrange(wanted, predicate, progress)

    def _purge_vectors(self) -> Optimized:
        return self._rearrange(by_need.Rearrangement(purges=True), None, None)

    def _rearrange(
        self,
        wanted: Rearrangement,
        predicate: str | Predicate | None,
        progress: Progress | None,
    ) -> Optimized:
        if predicate is not None:
            moment = by_need.Moment(self.table.clock.now_ms(), self.table.options.session_time_zone)
            chosen = by_need.files_in_partitions(predicate, self.snapshot(), moment)
            wanted = replace(wanted, chosen=chosen, text=str(predicate))
        ensure_optional_function(progress, "progress")
        return by_need.optimize(self._begin, by_need.LocalBins(progress), wanted)

    def _begin(self) -> OptimisticTransaction:
        """Start a transaction on the newest version, which must exist."""
        return self.start_transaction(self.snapshot())

    @one_operation
    def recompute_statistics(
        self, predicate: str | Predicate | None = None, *, progress: Progress | None = None
    ) -> Recomputed:
        """Compute the statistics anew by which queries skip files. No row changes.

        Use it for files of engines that write no statistics, and after a change of the columns that
        get them. It reads the footer of each file, and its columns of floating-point numbers.

        Args:
            predicate: Which files: those that may hold matching rows; None for all.
            progress: Called after each file, see `FileProgress`.

        Returns:
            What was done; its `commit` is None if all statistics were right already.

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: The predicate does not parse, or names an unknown column, or only Spark can
                evaluate it (kind `OPTIMIST_NEEDS_SPARK`).
            TableError: A file is gone or damaged; or it has another number of rows than the log
                says, and the table tracks its rows (kind `DELTA_NUM_RECORDS_MISMATCH`).
            DeltaConcurrentModificationException: Another commit removed one of the files meanwhile.
        """
        ensure_optional_function(progress, "progress")
        report = by_need.ProgressReport(self.table.clock, progress, "COMPUTE STATS")
        chosen = None if predicate is None else by_need.Predicate.of(predicate)
        return by_need.recompute_statistics(by_need.LocalTarget(self._begin(), report), chosen)

    @one_operation
    def restore(
        self,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        *,
        progress: Progress | None = None,
    ) -> RestoredTable | MaybeNone:
        """Make the table what it was at an older version or time, in one commit.

        No version is lost, so a RESTORE can be undone by another one. Rows are neither read nor
        written. Either a version or a time is given.

        Args:
            version: A version number.
            timestamp: A time, as for `snapshot`.
            progress: Called as it is checked whether the files of the version that the newest one
                lacks are there; see `FileProgress`.

        Returns:
            What was done; None if that is the newest version.

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: Not one of the two is given.
            TableError: The log does not hold the version; or some of its files are gone (kind
                `DELTA_FILE_NOT_FOUND_DETAILED`), unless `spark.sql.files.ignoreMissingFiles` is
                set.
            ConcurrentWriteException: Another commit came first.
        """
        if (version is None) == (timestamp is None):
            raise UsageError(
                "Give a version or a timestamp to restore the table to, and not both.",
                kind="DELTA_ONEOF_IN_TIMETRAVEL",
            )
        to = (
            by_need.RestoreTo(whole_number(version, "version"))
            if timestamp is None
            else by_need.RestoreTo(None, *_time_and_text(timestamp))
        )
        ensure_optional_function(progress, "progress")
        report = by_need.ProgressReport(self.table.clock, progress, "RESTORE")
        return by_need.restore(self.start_transaction(self.snapshot()), to, self.snapshot, report)

    @one_operation
    def clone(  # noqa: PLR0913 - one keyword per part of CLONE
        self,
        target: TablePath,
        *,
        is_shallow: bool = False,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        mode: str = "create",
        properties: Mapping[str, str | bool | int] | None = None,
        source_format: str = "delta",
        partition_columns: Columns = (),
        progress: Progress | None = None,
    ) -> ClonedTable | MaybeNone:
        """Make another table with the rows that this one has, or had, in one commit.

        Args:
            target: The path of the clone, for which the same options hold.
            is_shallow: Whether the clone names the files of this table and copies none. Then it
                needs them, and VACUUM of this table does not know of it.
            version: A version number; the newest version without it and a timestamp.
            timestamp: A time, as for `snapshot`.
            mode: `create`, `create_if_not_exists`, `replace` or `create_or_replace`. A table that
                is replaced must have no files.
            properties: Properties that the clone has instead of this table's, or besides them.
            source_format: `delta`; or what the files at this path are instead: `parquet` for a
                directory of files, `iceberg` for a table of Iceberg, at its newest version.
            partition_columns: The columns that directories of Parquet name, as for `convert`.
            progress: Called after each copied file, and each footer of files that are no Delta
                table; see `FileProgress`.

        Returns:
            What was done; None if there is a table and the mode is `create_if_not_exists`.

        Raises:
            TableNotFoundError: There is no table to clone, or none to replace.
            UsageError: There is a table at the target, or it has files; or other files are there.
                Or the files at this path are no such table, or are a Delta table (kind
                `DELTA_CLONE_UNSUPPORTED_SOURCE`).
            SchemaError, ConfigError: The clone's properties are not sound; or as of `convert`.
            TableError: The log does not hold the version, or some of its files are gone; or the
                clone may not read files from where they are.
            ConcurrentWriteException: Another commit came first at the target.
            StorageError: A store failed. Files that a deep clone has copied stay, and the next call
                goes on from there.
        """
        ensure_optional_function(progress, "progress")
        report = by_need.ProgressReport(self.table.clock, progress, "CLONE")
        copy = partial(by_need.copy_here, report=report)
        how = (is_shallow, by_need.CreateMode.of(mode), by_need.properties_given(properties), copy)
        is_newest = version is None and timestamp is None
        source: CloneSource
        ensure_text(source_format, "source_format")
        if source_format != "delta":
            columns = by_need.schema_given(partition_columns, "partition_columns")
            files = by_need.ConvertRequest(columns, source_format=source_format)
            read = partial(by_need.read_footers, report=report)
            source = by_need.FilesSource.of(self.table, files, read, is_newest=is_newest)
        elif len(by_need.schema_given(partition_columns, "partition_columns")):
            raise UsageError(
                "A Delta table says itself how it is partitioned. Nothing was written. Leave "
                "partition_columns out, or give the source_format of the files.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="partition_columns",
            )
        else:
            newest = self.snapshot()
            found = newest if is_newest else self.snapshot(version, timestamp)
            source = by_need.VersionSource(self.table, found, is_newest)
        return by_need.clone(
            self._at_path(target).start_transaction(), by_need.CloneRequest(source, *how)
        )

    @one_operation
    def drop_feature(self, name: str, *, truncate_history: bool = False) -> CommitResult:
        """Take a feature out of the table's protocol, so that fewer engines are refused by it.

        Commits of their own first remove what the feature has left in the table, and write files
        again where needed. If a run was stopped, the next one continues it.

        Args:
            name: The feature.
            truncate_history: Whether the log of versions older than a day is cut off, instead of
                being protected by the feature `checkpointProtection`.

        Returns:
            The commit that has dropped it.

        Raises:
            TableNotFoundError: There is no table.
            UsageError: The feature is unknown, is not there, is needed by others, or is one that
                can't be dropped.
            SchemaError: CHECK constraints, or names of columns, need it.
            ProtocolError: Versions in the history need it still; wait, and run it again.
            TableError: A checkpoint could not be written.
            DeltaConcurrentModificationException: Other commits came first, again and again.
        """
        ensure_text(name, "name")
        table = by_need.CaredFor(self._begin, self._purge_vectors, by_need.LocalBins())
        return by_need.drop_feature(table, by_need.DropRequest(name, truncate_history))

    @one_operation
    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = False,
        mode: str | None = None,
        inventory: Inventory | None = None,
        progress: Callable[[VacuumProgress], None] | None = None,
    ) -> Vacuumed:
        """Delete the files below the table that no version within the retention period needs.

        Versions that are older can't be read afterwards, nor restored: deleted files are gone.

        Args:
            retention_hours: How long removed files are kept. As in Delta, only None and 0 count,
                unless `vacuum.retentionWindowIgnore.enabled` is off: set the table property
                `delta.deletedFileRetentionDuration` instead.
            dry_run: Only tell what would be deleted.
            mode: `FULL` lists the table's directory; `LITE` takes what was removed from the log,
                and so leaves what no commit has named. None: as the options say, else `FULL`.
            inventory: A list of the table's files, instead of a listing: rows with the columns
                `path`, `length`, `isDir` and `modificationTime` (epoch milliseconds).
            progress: Called now and then; see `VacuumProgress`.

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: The retention is below that of the table (kind
                `DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT`), which only
                `spark.databricks.delta.retentionDurationCheck.enabled=false` allows; or another
                argument is wrong.
            TableError: The log is damaged, or does not tell enough for `LITE`.
            StorageError: The store failed. Some files may be deleted; run it again to go on.
        """
        if retention_hours is not None:
            ensure_kind(retention_hours, "retention_hours", (int, float), "a number of hours")
        ensure_optional_text(mode, "mode")
        batches = None if inventory is None else _batches_of(inventory)
        ensure_optional_function(progress, "progress")
        request = by_need.VacuumRequest(
            retention_hours, flag(dry_run, "dry_run"), mode, batches, progress
        )
        return by_need.vacuum(self._begin, request)

    @one_operation
    def fsck(
        self,
        *,
        deep: bool = False,
        sample: int | str | None = None,
        seed: int | None = None,
        repair: bool = False,
        drop_missing_files: bool = False,
        progress: Progress | None = None,
    ) -> CheckedTable:
        """Check the table for damage, and change nothing unless that is asked for.

        The whole log is read once, and the table's directory listed once. `findings` of the result
        has a row for each damage, with its proof and what to do; docs/fsck.md explains the kinds.

        Args:
            deep: Whether data files and vectors are read, too, and compared with their statistics.
            sample: How many of the data files are read if `deep`: a number, or a percentage such as
                "1%"; they are chosen at random. None reads all. The log is read as a whole anyway.
            seed: A number that chooses the same sample again, `CheckedTable.seed`.
            repair: Whether to repair what can be repaired without the loss of a row. What leaves
                the log is saved first. `findings` is then what is left, and `steps` what was done.
            drop_missing_files: Whether a repair also takes files that are gone out of the table.
                Their rows are lost. It needs `repair`.
            progress: Called after each commit that is read, and if `deep` after each data file; see
                `FileProgress`. A repair checks once more at its end.

        Raises:
            TableNotFoundError: There is no table at the path.
            ProtocolError: The table needs a feature that this engine can't read; or, to repair it,
                can't write.
            UsageError: Missing files should be dropped without a repair; or a sample is not one,
                or is wanted of a check that reads no data files.
            TableError: A repair failed, for example since all files are gone (kind
                `DELTA_FILE_NOT_FOUND_DETAILED`). What it has done before stays.
            StorageError: The store failed. A repair can be run again.
        """
        deep, repair = flag(deep, "deep"), flag(repair, "repair")
        drop_missing_files = flag(drop_missing_files, "drop_missing_files")
        if drop_missing_files and not repair:
            raise UsageError(
                "Only a repair drops missing files. Nothing was done. Ask for the repair, too.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="drop_missing_files",
            )
        part = self._sample(sample, seed, is_deep=deep)
        ensure_optional_function(progress, "progress")
        report = by_need.ProgressReport(self.table.clock, progress, "FSCK")
        if not repair:
            return by_need.check_table(
                self.table, self.snapshot, deep=deep, sample=part, report=report
            )
        drop = self._drop_missing_files if drop_missing_files else None
        commits = by_need.RepairCommits(self._recompute_files, drop)
        return by_need.repair_table(
            self.table, self.snapshot, commits, deep=deep, sample=part, report=report
        )

    @one_operation
    def undo_repair(self, record: str) -> UndoneRepair:
        """Undo what a repair by `fsck` did, where it is still what the repair left.

        Files that left the log are put back from their copies, the checkpoint and the hint that the
        repair wrote are removed, and its commits are undone by another commit. What others have
        written since stays; `steps` of the result tells what was done, and what was left and why.
        An undo that was stopped can be run again.

        Args:
            record: The name of the repair's record, `CheckedTable.record`.

        Raises:
            TableNotFoundError: There is no table at the path.
            ProtocolError: The table needs a feature that this engine can't write.
            UsageError: The table has no such record.
            TableError: The log is not the one that was repaired, or was cleaned up since; or the
                record is damaged (kind `OPTIMIST_REPAIR_NOT_UNDOABLE`). Nothing was done.
            StorageError: The store failed. What was done before stays.
        """
        ensure_text(record, "record")
        commits = by_need.UndoCommits(self._begin, self.snapshot)
        return by_need.undo_repair(self.table, record, commits)

    def _sample(self, size: object, seed: object, *, is_deep: bool) -> Sample | None:
        """Return the sample that a check reads, or None for all files."""
        if size is None and seed is None:
            return None
        if size is None or not is_deep:
            raise UsageError(
                "Only a deep check reads a sample, and only a sample has a seed. Nothing was done. "
                "Ask for the deep check and the sample, too.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="seed" if size is None else "sample",
            )
        return by_need.Sample.of(size, seed, self.table.clock)

    def _drop_missing_files(self) -> CommitResult | None:
        return by_need.drop_missing_files(self._begin())

    def _recompute_files(self, paths: pa.Array) -> CommitResult | None:
        report = by_need.ProgressReport(self.table.clock, None, "COMPUTE STATS")
        target = by_need.LocalTarget(self._begin(), report)
        return by_need.recompute_statistics(target, None, only=paths).commit


def _batches_of(inventory: Inventory) -> Iterator[pa.RecordBatch]:
    if isinstance(inventory, pa.Table):
        return iter(inventory.to_batches())
    if hasattr(inventory, "__arrow_c_stream__"):
        return iter(pa.RecordBatchReader.from_stream(inventory))
    if isinstance(inventory, str | bytes) or not isinstance(inventory, Iterable):
        raise wrong_type("inventory", inventory, "rows, such as a pyarrow.Table")
    return map(_batch_of, inventory)


def _batch_of(item: pa.RecordBatch) -> pa.RecordBatch:
    ensure_kind(item, "inventory", pa.RecordBatch, "rows, such as a pyarrow.Table")
    return item


def _time_and_text(timestamp: Timestamp) -> tuple[int, str]:
    timestamp_ms = epoch_ms(timestamp)
    is_written_so = isinstance(timestamp, str | int)
    return timestamp_ms, str(timestamp) if is_written_so else format_timestamp(timestamp_ms)
