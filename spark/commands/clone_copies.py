"""The copies of a deep CLONE: few bytes in the driver, many on the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType

from optimist.core.data.storage.copied_file import CopyRule, FileCopy
from optimist.core.maintenance.copies.copied_files import copy_here
from optimist.core.paths import parent_of
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.spark.commands.maintenance.executors import on_executors
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.job_scope import described
from optimist.spark.session.task_errors import portable_errors

__all__ = ["SparkCopies"]

_COPY_SCHEMA = (
    StructType().add("path", StringType()).add("target", StringType()).add("size_bytes", LongType())
)
_FILES_PER_TASK = 8


@dataclass(frozen=True, slots=True)
class SparkCopies:
    """Makes the copies of a deep clone: few bytes in the driver, many on the executors."""

    spark: SparkSession
    max_bytes: int

    def __call__(self, copies: Sequence[FileCopy], rule: CopyRule, clock: Clock) -> None:
        """See `CopyFiles`."""

        def here() -> None:
            copy_here(copies, rule, clock)

        if sum(each.size_bytes for each in copies) <= self.max_bytes:
            here()
        else:
            on_executors(lambda: self._by_job(copies, rule), here)

    def _by_job(self, copies: Sequence[FileCopy], rule: CopyRule) -> None:
        columns = ([getattr(each, name) for each in copies] for name in _COPY_SCHEMA.names)
        table = pa.table(dict(zip(_COPY_SCHEMA.names, columns, strict=True)))
        num_tasks = -(-len(copies) // _FILES_PER_TASK)
        rows = local_frame(self.spark, table, _COPY_SCHEMA).repartition(num_tasks)
        with described(self.spark, "CLONE", parent_of(copies[0].target)):
            rows.mapInArrow(_CopyTask(rule), _COPY_SCHEMA).toArrow()


@dataclass(frozen=True, slots=True)
class _CopyTask:
    """What each task runs: its input says which files are to be copied."""

    rule: CopyRule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                copies = [FileCopy(**row) for row in batch.to_pylist()]
                copy_here(copies, self.rule, SystemClock())
                yield batch.slice(0, 0)
