"""Work that the driver does itself, on Arrow, if a Spark job would cost more than the work.

The driver does it only if the result equals Spark's under every conf of the session: conditions and
values are the expressions that Spark analysed, and the engine can evaluate every part of them
exactly. Spark does all work that is in doubt, that fails (also in Arrow), or that needs a file
which the driver can't read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.parquet.parquet_format import DEFAULT_CODEC
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.paths import scheme_of
from optimist.core.predicates import Predicate
from optimist.core.runtime.progress import ProgressReport
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.row_filter import is_exact
from optimist.spark.arrow.plane import ArrowPlane
from optimist.spark.commands.writing.data_writer import DataWriter
from optimist.spark.commands.writing.write_options import session_value
from optimist.spark.conditions.condition import Condition
from optimist.spark.planes.planes import RowPlane
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["DriverShortcut", "can_be_read_for", "local_condition", "readable_bytes"]

_LOG = logging.getLogger(__name__)
_LEAST_BYTES = 1 << 20
"""The cost of opening a file, as bytes that could be read in that time."""
_FAILURES = (OptimistError, pa.ArrowException)
"""Errors after which Spark does the work: nothing is committed, and written files are removed."""
_Result = TypeVar("_Result")


def readable_bytes(spark: SparkSession, table: TableRef, plane: RowPlane) -> int:
    """Return how many bytes of a table this process may read instead of Spark.

    Args:
        spark: The session.
        table: The table.
        plane: The plane that serves it in Spark.

    Returns:
        0 if perhaps only Hadoop can reach the files, and this process can't.
    """
    is_local = scheme_of(table.table_path) in ("", "file")
    can_read = not is_connect(spark) and (is_local or isinstance(plane, ArrowPlane))
    return table.options.driver_shortcut_max_bytes if can_read else 0


def reading_cost(files: pa.Table) -> int:
    """Return the cost of reading files in bytes, including the cost of opening them.

    Args:
        files: Rows of `Snapshot.files`.
    """
    costs = pc.max_element_wise(files["size"], _LEAST_BYTES)
    return int(pc.sum(costs, min_count=0).as_py())


def can_be_read_for(snapshot: Snapshot, max_bytes: int, predicate: Predicate | None = None) -> bool:
    """Return whether the files that may hold matching rows cost at most so much to read.

    The list of files is read only up to the one that costs too much.
    """

    def is_cheap(batches: Iterator[pa.RecordBatch]) -> bool:
        left = max_bytes
        for batch in batches:
            left -= reading_cost(pa.Table.from_batches([batch]))
            if left < 0:
                return False
        return True

    return max_bytes > 0 and snapshot.read_columns(("size",), is_cheap, predicate)


@dataclass(frozen=True, slots=True)
class DriverShortcut:
    """The driver, which does all or nothing of one command's work.

    Attributes:
        spark: The session.
        writer: The table.
    """

    spark: SparkSession
    writer: DataWriter

    @property
    def max_bytes(self) -> int:
        """The most bytes that it reads, or 0 if it does not serve the table."""
        return readable_bytes(self.spark, self.writer.txn.table, self.writer.plane)

    def takes(self, files: pa.Table) -> bool:
        """Check whether these files are few and small enough to be read.

        Args:
            files: Rows of `Snapshot.files`.
        """
        limit = self.max_bytes
        return limit > 0 and reading_cost(files) <= limit

    def takes_rows(self, predicate: Predicate | None = None) -> bool:
        """Check the same of all files that may hold matching rows, or of all files without one."""
        return can_be_read_for(self.writer.txn.snapshot, self.max_bytes, predicate)

    def knows(self, condition: Condition | None) -> bool:
        """Check whether it evaluates a condition exactly as Spark does."""
        if condition is None:
            return True
        schema = self.writer.txn.snapshot.schema
        return condition.is_of_the_row and is_exact(condition.predicate, schema)

    def matching_partitions(self, files: pa.Table, condition: Condition) -> pa.Table | None:
        """Return the files in matching partitions by the log alone, or None if Spark must search.

        Args:
            files: Rows of `Snapshot.files`.
            condition: The condition, which names only partition columns.
        """
        if not (self.max_bytes and self.knows(condition)):
            return None
        try:
            known = local_condition(condition, session_zone_name(self.spark))
            return known.matching_partitions(self.writer.txn.snapshot, files)
        except _FAILURES as error:
            _LOG.debug(
                "Spark looks for the partitions, as this process can't: %s", _cause_of(error)
            )
            return None

    def done(
        self,
        pending: UncommittedFiles,
        work: Callable[[RowWriter], _Result],
        *,
        is_checked: bool = True,
    ) -> _Result | None:
        """Return the result of work with the table's rows, or None if Spark must do it.

        If it returns None, all files that the work wrote are removed.

        Args:
            pending: Takes care of the written files.
            work: The work.
            is_checked: True if the written rows must obey the table's rules.
        """
        txn = self.writer.txn
        if txn.metadata != txn.snapshot.metadata:
            return None  # new columns: Spark shapes the rows
        try:
            with UncommittedFiles(txn, within=pending) as own:
                result = work(
                    RowWriter(
                        self._target(),
                        own,
                        is_checked=is_checked,
                        codec=session_value(self.spark, "compression") or DEFAULT_CODEC,
                        max_rows_per_file=session_value(self.spark, "maxRecordsPerFile") or None,
                    )
                )
        except _FAILURES as error:
            _LOG.debug("Spark does the work, as this process can't: %s", _cause_of(error))
            return None
        pending.adopt(own)
        return result

    def _target(self) -> LocalTarget:
        txn = self.writer.txn
        report = ProgressReport(txn.table.clock, None, "the work in the driver")
        return LocalTarget(txn, report, session_zone_name(self.spark))


def _cause_of(error: Exception) -> str:
    """Return the cause for the log, without Arrow's text, which may show values."""
    return error.kind if isinstance(error, OptimistError) else type(error).__name__


def local_condition(condition: Condition, zone: str) -> LocalCondition:
    """Return a known condition in the form that the shortcut evaluates, in the session's zone."""
    return LocalCondition(condition.text, condition.predicate, condition.is_partition_only, zone)
