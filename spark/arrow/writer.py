"""The writer of data files by pyarrow, on the executors and at final paths (docs/planes.md).

1. Spark's own sort brings the rows of one partition together within each task.
2. Each task writes its files under names that no other attempt uses, and returns their actions. A
   task that fails removes its files.
3. Only files in the answers become part of the table. If a task ran twice, the driver removes the
   files of its other attempts before the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.change_files import RowFiles, change_spec
from optimist.core.data.column_shape import conform_column
from optimist.core.data.parquet.parquet_format import ensure_codec
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.data.storage.stored_files import files_below, remove_file
from optimist.core.paths import join
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    action_from_json,
    action_to_json,
)
from optimist.core.runtime.clock import SystemClock
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.column_mapping import without_mapping
from optimist.core.schema.types import StructType
from optimist.spark.rows.row_shape import column_of
from optimist.spark.session.conf import is_on
from optimist.spark.session.task_errors import portable_errors
from optimist.spark.spark_schema import VOID

__all__ = ["WriteTask", "write_by_arrow"]

_ANSWER = (
    st.StructType()
    .add("action", st.StringType())
    .add("rows", st.LongType())
    .add("attempt", st.IntegerType())
    .add("run", st.LongType())
)
_ARROW_ANSWER = pa.schema(
    [("action", pa.string()), ("rows", pa.int64()), ("attempt", pa.int32()), ("run", pa.int64())]
)


def write_by_arrow(
    rows: DataFrame, spec: FileSpec, store: LogStore, *, has_changes: bool = False
) -> WrittenFiles:
    """Write the rows below `spec.directory`, which must be new.

    Args:
        rows: Exactly the stored columns of the table, in its types, and then the carried columns.
        spec: What the files have in common.
        store: The store of the table's log, which aborts uploads that failed tasks have left.
        has_changes: The last column holds each row's kind of change; see `change_files`.

    Raises:
        UsageError: Arrow does not write the codec; nothing was written.
    """
    ensure_codec(spec.compression)
    if spec.partition_columns:
        rows = rows.sortWithinPartitions(*map(column_of, spec.partition_columns))
    # PySpark parses the column names that `mapInArrow` is given, so they must be plain ones.
    plainly_named = rows.toDF(*(f"column_{index}" for index in range(len(rows.columns))))
    answers = plainly_named.mapInArrow(WriteTask(spec, has_changes), _ANSWER).toArrow()
    actions = [action_from_json(text) for text in answers["action"].drop_null().to_pylist()]
    written = WrittenFiles(
        tuple(item for item in actions if isinstance(item, AddFile)),
        pc.sum(answers["rows"], min_count=0).as_py(),
        tuple(item for item in actions if isinstance(item, AddCDCFile)),
    )
    filesystem, root = filesystem_for(spec.table_path, spec.access)
    paths = [join(root, unquote(item.path)) for item in written.actions]
    if _may_have_leftovers(rows, answers):
        kept = {join(spec.table_path, unquote(item.path)) for item in written.actions}
        more = (change_spec(spec).directory,) if has_changes else ()
        for directory in (spec.directory, *more):
            path = join(spec.table_path, directory)
            store.abort_uploads(path)
            _remove_others(path, kept, spec.access)
    make_durable(filesystem, root, paths)
    return written


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The function of each writing task (see the module)."""

    spec: FileSpec
    has_changes: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the batches, and return a row per file and one for the task itself."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        attempt = context.attemptNumber() if context else 0
        run = context.taskAttemptId() if context else 0
        with portable_errors():
            files = RowFiles(self.spec, SystemClock(), task=task)
            try:
                for batch in batches:
                    files.write(*self._rows_and_kinds(batch))
                adds, changes = files.close()
            except BaseException:
                files.abort()
                raise
        actions: list[Action] = [*adds, *changes]
        texts = [None, *map(action_to_json, actions)]
        counts = [files.num_rows, *(0 for _ in texts[1:])]
        columns = (texts, counts, [attempt] * len(texts), [run] * len(texts))
        pairs = zip(columns, _ARROW_ANSWER, strict=True)
        yield pa.record_batch(
            [pa.array(column, field.type) for column, field in pairs], schema=_ARROW_ANSWER
        )

    def _rows_and_kinds(self, batch: pa.RecordBatch) -> tuple[pa.Table, pa.ChunkedArray | None]:
        columns, kinds = batch.columns, None
        if self.has_changes:
            *columns, last = columns
            kinds = pa.chunked_array([last], pa.string())
        return _table_rows(columns, self.spec), kinds


def _table_rows(given: Sequence[pa.Array], spec: FileSpec) -> pa.Table:
    """Convert Spark's columns, whose nested parts have other names, to the table's types."""
    own = (field for field in without_mapping(spec.schema) if field.data_type != VOID)
    stored = StructType((*own, *spec.carried))
    columns = [
        conform_column(values, field.data_type, column=field.name)
        for values, field in zip(given, stored, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=to_arrow_schema(stored))


def _may_have_leftovers(rows: DataFrame, answers: pa.Table) -> bool:
    """Check whether any task ran more than once, or may have.

    When Spark runs a stage again, the attempt numbers of its tasks begin anew. But Spark numbers
    all runs of tasks one after the other. So missing numbers between ours belong to an earlier try,
    or to a query at the same time.
    """
    if is_on(rows.sparkSession, "spark.speculation"):
        return True
    runs = pc.unique(answers["run"])
    bounds = pc.min_max(runs).as_py()
    is_gapless = not len(runs) or bounds["max"] - bounds["min"] + 1 == len(runs)
    return not is_gapless or bool(pc.any(pc.greater(answers["attempt"], 0), min_count=0).as_py())


def _remove_others(directory: str, kept: set[str], access: DataAccess | None) -> None:
    for status in files_below(directory, access):
        if status.path not in kept:
            remove_file(status.path, access)
