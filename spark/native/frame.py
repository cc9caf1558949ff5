"""A table version as a DataFrame over Spark's own Parquet reader (design 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.snapshot.snapshot import Snapshot
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
from optimist.spark.native.row_sets import is_sparse
from optimist.spark.rows.row_shape import quoted
from optimist.spark.rows.stored_columns import (
    READ_BY_ID,
    is_stored_as_named,
    stored_schema,
    table_columns,
)
from optimist.spark.session.jvm import Jvm

__all__ = ["listing_of", "scan_frame", "session_zone_name"]


def scan_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table | None = None,
    *,
    is_time_travel: bool = False,
    access: AccessSource = lambda: None,
) -> DataFrame:
    """The rows of a table version, or of some of its files; no file is read before a query runs.

    Partition filters prune exactly, data filters skip files by statistics and are pushed into
    Parquet, and only the columns asked for are read. Frames of the same version and files are equal
    to Spark, so caches and exchanges are shared.

    Files with a deletion vector are a relation of their own, with a filter over it that leaves out
    the deleted rows; only they pay for it. Their vectors are read when Spark plans an action, and
    only those of files that are left by then.

    Args:
        spark: A classic session.
        snapshot: The version.
        files: Read only these (rows of `snapshot.files`).
        is_time_travel: An older version was asked for by name; what is written from it is meant so.
        access: How files with deletion vectors are reached.

    Raises:
        TableError: A partition value in the log is damaged. When an action runs: a deletion vector
            is missing or damaged.
        UsageError: A Spark Connect session.
    """
    chosen = snapshot.files if files is None else files
    zone = session_zone_name(spark)
    scan = _Scan(
        jvm=Jvm.of(spark),
        snapshot=snapshot,
        key=_key(
            snapshot,
            zone=zone if _has_timestamp(snapshot) else None,
            asof="1" if is_time_travel else None,
            files=None if files is None else digest_of(files),
        ),
        zone=zone,
        access=access,
    )
    return scan.frame(chosen)


@dataclass(frozen=True, slots=True)
class _Part:
    """Files of one kind; `name` tells it in keys, and is empty where there are no vectors."""

    name: str
    files: pa.Table

    @property
    def is_sparse(self) -> bool:
        return self.name.endswith("sparse")


@dataclass(frozen=True, slots=True)
class _Scan:
    """One scan of a version, made of a relation for each kind of file."""

    jvm: Jvm
    snapshot: Snapshot
    key: str
    zone: str
    access: AccessSource

    @property
    def by_id(self) -> bool:
        return self.snapshot.properties.column_mapping_mode == "id"

    @property
    def is_as_named(self) -> bool:
        return not self.by_id and is_stored_as_named(self.snapshot.schema)

    @property
    def tracking(self) -> RowTracking | None:
        return RowTracking.of(self.snapshot.properties)

    def frame(self, files: pa.Table) -> DataFrame:
        parts = list(_parts(files))
        is_hiding = any(part.name for part in parts) or self.tracking is not None
        frames = [self._shaped(*self._rows(part), with_metadata=is_hiding) for part in parts]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return with_hidden_metadata(self.jvm, whole) if is_hiding else whole

    def _rows(self, part: _Part) -> tuple[DataFrame, list[str]]:
        """The live rows of files of one kind, as they are stored, and their hidden columns."""
        key = f"{self.key}{part.name}"
        path = self.snapshot.table_path
        deleted = None
        if part.name:
            deleted = DeletedRows.of(self.jvm, key, path, self.access, is_sparse=part.is_sparse)
        tracking = self.tracking
        own_stored = [
            *(tracking.stored_fields if tracking else ()),
            *([ROW_INDEX] if deleted else ()),
        ]
        own_constant = tracking.constant_fields if tracking else []
        stored = stored_schema(self.snapshot.schema, by_id=self.by_id)
        partitions = stored_schema(self.snapshot.partition_schema, by_id=self.by_id)
        index = TableFileIndex(
            self.jvm,
            key,
            self.snapshot,
            listing=FileListing.of(
                path,
                part.files,
                self.snapshot.partition_schema,
                zone=self.zone,
                constants=tracking.constants(part.files) if tracking else None,
            ),
            partition_schema=SparkStruct([*partitions, *own_constant]),
            deleted=deleted,
        )
        rows = self._relation(index, SparkStruct([*stored, *own_stored]))
        hidden = [field.name for field in (*own_stored, *own_constant)]
        if deleted is None:
            return rows, hidden
        rows = with_row_index(self.jvm, rows)
        hidden += [*RANGE_COLUMNS.names, rows.columns[-1]]
        return rows.where(~deleted.column()), hidden

    def _relation(self, index: TableFileIndex, stored: SparkStruct) -> DataFrame:
        # The full schema as data schema, partition columns included, keeps the table's order of
        # columns.
        jvm = self.jvm
        relation = jvm.sources.HadoopFsRelation(
            index,
            index.partitionSchema(),
            jvm.struct(stored),
            jvm.none,
            jvm.sources.parquet.ParquetFileFormat(),
            jvm.scala_map(READ_BY_ID) if self.by_id else jvm.empty_map,
            jvm.session,
        )
        return jvm.frame_of_relation(relation)

    def _shaped(self, rows: DataFrame, hidden: list[str], *, with_metadata: bool) -> DataFrame:
        """Stored rows as the table has them, and their metadata as last column if asked for."""
        own = [metadata_column(rows, self.tracking)] if with_metadata else []
        if not self.is_as_named:
            return rows.select(*table_columns(self.snapshot.schema, by_id=self.by_id), *own)
        if not own:
            return rows
        names = ", ".join(map(quoted, hidden))
        return rows.select(sf.expr(f"* EXCEPT ({names})" if hidden else "*"), *own)


def listing_of(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> FileListing:
    """Files of a table version with their full paths and typed partition values."""
    return FileListing.of(
        snapshot.table_path, files, snapshot.partition_schema, zone=session_zone_name(spark)
    )


def session_zone_name(spark: SparkSession) -> str:
    """The session's time zone, in which timestamps without one are read."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def _key(snapshot: Snapshot, **distinctions: str | None) -> str:
    # The table's id, because a path may be deleted and used again for another table.
    key = f"{hadoop_path(snapshot.table_path)}@{snapshot.version}#{snapshot.metadata.id}"
    rest = "&".join(f"{name}={value}" for name, value in distinctions.items() if value)
    return f"{KEY_PREFIX}{key}?{rest}"


def _has_timestamp(snapshot: Snapshot) -> bool:
    return any(str(item.data_type) == "timestamp" for item in snapshot.partition_schema)


def _parts(files: pa.Table) -> Iterator[_Part]:
    """The files by how their deleted rows are told; those without any first."""
    has_vector = pc.is_valid(files["deletionVector"])
    if not pc.any(has_vector, min_count=0).as_py():
        yield _Part("", files)
        return
    with_vector = files.filter(has_vector)
    sparse = is_sparse(with_vector["deletionVector"].combine_chunks())
    parts = (
        _Part("", files.filter(pc.invert(has_vector))),
        _Part("&rows=dense", with_vector.filter(pc.invert(sparse))),
        _Part("&rows=sparse", with_vector.filter(sparse)),
    )
    yield from (part for part in parts if part.files.num_rows)
