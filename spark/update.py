"""UPDATE by copy on write (spec 10.15, profile U of 2.13).

1. Where the condition names data columns, one pass finds the files with matching rows; otherwise
   every candidate counts.
2. All rows of those files are written again, the matching ones with their new values. Generated
   columns that are not assigned are computed again, and every constraint is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.rewritable_files import ensure_rewritable
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.errors import UsageError
from optimist.core.log.file_table import add_files
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.protocol.actions import Action, AddFile
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.types import StructField, StructType
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.checks import row_checks, with_checks
from optimist.spark.commands.data_writer import DataWriter
from optimist.spark.commands.write_options import conf_txn
from optimist.spark.condition import Condition, resolve_condition
from optimist.spark.idempotence import is_replay, progress
from optimist.spark.planes.planes import plane_of
from optimist.spark.rows.row_shape import column_of, with_declared_length, without_void
from optimist.spark.rows.touched_files import aliased, matching_partitions
from optimist.spark.spark_schema import VOID, to_spark_type

__all__ = ["update"]


@dataclass(frozen=True, slots=True)
class _Target:
    """The files an update rewrites; `num_matching` is None where every row of them matches."""

    files: pa.Table
    num_matching: int | None


def update(
    spark: SparkSession,
    log: DeltaLog,
    condition: Column | str | None,
    assignments: Mapping[str, Column | str],
    *,
    alias: str | None = None,
) -> CommitResult | None:
    """Set columns to new values where the condition is true; in all rows without one.

    Args:
        spark: The session.
        log: The table.
        condition: SQL text or a column.
        assignments: Column names to new values, SQL text or columns; they see the row as it was.
        alias: The name the condition and the values may use for the table.

    Returns:
        The commit, or None if nothing matched and nothing had to be recorded.

    Raises:
        DeltaConcurrentModificationException: Another commit changed what this one read; nothing is
            updated.
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        SchemaError: A new value violates a constraint.
        UsageError: A column that does not exist is assigned, or a field inside a struct; or the
            condition is not deterministic.
    """
    log.update()
    txn = log.start_transaction()
    identity = conf_txn(log.options)
    if is_replay(txn, identity):
        return None
    txn.ensure_writable()
    writer = DataWriter(plane_of(spark, log), log, txn)
    job = _Update.of(spark, writer, condition, assignments, alias)
    started_s = log.clock.monotonic_s()
    with UncommittedFiles(log) as pending:
        target = job.target()
        scanned_s = log.clock.monotonic_s()
        written = job.rewrite(target, pending)
        removed = add_files(target.files)
        now_ms = log.clock.now_ms()
        removes = tuple(add.remove(now_ms) for add in removed)
        actions: tuple[Action, ...] = (*progress(log, identity), *removes, *written.adds)
        ended_s = log.clock.monotonic_s()
        metrics = _metrics(removed, written, target.num_matching) | {
            "executionTimeMs": round((ended_s - started_s) * 1000),
            "scanTimeMs": round((scanned_s - started_s) * 1000),
            "rewriteTimeMs": round((ended_s - scanned_s) * 1000),
        }
        return pending.commit(txn, actions, job.operation().with_metrics(metrics))


@dataclass(frozen=True, slots=True)
class _Update:
    """One update, its expressions resolved."""

    spark: SparkSession
    writer: DataWriter
    condition: Condition | None
    assignments: Mapping[str, Column]
    alias: str | None

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        writer: DataWriter,
        condition: Column | str | None,
        assignments: Mapping[str, Column | str],
        alias: str | None,
    ) -> _Update:
        snapshot = writer.txn.snapshot
        frame = aliased(writer.plane.scan(snapshot), alias)
        resolved = None
        if condition is not None:
            resolved = resolve_condition(
                frame,
                condition,
                schema=snapshot.schema,
                partition_columns=snapshot.partition_columns,
            )
        job = cls(spark, writer, resolved, _assignments(assignments, snapshot.schema), alias)
        _ = job.updated(frame).schema  # Spark resolves the values now, before anything is read
        return job

    def operation(self) -> Operation:
        return Operation.update([self.condition.text] if self.condition else [])

    def target(self) -> _Target:
        """The files to rewrite."""
        snapshot, condition = self.writer.txn.snapshot, self.condition
        predicate = condition.predicate if condition else None
        candidates = self.writer.txn.filter_files(predicate)
        if condition is None:
            return _Target(candidates, None)
        if condition.is_partition_only:
            matching = matching_partitions(
                self.spark, snapshot, candidates, condition, alias=self.alias
            )
            return _Target(matching, None)
        if candidates.num_rows == 0:
            return _Target(candidates, 0)
        touched = self.writer.plane.touched_files(snapshot, candidates, condition, alias=self.alias)
        return _Target(touched.table, touched.num_matching)

    def rewrite(self, target: _Target, pending: UncommittedFiles) -> WrittenFiles:
        """Write the rows of the files again."""
        if target.files.num_rows == 0:
            return WrittenFiles()
        snapshot = self.writer.txn.snapshot
        ensure_rewritable(snapshot, "UPDATE")
        frame = aliased(self.writer.plane.scan(snapshot, target.files), self.alias)
        checks = row_checks(snapshot.schema, snapshot.metadata.configuration)
        return self.writer.write(with_checks(self.updated(frame), checks), pending)

    def updated(self, frame: DataFrame) -> DataFrame:
        """The rows with their new values, in the table's columns and types."""
        schema = self.writer.txn.snapshot.schema
        matches = sf.lit(True)
        if self.condition is not None:
            matches = sf.coalesce(self.condition.column, sf.lit(False))
        columns = [
            self._new_value(field, matches).alias(field.name)
            for field in schema
            if field.data_type != VOID
        ]
        rows = frame.select(*columns)
        regenerated = self._regenerated(schema)
        if regenerated:
            rows = rows.withColumns(regenerated)
        return without_void(rows, schema)

    def _new_value(self, field: StructField, matches: Column) -> Column:
        value = self.assignments.get(field.name)
        if value is None:
            return column_of(field.name)
        cast = with_declared_length(value.cast(to_spark_type(field.data_type)), field)
        return sf.when(matches, cast).otherwise(column_of(field.name))

    def _regenerated(self, schema: StructType) -> dict[str, Column]:
        """Generated columns follow the columns they are computed from."""
        return {
            field.name: sf.expr(sql).cast(to_spark_type(field.data_type))
            for field in schema
            if (sql := generation_expression(field)) and field.name not in self.assignments
        }


