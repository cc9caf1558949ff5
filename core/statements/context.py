"""`StatementContext`: how statements find the tables that they name, and who moves the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from optimist.core.commands.alter.table_changes import AlterableTable, TableChanges
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.expressions.moments import Moment
from optimist.core.local.compaction import LocalBins
from optimist.core.local.merge.stored_source import Source, stored_source
from optimist.core.local.partition_choice import files_in_partitions
from optimist.core.log.timestamps import parse_timestamp
from optimist.core.maintenance.convert.conversion_commit import ReadFooters
from optimist.core.maintenance.convert.convert import read_footers
from optimist.core.maintenance.copies.copied_files import CopyFiles, copy_here
from optimist.core.maintenance.optimize.optimize import BinWriter
from optimist.core.maintenance.vacuum.file_deletion import DeleteFiles, delete_here
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.local_scan import RowRequest, stream_rows
from optimist.core.sql.statements import SqlText, TableName
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["OpenTable", "StatementContext", "begin", "needs_spark"]


class OpenTable(AlterableTable, Protocol):
    """A table as statements need it, such as a `DeltaLog`."""

    @property
    def table(self) -> TableRef:
        """The path of the table, its store and its options."""

    def snapshot(self, version: int | None = None, timestamp: str | int | None = None) -> Snapshot:
        """Return a version of the table, the newest without arguments."""


class StatementContext(ABC):
    """Finds the tables of statements, and moves their rows in this process.

    The context of Spark moves many rows on the executors instead, and finds names in a catalog.
    """

    @property
    def zone(self) -> str | None:
        """The time zone of the session; None for that of each table's options."""
        return None

    def zone_of(self, log: OpenTable) -> str:
        """Return the time zone of a table's times that are written without one."""
        return self.zone or log.table.options.zone

    @property
    def num_tasks_at_once(self) -> int:
        """The number of tasks that run at the same time, or 0 if nobody can tell."""
        return 1

    @abstractmethod
    def open_path(self, path: str) -> OpenTable:
        """Return the table at a path, which need not exist."""

    @abstractmethod
    def open_name(self, name: TableName) -> OpenTable:
        """Return the table of a name that is no path.

        Raises:
            UsageError: Nobody here knows the name.
        """

    @abstractmethod
    def named_rows(self, name: TableName) -> pa.Table | None:
        """Return the rows that the caller gives under a name, or None for other names."""

    def open(self, name: TableName) -> OpenTable:
        """Return the table that a statement names by a path or otherwise."""
        return self.open_name(name) if name.path is None else self.open_path(name.path)

    def shown_name(self, name: TableName) -> str | None:
        """Return the name of a table in its catalog, or None for a table without one."""
        del name
        return None

    def told_name(self, name: TableName) -> TableName:
        """Return the name by which errors tell a table."""
        return name

    def epoch_ms(self, text: str) -> int:
        """Return the time that a text says, in epoch milliseconds."""
        return parse_timestamp(text)

    def rows(self, source: TableName | SqlText, clause: str) -> Source:
        """Return the rows of a table or a query that a statement names.

        Args:
            source: The table or the query.
            clause: The words of the statement before it, for the error.

        Raises:
            UsageError: It is a query, which only Spark can run.
        """
        if isinstance(source, SqlText):
            raise needs_spark(f"{clause} with a query", "Name a table or rows in its place.")
        given = self.named_rows(source)
        if given is not None:
            return given
        log = self.open(source)
        snapshot = log.snapshot()
        request = RowRequest.of(snapshot, None, None)
        batches = stream_rows(snapshot, request, access=log.table.data_access())
        return stored_source(pa.RecordBatchReader.from_batches(request.arrow_schema, batches))

    def bins(self, log: OpenTable) -> BinWriter:
        """Return what writes the bins of an OPTIMIZE."""
        del log
        return LocalBins()

    def in_partitions(self, log: OpenTable, where: str) -> Callable[[Snapshot], pa.Table]:
        """Return what gives the files of the partitions for which a condition is true."""
        return files_in_partitions(
            where,
            log.snapshot(),
            Moment(log.table.clock.now_ms(), log.table.options.session_time_zone),
        )

    def changes(self, log: OpenTable) -> TableChanges:
        """Return what changes a table's schema, properties and so on."""
        return TableChanges(log)

    def deletes(self, log: OpenTable) -> DeleteFiles:
        """Return what deletes the files of a VACUUM."""
        del log
        return delete_here

    def copies(self, source: OpenTable) -> CopyFiles:
        """Return what copies the files of a deep clone."""
        del source
        return copy_here

    def footers(self) -> ReadFooters:
        """Return what reads the footers of files."""
        return read_footers


def begin(log: OpenTable) -> Callable[[], OptimisticTransaction]:
    """Return what starts a transaction on the newest version of an existing table."""
    return lambda: log.start_transaction(log.snapshot())


def needs_spark(what: str, way_out: str = "") -> UsageError:
    """Return the error for what only Spark can run.

    Args:
        what: The statement or its part, the subject of a sentence.
        way_out: What else helps, as a sentence.
    """
    return UsageError(
        f"{what} needs Spark. Nothing was read or written. Run the statement with spark.sql in a "
        f"session that Optimist is enabled for.{' ' * bool(way_out)}{way_out}",
        kind="OPTIMIST_NEEDS_SPARK",
        part=what,
    )
