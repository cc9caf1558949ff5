"""A table version as a DataFrame over Spark's own Parquet reader (docs/planes.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.schema.types import StructType
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.native.deleted_rows import RANGE_COLUMNS, AccessSource, DeletedRows
from optimist.spark.native.index import KEY_PREFIX, TableFileIndex
from optimist.spark.native.listing import FileListing, digest_of, hadoop_path
from optimist.spark.native.metadata_column import (
    ROW_INDEX,
    RowTracking,
    metadata_column,
    with_hidden_metadata,
    with_row_index,
)
from optimist.spark.native.parts import ScanPart, parts_of_files, parts_of_version
from optimist.spark.rows.row_shape import quoted
from optimist.spark.rows.stored_columns import (
    READ_BY_ID,
    is_read_by_id,
    is_stored_as_named,
    may_share_paths,
    stored_schema,
    table_columns,
)
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import Jvm

__all__ = ["listing_of", "scan_frame"]

_ALL_ROWS = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Options of a relation whose rows are written again: rows that are not read would be lost."""
_NO_DICTIONARIES = {"parquet.filter.dictionary.enabled": "false"}
"""Options of a relation whose files may have several columns with one dotted path: Parquet's Java
code finds the dictionaries for its filters by that path.
"""


def scan_frame(
    spark: SparkSession,
    view: FilesView,
    files: pa.Table | None = None,
    *,
    is_time_travel: bool = False,
    access: AccessSource = lambda: None,
    zone: str | None = None,
) -> DataFrame:
    """Return the rows of a table version, or of some of its files.

    No file is read before a query runs.

    Partition filters prune exactly. Data filters skip files by statistics and are pushed into
    Parquet. Only the needed columns are read. Frames of the same version and files are equal to
    Spark, so caches and exchanges are shared.

    Files with a deletion vector form their own relation, with a filter that leaves out deleted
    rows; other files do not pay for it. Their vectors are read when Spark plans an action, and only
    for files that are still needed.

    A frame of a version has the schema's NOT NULL columns, and Spark trusts them. For commands,
    which give files, every column is nullable: nulls that other engines wrote must not get lost.

    Args:
        spark: A classic session.
        view: The version, or other files that are read like those of a version.
        files: Read exactly these (rows of `view.files`), even if the session's conf ignores damaged
            or missing files. Commands read this way.
        is_time_travel: See `RowPlane.scan`.
        access: How files with deletion vectors are reached.
        zone: See `RowPlane.scan`.

    Raises:
        TableError: A partition value in the log is damaged. When an action runs: a deletion vector
            is missing or damaged.
        ConfigError: The session is a Spark Connect client.
    """
    jvm = Jvm.of(spark)
    zone = (zone or session_zone_name(spark)) if view.has_zoned_partitions else None
    key = _key_of_scan(
        view,
        zone=zone,
        asof="1" if is_time_travel else None,
        files=None if files is None else digest_of(files),
    )
    if files is None:
        parts = parts_of_version(jvm, view, zone)
    else:
        parts = parts_of_files(jvm, view, files, zone)
    schema, options = (view.schema, {}) if files is None else (view.schema.as_nullable(), _ALL_ROWS)
    if may_share_paths(schema):
        options = options | _NO_DICTIONARIES
    is_version = files is None
    return _Scan(jvm, view, key, access, schema, options, is_version).frame(parts)


@dataclass(frozen=True, slots=True)
class _Scan:
    """One scan of a version, made of one relation for each kind of file."""

    jvm: Jvm
    view: FilesView
    key: str
    access: AccessSource
    schema: StructType
    options: Mapping[str, str]
    is_version: bool

    @property
    def by_id(self) -> bool:
        return is_read_by_id(self.view)

    @property
    def is_as_named(self) -> bool:
        return not self.by_id and is_stored_as_named(self.schema)

    @property
    def tracking(self) -> RowTracking | None:
        return RowTracking.of(self.view)

    def frame(self, parts: Sequence[ScanPart]) -> DataFrame:
        is_hiding = any(part.name for part in parts) or self.tracking is not None
        frames = [
            self._in_table_form(*self._rows_as_stored(part), with_metadata=is_hiding)
            for part in parts
        ]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return with_hidden_metadata(self.jvm, whole) if is_hiding else whole

    def _rows_as_stored(self, part: ScanPart) -> tuple[DataFrame, list[str]]:
        """Return the live rows of files of one kind, as stored, and their hidden columns."""
        key = f"{self.key}{part.name}"
        paths = self.view.data_paths
        deleted = None
        if part.name:
            deleted = DeletedRows.of(self.jvm, key, paths, self.access, is_sparse=part.is_sparse)
        tracking = self.tracking
        own_stored = [
            *(tracking.stored_fields if tracking else ()),
            *([ROW_INDEX] if deleted else ()),
        ]
        own_constant = tracking.constant_fields if tracking else []
        names = self.view.partition_columns
        stored = stored_schema(self.schema, by_id=self.by_id, partition_columns=names)
        index = TableFileIndex(self.jvm, key, self.view, part, deleted, is_counted=self.is_version)
        rows = self._relation(index, SparkStruct([*stored, *own_stored]))
        hidden = [field.name for field in (*own_stored, *own_constant)]
        if deleted is None:
            return rows, hidden
        rows = with_row_index(self.jvm, rows)
        hidden += [*RANGE_COLUMNS.names, rows.columns[-1]]
        return rows.where(~deleted.column()), hidden

    def _relation(self, index: TableFileIndex, stored: SparkStruct) -> DataFrame:
        # The data schema has all columns, partition columns included, so that Spark keeps the
        # table's order of columns.
        jvm = self.jvm
        relation = jvm.sources.HadoopFsRelation(
            index,
            index.partitionSchema(),
            jvm.struct(stored),
            jvm.none,
            jvm.sources.parquet.ParquetFileFormat(),
            jvm.scala_map({**self.options, **(READ_BY_ID if self.by_id else {})}),
            jvm.session,
        )
        return jvm.frame_of_relation(relation)

    def _in_table_form(
        self, rows: DataFrame, hidden: list[str], *, with_metadata: bool
    ) -> DataFrame:
        """Return stored rows as the table has them, and their metadata last if wanted."""
        own = [metadata_column(self.jvm, rows, self.tracking)] if with_metadata else []
        if not self.is_as_named:
            return rows.select(*table_columns(self.schema, by_id=self.by_id), *own)
        if not own:
            return rows
        names = ", ".join(map(quoted, hidden))
        shown = self.jvm.parsed(f"* EXCEPT ({names})" if hidden else "*")
        return rows.select(self.jvm.column(shown), *own)


def listing_of(spark: SparkSession, view: FilesView, files: pa.Table) -> FileListing:
    """Return files of a table version with their full paths and typed partition values."""
    return FileListing.of(
        view.data_paths, files, view.partition_schema, zone=session_zone_name(spark)
    )


def _key_of_scan(view: FilesView, **distinctions: str | None) -> str:
    # A path may be used again for another table, or a log be restored, with the same versions.
    key = f"{hadoop_path(view.table_path)}@{view.version}#{view.metadata.id}"
    distinctions = {"log": view.log_identity, **distinctions}
    rest = "&".join(f"{name}={value}" for name, value in distinctions.items() if value)
    return f"{KEY_PREFIX}{key}?{rest}"