def _assignments(given: Mapping[str, Column | str], schema: StructType) -> dict[str, Column]:
    """The new values by the table's spelling of the columns."""
    if not given:
        raise UsageError(
            "There is nothing to update: name at least one column and its new value.",
            kind="OPTIMIST_EMPTY_UPDATE",
        )
    found: dict[str, Column] = {}
    for name, value in given.items():
        path = parse_column_path(name)
        if len(path) > 1 and schema.find(path[0]) is None:
            path = path[1:]  # the table's alias
        field = schema.find(path[0])
        if field is None:
            raise UsageError(
                f"The table has no column {name} to update; its columns are "
                f"{', '.join(schema.names)}. Nothing "
                "was written.",
                kind="DELTA_COLUMN_NOT_FOUND",
                column=name,
                candidates=schema.names,
            )
        if len(path) > 1:
            raise UsageError(
                f"{name} is a field inside a struct; updating those alone is not supported yet. "
                "Set the whole "
                f"column {path[0]} with a struct() expression. Nothing was written.",
                kind="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                column=name,
            )
        if field.name in found:
            raise UsageError(
                f"The column {field.name} is assigned twice. Nothing was written.",
                kind="DELTA_CONFLICT_SET_COLUMN",
                column=field.name,
            )
        found[field.name] = sf.expr(value) if isinstance(value, str) else value
    return found


def _metrics(
    removed: tuple[AddFile, ...], written: WrittenFiles, num_matching: int | None
) -> dict[str, object]:
    num_updated = written.num_rows if num_matching is None else num_matching
    return {
        "numRemovedFiles": len(removed),
        "numAddedFiles": len(written.adds),
        "numAddedChangeFiles": 0,
        "numDeletionVectorsAdded": 0,
        "numDeletionVectorsRemoved": 0,
        "numDeletionVectorsUpdated": 0,
        "numUpdatedRows": num_updated,
        "numCopiedRows": written.num_rows - num_updated,
        "numRemovedBytes": sum(add.size for add in removed),
        "numAddedBytes": written.size_bytes,
    }
