"""The table that a command changes, as the command's expressions see it (spec 10.15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.commands.clones import ensure_own_rows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.data.row_tracking import carried_columns
from optimist.core.log.file_table import FILES_SCHEMA, without_vectors
from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.values.exact_sums import exact_sum
from optimist.spark.commands.dml.driver_shortcut import DriverShortcut
from optimist.spark.commands.dml.matching_partitions import matching_partitions
from optimist.spark.commands.writing.data_writer import DataWriter
from optimist.spark.conditions.bound_condition import BoundCondition
from optimist.spark.conditions.condition import Condition, resolve_condition
from optimist.spark.conditions.fixed_now import FixedNow
from optimist.spark.planes.planes import RowPlane, plane_of
from optimist.spark.rows.places import Places
from optimist.spark.rows.touched_files import aliased, matches_of

__all__ = ["TARGET_ALIAS", "Search", "Target"]

TARGET_ALIAS = "__optimist_target"
"""The alias of the table's rows where the caller has given them none."""

Search: TypeAlias = Callable[[pa.Table], TouchedFiles]
"""Finds which files, given as rows of `Snapshot.files`, hold matching rows, and which rows."""
_ONE_PASS_BYTES = 512 << 20
"""Up to this size, one pass over all columns is faster than two passes over parts of them."""


@dataclass(frozen=True, slots=True)
class Target:
    """One table in one transaction.

    Attributes:
        spark: The session.
        writer: Writes rows into the table.
        began_ms: When the command began, in milliseconds since the epoch.
        alias: The name that conditions and values may use for the table.
    """

    spark: SparkSession
    writer: DataWriter
    began_ms: int
    alias: str | None = None

    @classmethod
    def of(
        cls, spark: SparkSession, log: TableHandle, txn: OptimisticTransaction, alias: str | None
    ) -> Target:
        """Return the table of a transaction, on the plane that its options choose."""
        writer = DataWriter(plane_of(spark, log.table), txn)
        return cls(spark, writer, txn.table.clock.now_ms(), alias)

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        return self.writer.txn

    @property
    def plane(self) -> RowPlane:
        """The plane that moves the rows."""
        return self.writer.plane

    @property
    def snapshot(self) -> Snapshot:
        """The version that the command reads."""
        return self.txn.snapshot

    @property
    def shortcut(self) -> DriverShortcut:
        """The driver, for work that needs no Spark job."""
        return DriverShortcut(self.spark, self.writer)

    def stopwatch(self) -> Stopwatch:
        """Start a stopwatch."""
        return Stopwatch(self.txn.table.clock)

    def columns(self) -> DataFrame:
        """Return the table's columns under the alias, without rows, to resolve expressions."""
        no_file = FILES_SCHEMA.empty_table()
        return aliased(self.plane.scan_files(self.snapshot, no_file), self.alias)

    @property
    def carried(self) -> StructType:
        """The columns with the id and version of a moved row, or none without row tracking.

        Raises:
            TableError: See `carried_columns`.
        """
        return carried_columns(self.snapshot.metadata, self.snapshot.protocol)

    def rows_of(self, files: pa.Table, operation: str) -> DataFrame:
        """Return the rows of files that the command will rewrite, with the columns `carried`.

        Args:
            files: Rows of `Snapshot.files`.
            operation: For the message, for example `UPDATE`.

        Raises:
            TableError: A file is outside the table.
        """
        self.ensure_rewritable(files, operation)
        rows = self.plane.scan_files(self.snapshot, files, with_row_ids=True)
        return aliased(rows, self.alias)

    def ensure_rewritable(self, files: pa.Table, operation: str) -> None:
        """Refuse files whose rows can't be rewritten (see `rows_of`)."""
        ensure_own_rows(self.txn.table, self.snapshot, files, operation)

    def resolve(self, condition: Column | str | BoundCondition, rows: DataFrame) -> Condition:
        """Resolve the condition against `rows`, which must be the result of `columns()`."""
        return resolve_condition(
            rows,
            condition,
            schema=self.snapshot.schema,
            partition_columns=self.snapshot.partition_columns,
            alias=self.alias,
            began_ms=self.began_ms,
        )

    def predicate(self, condition: Column, rows: DataFrame) -> Predicate:
        """Return the parts of a condition by which the engine prunes.

        `rows` are as in `resolve`.
        """
        found = resolve_condition(
            rows,
            condition,
            schema=self.snapshot.schema,
            partition_columns=self.snapshot.partition_columns,
            alias=self.alias,
        )
        return found.predicate

    def fixed_now(self, *frames: DataFrame) -> FixedNow:
        """Fix the current time for all of the command's expressions.

        Args:
            frames: The frames whose columns the expressions may name.
        """
        names = frozenset(name.lower() for frame in frames for name in frame.columns)
        return FixedNow(self.spark, 1000 * self.began_ms, names)

    def search(
        self,
        candidates: pa.Table,
        condition: Condition | None,
        *,
        with_rows: bool = False,
        one_pass: Search | None = None,
    ) -> TouchedFiles:
        """Return the files that hold matching rows.

        If the condition is missing, always true or on only partition columns, no row is read, and
        every row of the files matches.

        Args:
            candidates: The result of `filter_files` for the condition.
            condition: The condition.
            with_rows: Return which rows match, if rows are read.
            one_pass: Spark's search if `with_rows` is true and the files are small; it may do more
                work in that pass.
        """
        if condition is None or condition.is_always_true:
            return TouchedFiles(candidates, None)
        if condition.is_partition_only:
            return TouchedFiles(self.in_matching_partitions(candidates, condition), None)
        if not candidates.num_rows:
            return TouchedFiles(candidates, 0)
        if with_rows and one_pass is not None and _are_worth_one_pass(candidates):
            return one_pass(candidates)
        if with_rows and condition.never_fails:
            # To check only matching rows for deletion costs less than to check each row.
            touched = self._search_files(candidates, without_vectors(candidates), condition)
            return touched.live(self.txn.table)
        return self._search_files(candidates, candidates, condition, with_rows=with_rows)

    def in_matching_partitions(self, files: pa.Table, condition: Condition) -> pa.Table:
        """Return the files in partitions for which a condition is true.

        Args:
            files: Rows of `Snapshot.files`.
            condition: The condition, which names only partition columns.
        """
        found = self.shortcut.matching_partitions(files, condition)
        if found is not None:
            return found
        return matching_partitions(self.spark, self.snapshot, files, condition, alias=self.alias)

    def _search_files(
        self, candidates: pa.Table, read: pa.Table, condition: Condition, *, with_rows: bool = True
    ) -> TouchedFiles:
        """Find the candidates with matching rows, by a query over the files `read`."""
        plane, snapshot = self.plane, self.snapshot
        places = Places.beside(snapshot.schema.names, with_position=with_rows)
        rows = plane.placed_rows(snapshot, read, places, condition.columns)
        found = matches_of(condition.matching(aliased(rows, self.alias)), places)
        return found.files(candidates, plane.find_paths(snapshot, candidates, found.paths))


def _are_worth_one_pass(files: pa.Table) -> bool:
    return exact_sum(files["size"]) <= _ONE_PASS_BYTES
