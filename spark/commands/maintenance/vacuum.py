"""VACUUM, with the rows that Delta answers (spec 10.12).

The driver does it without a job; only the files are deleted on the executors, where
`vacuum.parallelDelete.enabled` asks for that and they are more than one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from optimist.core.maintenance.vacuum.file_deletion import DeletionRule, delete_batch, delete_here
from optimist.core.maintenance.vacuum.vacuum import Vacuumed, VacuumRequest
from optimist.core.maintenance.vacuum.vacuum import vacuum as vacuum_files
from optimist.core.paths import scheme_of, with_file_scheme
from optimist.core.runtime.budget import within_budget
from optimist.core.sql import SqlText, TableName
from optimist.core.sql.statements import Vacuum
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.maintenance.executors import on_executors
from optimist.spark.rows.local_rows import answer_frame, local_frame
from optimist.spark.session.task_errors import portable_errors

__all__ = ["VACUUM_SCHEMA", "vacuum", "vacuum_table"]

VACUUM_SCHEMA = StructType([StructField("path", StringType())])
_BATCHES = StructType([StructField("paths", ArrayType(StringType()))])
_COUNT = StructType([StructField("count", LongType())])


def vacuum(spark: SparkSession, log: DeltaLog, command: Vacuum) -> DataFrame:
    """Run the statement.

    Returns:
        The table's path; of a dry run the paths of the files that would be deleted.

    Raises:
        UsageError, TableError, StorageError: See `DeltaLog.vacuum`.
    """
    hours, inventory = command.retain_hours, command.inventory
    request = VacuumRequest(
        float(hours) if isinstance(hours, Decimal) else hours,
        command.is_dry_run,
        command.mode,
        None if inventory is None else iter(_rows(spark, inventory).to_batches()),
    )
    done = vacuum_table(spark, log, request)
    paths = done.paths if command.is_dry_run else pa.array([log.table_path], pa.string())
    if scheme_of(log.table_path) == "":
        paths = pa.array(list(map(with_file_scheme, paths.to_pylist())), pa.string())
    return answer_frame(spark, pa.table({"path": paths}), VACUUM_SCHEMA)


def vacuum_table(spark: SparkSession, log: DeltaLog, request: VacuumRequest) -> Vacuumed:
    """As `DeltaLog.vacuum`; many files are deleted by a job, where the options ask for it."""
    options = log.options
    if options.vacuum_parallel_delete_enabled:
        deletions = _Deletions(spark, options.vacuum_parallel_delete_parallelism)
        request = replace(request, delete=deletions)
    with within_budget(log.clock, options.storage_budget_s):
        return vacuum_files(lambda: log.start_transaction(log.snapshot()), request)


@dataclass(frozen=True, slots=True)
class _Deletions:
    """Deletes files, as `DeleteFiles`: one batch in the driver, several on the executors."""

    spark: SparkSession
    num_tasks: int | None

    def __call__(self, batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
        if len(batches) < 2:
            return delete_here(batches, rule)
        return on_executors(lambda: self._by_job(batches, rule), lambda: delete_here(batches, rule))

    def _by_job(self, batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
        table = pa.table({"paths": pa.array(batches, pa.list_(pa.string()))})
        num_tasks = min(self.num_tasks or len(batches), len(batches))
        rows = local_frame(self.spark, table, _BATCHES).repartition(num_tasks)
        counts: list[int] = rows.mapInArrow(_DeletionTask(rule), _COUNT).toArrow()[0].to_pylist()
        return counts


@dataclass(frozen=True, slots=True)
class _DeletionTask:
    """What each task runs: its input has the files to delete, those of one request in each row."""

    rule: DeletionRule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                counts = [delete_batch(paths, self.rule) for paths in batch.column(0).to_pylist()]
                yield pa.RecordBatch.from_arrays([pa.array(counts, pa.int64())], ["count"])


def _rows(spark: SparkSession, inventory: TableName | SqlText) -> pa.Table:
    if isinstance(inventory, SqlText):
        return spark.sql(inventory.sql).toArrow()
    if inventory.path is not None:
        return spark.read.format("delta").load(inventory.path).toArrow()
    return spark.table(str(inventory)).toArrow()
