"""The deletions of VACUUM on Spark (spec 10.12).

The driver runs VACUUM without a job. Only the files are deleted on the executors, if
`vacuum.parallelDelete.enabled` is set and they are more than one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from optimist.core.maintenance.vacuum.file_deletion import DeletionRule, delete_batch, delete_here
from optimist.core.paths import parent_of
from optimist.spark.commands.maintenance.executors import on_executors
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.job_scope import described
from optimist.spark.session.task_errors import portable_errors

__all__ = ["SparkDeletions"]

_BATCHES = StructType([StructField("paths", ArrayType(StringType()))])
_COUNT = StructType([StructField("count", LongType())])


@dataclass(frozen=True, slots=True)
class SparkDeletions:
    """Deletes files, as `DeleteFiles`: one batch in the driver, several on the executors."""

    spark: SparkSession
    num_tasks: int | None

    def __call__(self, batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
        """See `DeleteFiles`."""
        if len(batches) < 2:
            return delete_here(batches, rule)
        return on_executors(lambda: self._by_job(batches, rule), lambda: delete_here(batches, rule))

    def _by_job(self, batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
        table = pa.table({"paths": pa.array(batches, pa.list_(pa.string()))})
        num_tasks = min(self.num_tasks or len(batches), len(batches))
        rows = local_frame(self.spark, table, _BATCHES).repartition(num_tasks)
        with described(self.spark, "VACUUM", parent_of(batches[0][0])):
            counts = rows.mapInArrow(_DeletionTask(rule), _COUNT).toArrow()[0]
        return [int(each) for each in counts.to_pylist()]


@dataclass(frozen=True, slots=True)
class _DeletionTask:
    """The function of each task, whose input rows hold the files of one request each."""

    rule: DeletionRule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                counts = [delete_batch(paths, self.rule) for paths in batch.column(0).to_pylist()]
                yield pa.RecordBatch.from_arrays([pa.array(counts, pa.int64())], ["count"])
