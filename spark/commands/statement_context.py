"""`SparkStatements`: statements whose many rows move on Spark, over the session's names."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.maintenance.convert.conversion_commit import ReadFooters
from optimist.core.maintenance.copies.copied_files import CopyFiles
from optimist.core.maintenance.optimize.optimize import BinWriter
from optimist.core.maintenance.vacuum.file_deletion import DeleteFiles, delete_here
from optimist.core.snapshot import Snapshot
from optimist.core.sql.statements import SqlText, TableName
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.alter import changes_of
from optimist.spark.commands.catalog.names import named_table, table_path
from optimist.spark.commands.clone_copies import SparkCopies
from optimist.spark.commands.maintenance.convert import SparkFooters
from optimist.spark.commands.maintenance.optimize import SparkBins, files_in_partitions
from optimist.spark.commands.maintenance.vacuum import SparkDeletions
from optimist.spark.commands.reading.read import epoch_millis
from optimist.spark.session.conf import open_log, session_zone_name
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["SparkStatements"]


class SparkStatements(StatementContext):
    """Finds the tables of a session, and moves many rows by its jobs.

    Args:
        spark: A classic session, or a Spark Connect client.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        return session_zone_name(self._spark)

    @property
    def num_tasks_at_once(self) -> int:
        """The number of tasks that run at the same time, or 0 for a client, which can't tell."""
        spark = self._spark
        return 0 if is_connect(spark) else spark.sparkContext.defaultParallelism

    def open_path(self, path: str) -> DeltaLog:
        """Return the table at a path, which need not exist."""
        return open_log(self._spark, path)

    def open_name(self, name: TableName) -> DeltaLog:
        """Return the table of a name in the session's catalog (`table_path`)."""
        return open_log(self._spark, table_path(self._spark, str(name)))

    def named_rows(self, name: TableName) -> pa.Table | None:
        """Return None: a session has views for that."""
        del name
        return None

    def shown_name(self, name: TableName) -> str | None:
        """Return the name of a table in its catalog, or None for a path."""
        entry = None if name.path is not None else named_table(self._spark, str(name))[1]
        return None if entry is None else entry.shown_name

    def epoch_ms(self, text: str) -> int:
        """Return a time as Spark reads it, in the session's zone."""
        return epoch_millis(self._spark, text)

    def rows(self, source: TableName | SqlText, clause: str) -> pa.Table:
        """Return the rows of a table, a view or a query."""
        del clause
        return self._frame(source).toArrow()

    def _frame(self, source: TableName | SqlText) -> DataFrame:
        if isinstance(source, SqlText):
            return self._spark.sql(source.sql)
        if source.path is not None:
            return self._spark.read.format("delta").load(source.path)
        return self._spark.table(str(source))

    def bins(self, log: OpenTable) -> BinWriter:
        """Return what writes bins: small ones in the driver, others by jobs."""
        return SparkBins(self._spark, self._log(log))

    def in_partitions(self, log: OpenTable, where: str) -> Callable[[Snapshot], pa.Table]:
        """Return what gives the files of partitions, by a condition that Spark resolves."""
        return files_in_partitions(self._spark, self._log(log), where)

    def changes(self, log: OpenTable) -> TableChanges:
        """Return the changes of a table, with Spark for rules and rows that need it."""
        return changes_of(self._spark, self._log(log))

    def deletes(self, log: OpenTable) -> DeleteFiles:
        """Return what deletes files: many of them by a job, if the options ask for it."""
        options = log.options
        if not options.vacuum_parallel_delete_enabled:
            return delete_here
        return SparkDeletions(self._spark, options.vacuum_parallel_delete_parallelism)

    def copies(self, source: OpenTable) -> CopyFiles:
        """Return what copies files: many bytes by a job."""
        return SparkCopies(self._spark, source.options.driver_shortcut_max_bytes)

    def footers(self) -> ReadFooters:
        """Return what reads footers: many of them by a job."""
        return SparkFooters(self._spark)

    @staticmethod
    def _log(log: OpenTable) -> DeltaLog:
        assert isinstance(log, DeltaLog)  # noqa: S101 - they come from `open_log`
        return log
