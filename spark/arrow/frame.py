"""A table version as a DataFrame over pyarrow, in classic sessions and in Spark Connect."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.data.parquet.parquet_reader import RowLayout
from optimist.core.data.table_ref import TableRef
from optimist.core.predicates import Predicate
from optimist.core.schema.types import COLLATIONS, StructField, StructType
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.row_layout import row_layout
from optimist.spark.arrow.planned_scans import with_planned_scans
from optimist.spark.arrow.row_metadata import METADATA, metadata_type
from optimist.spark.arrow.sent_scans import SentScan, remember_scan
from optimist.spark.arrow.source import ScanOptions, register_source
from optimist.spark.arrow.tasks import Grouping, encode_groups, read_group
from optimist.spark.arrow.version_to_scan import VersionToScan
from optimist.spark.arrow.wanted_rows import cheapest_column
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.scanned_table import scan_alias
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import known_to_spark
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.session.task_errors import portable_errors
from optimist.spark.spark_schema import VOID, to_spark_schema, to_spark_type

__all__ = ["Needed", "arrow_frame", "arrow_frame_of_files", "narrow_sent_scan"]

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needed:
    """The columns, rows and number of rows that a reader needs of a version.

    Attributes:
        columns: See `RowPlane.scan`.
        predicate: The needed rows.
        without: See `ScanOptions`.
        limit: How many rows are enough, whichever; None for all.
    """

    columns: Collection[Path] | None = None
    predicate: Predicate = Predicate.TRUE
    without: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def counts_only(self) -> bool:
        """Whether only the number of rows is needed."""
        return self.columns is not None and not self.columns


def arrow_frame(
    spark: SparkSession,
    table: TableRef,
    snapshot: Snapshot,
    *,
    is_time_travel: bool = False,
    needed: Needed | None = None,
    zone: str | None = None,
) -> DataFrame:
    """Return the rows of a table version, without reading a file before a query runs.

    In classic sessions, Spark pushes down a query's filters and columns: partitions are pruned,
    files are skipped and only the needed columns are read. Spark Connect pushes down neither, so
    `needed` says what to read there. The frame may give more than that.

    Args:
        spark: A classic session or a Spark Connect client.
        table: The table; the options of its store go to the workers, which open it again.
        snapshot: The version.
        is_time_travel: See `RowPlane.scan`.
        needed: What Spark Connect reads; None for all.
        zone: See `RowPlane.scan`.
    """
    needed = needed or Needed()
    scan = ScanOptions(
        path=snapshot.table_path,
        version=snapshot.version,
        table_id=snapshot.metadata.id,
        log_identity=snapshot.log_identity,
        zone=zone or session_zone_name(spark),
        grouping=Grouping.of(spark, is_connect=is_connect(spark)),
        is_time_travel=is_time_travel,
        outside=snapshot.data_paths.outside,
        predicate=str(needed.predicate),
        without=needed.without,
        limit=needed.limit,
        counts_only=needed.counts_only,
    )
    connected = is_connect(spark)
    shown, hidden = _columns_of_frame(snapshot, needed if connected else Needed())
    name = register_source(spark, table.store.options)
    with known_to_spark():
        schema = st.StructType([*_stored_columns(spark, shown).fields, *hidden])
        reader = spark.read.format(name).schema(schema)
    frame = reader.options(**scan.to_options()).load()
    if connected:
        sent: Any = frame
        remember_scan(sent._plan, SentScan(snapshot, is_whole=needed == Needed()))
        frame = frame.alias(scan_alias(scan.scanned_table))
    else:
        version = VersionToScan(table, snapshot, scan.zone, scan.grouping, snapshot.data_paths)
        frame = with_planned_scans(frame, version, f"{name}?{scan}")
    return _with_void(frame, shown, *(field.name for field in hidden))


def narrow_sent_scan(spark: SparkSession, source: Any, snapshot: Snapshot, needed: Needed) -> None:
    """Narrow a scan that a Connect client is about to send to what is needed of it.

    Args:
        spark: The client's session.
        source: The message `DataSource` of a scan of all rows; it is changed.
        snapshot: The version that it reads.
        needed: What is needed.
    """
    if needed.columns is not None:
        shown, hidden = _columns_of_frame(snapshot, needed)
        source.schema = st.StructType([*_stored_columns(spark, shown).fields, *hidden]).json()
    options = ScanOptions.from_options(dict(source.options))
    narrowed = replace(
        options,
        predicate=str(needed.predicate),
        without=needed.without,
        limit=needed.limit,
        counts_only=needed.counts_only,
    )
    source.options.update(narrowed.to_options())


def arrow_frame_of_files(
    spark: SparkSession,
    table: TableRef,
    view: FilesView,
    files: pa.Table,
    *,
    columns: StructType | None = None,
    places: Places | None = None,
) -> DataFrame:
    """Return the rows of some files of a version, for commands that have pruned already.

    Every column is nullable here, even one that is NOT NULL: files of other engines may hold nulls
    in it.

    Args:
        spark: A classic session or a Spark Connect client.
        table: The table.
        view: The version, or other files that are read like those of a version.
        files: Rows of `view.files`.
        columns: Read only these; None reads the columns of the table.
        places: Add the columns of row locations that it names.
    """
    wanted = view.schema if columns is None else columns
    kept = StructType(tuple(item for item in wanted if item.data_type != VOID))
    schema = _stored_columns(spark, kept.as_nullable())
    own = [] if places is None else places.fields
    schema = st.StructType([*schema.fields, *own])
    task = _ReadTask(
        groups=tuple(
            encode_groups(view.data_paths, files, Grouping.of(spark, is_connect=is_connect(spark)))
        ),
        layout=row_layout(
            view,
            kept,
            zone=session_zone_name(spark),
            access=table.data_access(),
        ),
        schema=schema,
        places=places,
    )
    # One partition per number gives each task exactly one number, also when it is run again.
    num_tasks = len(task.groups)
    rows = spark.range(0, num_tasks, 1, max(1, num_tasks)).mapInArrow(task, schema)
    return _with_void(rows, wanted, *(field.name for field in own))


@dataclass(frozen=True, slots=True)
class _ReadTask:
    """The function of each task, whose input holds the numbers of the groups to read."""

    groups: tuple[bytes, ...]
    layout: RowLayout
    schema: st.StructType
    places: Places | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from read_group(
                        self.groups[number],
                        self.layout,
                        self.schema,
                        places=self.places,
                    )


def _pick_columns(view: FilesView, columns: Collection[Path]) -> StructType:
    """Return the named columns and fields, with at least one that files hold."""
    found = _pick_fields(view.schema, columns)
    if all(item.data_type == VOID for item in found):
        found = (*found, cheapest_column(view))
    return StructType(found)


def _pick_fields(schema: StructType, paths: Collection[Path]) -> tuple[StructField, ...]:
    """Return the fields at these paths, and of a struct only the named fields."""
    found = []
    for item in schema:
        inner = {path[1:] for path in paths if path[0].lower() == item.name.lower()}
        if not inner:
            continue
        if () not in inner and isinstance(item.data_type, StructType):
            part = StructType(_pick_fields(item.data_type, inner))
            if any(field.data_type != VOID for field in part):
                item = replace(item, data_type=part)
        found.append(item)
    return tuple(found)


def _columns_of_frame(view: FilesView, needed: Needed) -> tuple[StructType, list[st.StructField]]:
    """Return the columns of a frame, and the hidden columns beside them."""
    if needed.columns is None:
        return view.schema, []
    found = _pick_columns(view, needed.columns)
    # Where nobody looks at the values, tasks make nulls, also of a column that is NOT NULL.
    shown = found.as_nullable() if needed.counts_only else found
    return shown, _metadata_field(view, needed.columns)


def _metadata_field(view: FilesView, columns: Collection[Path]) -> list[st.StructField]:
    """Return the column `_metadata`, if it is named and the table has no column of that name."""
    kind = metadata_type(view)
    if kind is None or all(path[0].lower() != METADATA for path in columns):
        return []
    return [st.StructField(METADATA, kind, False)]


def _stored_columns(spark: SparkSession, schema: StructType) -> st.StructType:
    """Return the columns that files hold, as Spark has them."""
    stored = to_spark_schema(StructType(tuple(item for item in schema if item.data_type != VOID)))
    if is_connect(spark) and COLLATIONS in stored.json():
        # Else the server refuses an unknown collation at the first action, as a syntax error.
        with known_to_spark():
            _ = spark.createDataFrame([], stored).schema
    return stored


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
