"""Rows to data files by Spark's own Parquet writer; `add` actions from the footers (spec 10.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.clock import SystemClock
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.filesystem import filesystem_for, make_durable, remove_directory
from optimist.core.data.footer_statistics import stats_from_footer
from optimist.core.data.parquet_writer import FileSpec
from optimist.core.data.partition_values import (
    canonical_partition_value,
    partition_schema,
    unescape_hive,
    uri_reference,
)
from optimist.core.data.storage_errors import storage_errors
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.types import StructField
from optimist.spark.native.listing import hadoop_path
from optimist.spark.rows.row_shape import column_of, quoted
from optimist.spark.session.jvm import Jvm

__all__ = ["write_natively"]

_FOOTER_THREADS = 8
_SESSION_CONFS: Mapping[str, str] = {
    # What makes the files Delta's, whatever the user's session says; set on a clone of it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
}
_NO_MARKER_FILE = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"


def write_natively(rows: DataFrame, spec: FileSpec) -> WrittenFiles:
    """Write the rows below `spec.directory`, which must be new.

    Args:
        rows: Exactly the stored columns of the table, in its types.
        spec: What the files have in common.
    """
    fields = partition_schema(spec.schema, spec.partition_columns)
    texts = {field.name: _partition_text(field) for field in fields}
    jvm = Jvm.of(rows.sparkSession)
    isolated = jvm.isolated(rows.withColumns(texts) if texts else rows, _SESSION_CONFS)
    writer = isolated.write.mode("errorifexists").options(**_NO_MARKER_FILE)
    writer = writer.option("compression", spec.compression)
    if spec.max_rows_per_file is not None:
        writer = writer.option("maxRecordsPerFile", spec.max_rows_per_file)
    if texts:
        writer = writer.partitionBy(*texts)
    directory = join(spec.table_path, spec.directory)
    writer.parquet(hadoop_path(directory))
    with storage_errors("read", directory):
        return _collect(spec)


def _partition_text(field: StructField) -> Column:
    """The value as text that no session setting changes; the directory's name carries it."""
    value = column_of(field.name)
    if str(field.data_type) == "string":
        return sf.when(value != "", value)  # an empty string is null in a partition
    if str(field.data_type) != "timestamp":
        return value.cast("string")
    # Spelled in the session's zone, the two hours of a clock change would fall together.
    micros = f"timestampadd(MICROSECOND, unix_micros({quoted(field.name)}), {_EPOCH})"
    return sf.expr(f"CAST({micros} AS STRING)")


def _collect(spec: FileSpec) -> WrittenFiles:
    directory = join(spec.table_path, spec.directory)
    filesystem, inner = filesystem_for(directory, spec.access)
    selector = fs.FileSelector(inner, recursive=True)
    found = [info for info in filesystem.get_file_info(selector) if _is_data_file(info)]
    with ThreadPoolExecutor(max_workers=_FOOTER_THREADS) as pool:
        footers = list(
            pool.map(lambda info: pq.read_metadata(info.path, filesystem=filesystem), found)
        )
    adds, num_rows = [], 0
    for info, footer in zip(found, footers, strict=True):
        if footer.num_rows == 0:
            filesystem.delete_file(info.path)
            continue
        num_rows += footer.num_rows
        relative = info.path[len(inner.rstrip("/")) + 1 :]
        adds.append(_add(spec, relative, info, footer))
    if not adds:
        remove_directory(directory, spec.access)
    kept = [info.path for info, footer in zip(found, footers, strict=True) if footer.num_rows]
    make_durable(filesystem, filesystem_for(spec.table_path, spec.access)[1], kept)
    return WrittenFiles(tuple(adds), num_rows)


def _add(spec: FileSpec, relative: str, info: fs.FileInfo, footer: pq.FileMetaData) -> AddFile:
    return AddFile(
        path=uri_reference(join(spec.directory, relative)),
        partition_values=_partition_values(spec, relative.split("/")[:-1]),
        size=info.size,
        modification_time=_modified_ms(info),
        data_change=spec.data_change,
        stats=_stats(spec, footer),
    )


def _modified_ms(info: fs.FileInfo) -> int:
    """Some drivers (hdfs-native's) give no time; the file is new, so it is now."""
    return SystemClock().now_ms() if info.mtime_ns is None else info.mtime_ns // 1_000_000


def _partition_values(spec: FileSpec, directories: Sequence[str]) -> dict[str, str | None]:
    by_name: dict[str, str | None] = {}
    for segment in directories:
        name, _, value = segment.partition("=")
        by_name[unescape_hive(name) or name] = unescape_hive(value)
    return {
        field.physical_name: canonical_partition_value(
            by_name[field.name], field.data_type, zone="UTC"
        )
        for field in partition_schema(spec.schema, spec.partition_columns)
    }


def _stats(spec: FileSpec, footer: pq.FileMetaData) -> str | None:
    if spec.stats_columns is None:
        return None
    return stats_from_footer(
        footer,
        spec.schema,
        spec.stats_columns,
        string_prefix_length=spec.string_prefix_length,
        tight_bounds=spec.tight_bounds,
    )


def _is_data_file(info: fs.FileInfo) -> bool:
    is_hidden = info.base_name.startswith(("_", "."))
    return info.type == fs.FileType.File and not is_hidden and "/_temporary/" not in info.path
