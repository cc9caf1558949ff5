"""A table version as a DataFrame over pyarrow, in classic sessions and in Spark Connect."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.data.parquet_reader import RowLayout
from optimist.core.schema.types import StructType
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.arrow.fresh_scans import with_own_scans
from optimist.spark.arrow.source import ScanOptions, register_source
from optimist.spark.arrow.tasks import Grouping, encode_groups, read_group
from optimist.spark.native.frame import session_zone_name
from optimist.spark.rows.row_shape import column_of
from optimist.spark.session.jvm import conf_entries
from optimist.spark.session.pyspark_versions import has_filter_pushdown, is_connect
from optimist.spark.session.task_errors import portable_errors
from optimist.spark.spark_schema import VOID, to_spark_schema, to_spark_type

__all__ = ["FILE_COLUMN", "arrow_frame", "arrow_frame_of_files"]

FILE_COLUMN = "__optimist_file"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def arrow_frame(
    spark: SparkSession, log: DeltaLog, snapshot: Snapshot, *, is_time_travel: bool = False
) -> DataFrame:
    """The rows of a table version; no file is read before a query runs.

    In classic sessions, filters that Spark pushes to Python data sources (from 4.1 on) prune
    partitions and skip files; that setting of the session is turned on unless the user has set it
    himself. Nothing is pushed in Spark Connect, where it could not be made safe: see
    `scan.own_scans`.

    Args:
        spark: A classic session or a Spark Connect client.
        log: The table; the options of its store go to the workers, which open it again.
        snapshot: The version.
        is_time_travel: An older version was asked for by name; what is written from it is meant so.
    """
    scan = ScanOptions(
        path=snapshot.table_path,
        version=snapshot.version,
        table_id=snapshot.metadata.id,
        zone=session_zone_name(spark),
        grouping=Grouping.of(spark, is_connect=is_connect(spark)),
        is_pushing=_is_pushing(spark),
        is_skipping=log.options.stats_skipping,
        is_time_travel=is_time_travel,
    )
    name = register_source(spark, log.store.options, scan)
    reader = spark.read.format(name).schema(_stored(snapshot.schema))
    frame = reader.options(**scan.to_options()).load()
    if scan.is_pushing:
        frame = with_own_scans(frame, f"{name}?{scan}")
    return _with_void(frame, snapshot.schema)


def arrow_frame_of_files(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    files: pa.Table,
    *,
    columns: Collection[str] | None = None,
    with_file: bool = False,
) -> DataFrame:
    """The rows of some files of a version; for commands, which have pruned already.

    Args:
        spark: A classic session or a Spark Connect client.
        log: The table.
        snapshot: The version.
        files: Rows of `snapshot.files`.
        columns: Read only these; all without it.
        with_file: Add the column `FILE_COLUMN`: the `add.path` of each row's file.
    """
    wanted = _columns(snapshot.schema, columns)
    kept = StructType(tuple(item for item in wanted if item.data_type != VOID))
    schema = _stored(kept)
    if with_file:
        schema = st.StructType([*schema.fields, st.StructField(FILE_COLUMN, st.StringType())])
    task = _ReadTask(
        groups=tuple(
            encode_groups(
                snapshot.table_path, files, Grouping.of(spark, is_connect=is_connect(spark))
            )
        ),
        layout=RowLayout.of(
            snapshot,
            kept,
            zone=session_zone_name(spark),
            access=log.store.data_access(log.table_path),
        ),
        schema=schema,
        file_column=FILE_COLUMN if with_file else None,
    )
    # A range of so many partitions gives each task exactly one number, also when it is run again.
    num_tasks = len(task.groups)
    rows = spark.range(0, num_tasks, 1, max(1, num_tasks)).mapInArrow(task, schema)
    return _with_void(rows, wanted, *([FILE_COLUMN] if with_file else []))


@dataclass(frozen=True, slots=True)
class _ReadTask:
    """What each task runs: the numbers that it is given are those of its groups."""

    groups: tuple[bytes, ...]
    layout: RowLayout
    schema: st.StructType
    file_column: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from read_group(
                        self.groups[number],
                        self.layout,
                        self.schema,
                        file_column=self.file_column,
                    )


def _columns(schema: StructType, names: Collection[str] | None) -> StructType:
    """Those columns of the schema; the first of it where none is named, since rows must be."""
    if names is None:
        return schema
    folded = {name.lower() for name in names}
    found = tuple(item for item in schema if item.name.lower() in folded)
    return StructType(found or schema.fields[:1])


def _stored(schema: StructType) -> st.StructType:
    """What files hold, every column nullable: a constraint is no proof that a file keeps it."""
    kept = StructType(tuple(item for item in schema if item.data_type != VOID))
    fields = to_spark_schema(kept).fields
    return st.StructType(
        [st.StructField(item.name, item.dataType, True, item.metadata) for item in fields]
    )


def _with_void(frame: DataFrame, schema: StructType, *more: str) -> DataFrame:
    if all(item.data_type != VOID for item in schema):
        return frame
    columns = [
        sf.lit(None).cast(to_spark_type(item.data_type)).alias(item.name)
        if item.data_type == VOID
        else column_of(item.name)
        for item in schema
    ]
    return frame.select(*columns, *(column_of(name) for name in more))


def _is_pushing(spark: SparkSession) -> bool:
    if is_connect(spark):
        return False
    value = conf_entries(spark).get(_PUSHDOWN)
    if value is None:
        spark.conf.set(_PUSHDOWN, "true")
        # Spark before 4.1 takes any key and knows nothing of this one.
        return has_filter_pushdown()
    return value.strip().lower() == "true" and has_filter_pushdown()
