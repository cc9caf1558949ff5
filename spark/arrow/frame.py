"""A table version as a DataFrame over pyarrow, in classic sessions and in Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.data.file_parts import ensure_files_readable
from optimist.core.data.parquet_reader import RowLayout
from optimist.core.schema import StructType
from optimist.core.snapshot import Snapshot
from optimist.spark.arrow.source import ScanOptions, register_source
from optimist.spark.arrow.tasks import Grouping, encode_groups, read_group
from optimist.spark.row_shape import column_of
from optimist.spark.spark_schema import VOID, to_spark_schema, to_spark_type
from optimist.spark.versions import has_filter_pushdown, is_connect

__all__ = ["FILE_COLUMN", "arrow_frame", "arrow_frame_of_files"]

FILE_COLUMN = "__optimist_file"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_SESSION_STATE = ("spark.databricks.delta.lastCommitVersionInSession",)


def arrow_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    options: Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
    is_time_travel: bool = False,
) -> DataFrame:
    """The rows of a table version; no file is read before a query runs.

    Filters that Spark pushes to Python data sources (from 4.1 on) prune partitions and skip files;
    that setting of the session is turned on unless the user has set it himself.

    Args:
        spark: A classic session or a Spark Connect client.
        snapshot: The version.
        options: The engine's options, with which the executors' side opens the table again.
        columns: Read only these: Spark does not tell Python sources which columns a query needs.
        is_time_travel: An older version was asked for by name; what is written from it is meant so.

    Raises:
        ProtocolError: The files need a feature that the reader does not have.
    """
    ensure_files_readable(snapshot.table_path, snapshot.metadata.configuration, snapshot.files)
    scan = ScanOptions(
        path=snapshot.table_path,
        version=snapshot.version,
        table_id=snapshot.metadata.id,
        zone=_zone(spark),
        grouping=Grouping.of(spark, is_connect=is_connect(spark)),
        is_pushing=_is_pushing(spark),
        is_time_travel=is_time_travel,
    )
    kept = {key: value for key, value in options.items() if key not in _SESSION_STATE}
    schema = _schema(snapshot, columns)
    reader = spark.read.format(register_source(spark, kept)).schema(_stored(schema))
    frame = reader.options(**scan.to_options()).load()
    return _with_void(frame, schema)


def arrow_frame_of_files(
    spark: SparkSession, snapshot: Snapshot, files: pa.Table, *, with_file: bool = False
) -> DataFrame:
    """The rows of some files of a version; for commands, which have pruned already.

    Args:
        spark: A classic session or a Spark Connect client.
        snapshot: The version.
        files: Rows of `snapshot.files`.
        with_file: Add the column `FILE_COLUMN`: the `add.path` of each row's file.

    Raises:
        ProtocolError: The files need a feature that the reader does not have.
    """
    ensure_files_readable(snapshot.table_path, snapshot.metadata.configuration, files)
    grouping = Grouping.of(spark, is_connect=is_connect(spark))
    groups = list(encode_groups(snapshot.table_path, files, grouping))
    schema = _stored(snapshot.schema)
    names = set(schema.names)
    wanted = StructType(tuple(item for item in snapshot.schema if item.name in names))
    layout = RowLayout(wanted, snapshot.partition_columns, _zone(spark))
    file_column = FILE_COLUMN if with_file else None
    if with_file:
        schema = st.StructType([*schema.fields, st.StructField(FILE_COLUMN, st.StringType())])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column(0).to_pylist():
                yield from read_group(data, layout, schema, file_column=file_column)

    tasks = spark.createDataFrame([(bytearray(data),) for data in groups], "task binary")
    rows = tasks.repartition(max(1, len(groups))).mapInArrow(read, schema)
    return _with_void(rows, snapshot.schema, *([FILE_COLUMN] if with_file else []))


def _schema(snapshot: Snapshot, columns: Sequence[str] | None) -> StructType:
    if columns is None:
        return snapshot.schema
    found = (snapshot.schema.find(name) for name in columns)
    return StructType(tuple(item for item in found if item is not None))


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


def _zone(spark: SparkSession) -> str:
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def _is_pushing(spark: SparkSession) -> bool:
    value = spark.conf.getAll.get(_PUSHDOWN)
    if value is None:
        spark.conf.set(_PUSHDOWN, "true")
        # Spark before 4.1 takes any key and knows nothing of this one.
        return has_filter_pushdown()
    return value.strip().lower() == "true" and has_filter_pushdown()
