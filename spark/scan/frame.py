"""A table version as a DataFrame over Spark's own Parquet reader (design 5)."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.types import TimestampType

from optimist.core.errors import ProtocolError, UsageError
from optimist.core.predicates.tree import Predicate
from optimist.core.properties import TableProperties
from optimist.core.schema import StructType
from optimist.core.snapshot import Snapshot
from optimist.spark.jvm import Jvm
from optimist.spark.scan.index import KEY_PREFIX, TableFileIndex
from optimist.spark.scan.listing import FileListing, digest_of, hadoop_path
from optimist.spark.spark_schema import VOID, to_spark_schema, to_spark_type

__all__ = ["listing_of", "scan_frame", "session_zone_name"]


def scan_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table | None = None,
    *,
    is_time_travel: bool = False,
) -> DataFrame:
    """The rows of a table version, or of some of its files; no file is read before a query runs.

    Partition filters prune exactly, data filters skip files by statistics and are pushed into
    Parquet, and only the columns asked for are read. Frames of the same version and files are equal
    to Spark, so caches and exchanges are shared.

    Args:
        spark: A classic session.
        snapshot: The version.
        files: Read only these (rows of `snapshot.files`).
        is_time_travel: An older version was asked for by name; what is written from it is meant so.

    Raises:
        ProtocolError: The files need a feature that the reader does not have (deletion vectors,
            column mapping).
        TableError: A partition value in the log is damaged.
        UsageError: A Spark Connect session.
    """
    jvm = Jvm.of(spark)
    chosen = snapshot.files if files is None else files
    _ensure_readable(snapshot, chosen)
    zone = session_zone_name(spark)
    partition_struct = to_spark_schema(snapshot.partition_schema)
    index = TableFileIndex(
        jvm,
        _key(
            snapshot,
            zone=zone if _has_timestamp(partition_struct) else None,
            asof="1" if is_time_travel else None,
            files=None if files is None else digest_of(files),
        ),
        snapshot.table_path,
        partition_schema=partition_struct,
        listing=listing_of(spark, snapshot, chosen),
        skip=lambda predicate: _skip(snapshot, predicate),
    )
    # The full schema as data schema, partition columns included, keeps the table's order of
    # columns.
    stored = StructType(tuple(field for field in snapshot.schema if field.data_type != VOID))
    relation = jvm.sources.HadoopFsRelation(
        index,
        jvm.struct(partition_struct),
        jvm.struct(to_spark_schema(stored)),
        jvm.none,
        jvm.sources.parquet.ParquetFileFormat(),
        jvm.empty_map,
        jvm.session,
    )
    frame = jvm.frame_of_relation(relation)
    return frame if len(stored) == len(snapshot.schema) else _with_void(frame, snapshot.schema)


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


def _skip(snapshot: Snapshot, predicate: Predicate) -> pa.Table:
    try:
        return snapshot.scan(predicate).files
    except UsageError:
        return snapshot.files  # a name our predicates can't resolve: skipping is only a hint


def _has_timestamp(schema: SparkStruct) -> bool:
    return any(isinstance(field.dataType, TimestampType) for field in schema.fields)


def _with_void(frame: DataFrame, schema: StructType) -> DataFrame:
    """Columns of type void are in no file: null, in their place."""
    return frame.select(
        *(
            sf.lit(None).cast(to_spark_type(field.data_type)).alias(field.name)
            if field.data_type == VOID
            else sf.col(f"`{field.name.replace('`', '``')}`")
            for field in schema
        )
    )


def _ensure_readable(snapshot: Snapshot, files: pa.Table) -> None:
    vectors = files["deletionVector"] if "deletionVector" in files.column_names else None
    features = []
    if vectors is not None and vectors.null_count < len(vectors):
        features.append("deletionVectors")
    properties = TableProperties.from_configuration(snapshot.metadata.configuration)
    if properties.column_mapping_mode != "none":
        features.append("columnMapping")
    if features:
        raise ProtocolError(
            f"The files of {snapshot.table_path} can't be read: {', '.join(features)} is not "
            "supported yet. Read "
            "the table with another engine.",
            kind="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            features=tuple(features),
        )
