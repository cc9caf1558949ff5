"""Rows to data files by Spark's own Parquet writer; `add` actions from the footers (spec 10.2).

Changes of rows (spec 10.11) are written by the same job, in a partition of their own, whose
directory is then renamed to one below `_change_data/`.

*Assumes* that Spark's committer, and Hadoop's file system below it, have a task's files in place
when the task reports success, and that none of their requests changes the files later. As a check,
every footer is read and must fit its file, the sizes are looked at once more at the end, and the
files must have as many rows as Spark has counted: whatever differs is an error, and is not
committed. Only the file system can prevent a change that comes later still; see docs/planes.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.change_files import CHANGE_TYPE, change_files, change_spec
from optimist.core.data.parquet.footer_statistics import stats_from_footer
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.partition_values import (
    HIVE_NULL,
    canonical_partition_value,
    partition_schema,
    unescape_hive,
    uri_reference,
)
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import (
    files_below,
    names_in,
    remove_directory,
    remove_file,
)
from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join, name_of, parent_of
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import AddFile
from optimist.core.runtime.clock import SystemClock
from optimist.core.schema.column_mapping import is_mapped
from optimist.core.schema.types import StructField
from optimist.spark.native.counted_save import save_counted
from optimist.spark.native.listing import hadoop_path
from optimist.spark.native.renaming import rename_directory
from optimist.spark.rows.file_columns import file_columns
from optimist.spark.rows.row_shape import column_of, free_name
from optimist.spark.session.jvm import Jvm

__all__ = ["write_natively"]

_FOOTER_THREADS = 8
_WRITER_LOGGER = "org.apache.spark.sql.execution.datasources.FileFormatWriter"
_SESSION_CONFS: Mapping[str, str] = {
    # These make the files fit for Delta whatever the user's session says; set on a clone of it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # Every reader of variants reads them whole; some know no others, nor the newer annotation.
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.parquet.variant.annotateLogicalType.enabled": "false",
}
_WRITE_IDS = "spark.sql.parquet.fieldId.write.enabled"
_COMMITTER: Mapping[str, str] = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # By version 2 a task's files are among the job's before Spark knows that the task is done. If
    # it then fails, and runs again with other rows, its first files stay there beside the second.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
_OF_TASKS = "_temporary"
"""Where the committer has the files of tasks, right below the directory of the write."""
_PAGES = {"1.0": "PARQUET_1_0", "2.0": "PARQUET_2_0"}
_MAGIC = b"PAR1"
_TEXTS = ("string", "binary")
_MARKED = re.compile(f"%+{HIVE_NULL}")
"""A text that spells the name of null's directory; one more percent sign tells it from null."""
_IS_CHANGE = "is_change"
"""The partition column that tells rows of the table (`false`) from changes (`true`).

What a killed writer has left there is found by a vacuum, since the name begins with no `_`.
"""
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class _WrittenFile:
    """A file that Spark has written: where it is, how many rows it has, and its action."""

    path: str
    num_rows: int
    add: AddFile


def write_natively(rows: DataFrame, spec: FileSpec, *, has_changes: bool = False) -> WrittenFiles:
    """Write the rows below `spec.directory`, which must be new.

    Args:
        rows: Exactly the stored columns of the table, in its types, and then those that are
            carried.
        spec: What the files have in common.
        has_changes: The last column tells the kind of change of each row, see `change_files`.
    """
    taken = (name for item in spec.schema for name in (item.name, item.physical_name))
    is_change = free_name(_IS_CHANGE, taken) if has_changes else None
    counted = _run_job(rows, spec, is_change)
    changes = WrittenFiles()
    if is_change is not None:
        changes = _take_changes(Jvm.of(rows.sparkSession), spec, f"{is_change}=true")
    directory = join(spec.table_path, spec.directory)
    with storage_errors("read", directory):
        written = _collect(spec)
    _ensure_all_rows(directory, written.num_rows + changes.num_rows, counted)
    return replace(written, changes=change_files(changes.adds))


def _run_job(rows: DataFrame, spec: FileSpec, is_change: str | None) -> int | None:
    """Let Spark write the rows, changes to a partition of their own; return its count of them."""
    fields = partition_schema(spec.schema, spec.partition_columns)
    texts = {field.name: _partition_text(field) for field in fields}
    partitions = [field.physical_name for field in fields]
    if is_change is not None:
        texts = {is_change: column_of(CHANGE_TYPE).isNotNull(), **texts}
        partitions = [is_change, *partitions]
    jvm = Jvm.of(rows.sparkSession)
    stored = file_columns(rows.withColumns(texts) if texts else rows, spec.schema)
    # Data may bring along ids of other files; those of a table that is not mapped have none.
    ids = {_WRITE_IDS: str(is_mapped(spec.schema)).lower()}
    isolated = jvm.isolated(stored, {**_SESSION_CONFS, **ids})
    writer = isolated.write.format("parquet").mode("errorifexists").options(**_COMMITTER)
    writer = writer.option("compression", spec.compression)
    writer = writer.option("parquet.writer.version", _PAGES[spec.data_page_version])
    # 0 is given, too, or the session's conf would apply.
    writer = writer.option("maxRecordsPerFile", spec.max_rows_per_file or 0)
    if partitions:
        writer = writer.partitionBy(*partitions)
    directory = join(spec.table_path, spec.directory)
    with jvm.muted(_WRITER_LOGGER):  # it repeats the error that is raised, with a long stack
        return save_counted(isolated, writer, hadoop_path(directory))


def _take_changes(jvm: Jvm, spec: FileSpec, partition: str) -> WrittenFiles:
    """Move the partition of changes to where change files are; none if there are no changes."""
    changes = change_spec(spec)
    directory = join(spec.table_path, changes.directory)
    if not rename_directory(jvm, join(spec.table_path, spec.directory, partition), directory):
        return WrittenFiles()
    with storage_errors("read", directory):
        return _collect(changes)


def _partition_text(field: StructField) -> Column:
    """The value as text that no session setting changes; the directory's name carries it."""
    value = column_of(field.name)
    if str(field.data_type) in _TEXTS:
        text = value.cast("string")
        named_as_null = text.rlike(rf"\A%*{HIVE_NULL}\z")
        marked = sf.when(named_as_null, sf.concat(sf.lit("%"), text)).otherwise(text)
        return sf.when(text != "", marked)  # an empty string is null in a partition
    if str(field.data_type) != "timestamp":
        return value.cast("string")
    # Spelled in the session's zone, the two hours at a clock change would be the same text.
    micros = sf.unix_micros(value)
    return sf.timestamp_add("MICROSECOND", micros, sf.expr(_EPOCH)).cast("string")


def _collect(spec: FileSpec) -> WrittenFiles:
    directory = join(spec.table_path, spec.directory)
    found = _data_files(directory, spec.access)
    if not found:
        _ensure_there(directory, spec.access)
    with ThreadPoolExecutor(max_workers=_FOOTER_THREADS) as pool:
        # Of a file stays what its footer says: a footer takes a kilobyte or two for each column.
        files = list(pool.map(partial(_written_file, spec), found))
    _ensure_unchanged(found, _data_files(directory, spec.access))
    for file in files:
        if file.num_rows == 0:
            remove_file(file.path, spec.access)
    kept = [file for file in files if file.num_rows > 0]
    if not kept:
        remove_directory(directory, spec.access)
    filesystem, root = filesystem_for(spec.table_path, spec.access)
    paths = [filesystem_for(file.path, spec.access)[1] for file in kept]
    make_durable(filesystem, root, paths)
    return WrittenFiles(tuple(file.add for file in kept), sum(file.num_rows for file in kept))


def _written_file(spec: FileSpec, status: FileStatus) -> _WrittenFile:
    footer = _footer(status, spec.access)
    directory = join(spec.table_path, spec.directory)
    relative = status.path[len(directory.rstrip("/")) + 1 :]
    return _WrittenFile(status.path, footer.num_rows, _add(spec, relative, status, footer))


def _data_files(directory: str, access: DataAccess | None) -> list[FileStatus]:
    start = len(directory.rstrip("/")) + 1
    return [
        status
        for status in files_below(directory, access)
        if _is_data_file(status.path[start:].split("/"))
    ]


def _ensure_there(directory: str, access: DataAccess | None) -> None:
    """Nothing to find is fine if there were no rows, and not if the directory is another one."""
    if name_of(directory) not in names_in(parent_of(directory), access):
        raise _differs(directory, "there is no such directory")


def _ensure_all_rows(directory: str, found: int, counted: int | None) -> None:
    """Refuse a write whose files have other rows than the tasks that Spark takes for done."""
    if counted is not None and found != counted:
        raise _differs(directory, f"Spark wrote {counted} rows, but its files have {found}")


def _footer(status: FileStatus, access: DataAccess | None) -> pq.FileMetaData:
    filesystem, inner = filesystem_for(status.path, access)
    try:
        footer = pq.read_metadata(inner, filesystem=filesystem)
    except pa.ArrowInvalid as error:
        raise _differs(status.path, f"it is not a complete Parquet file ({error})") from None
    # The last column chunk is followed by the footer, its length in 4 bytes, and the magic.
    ends = (
        column.total_compressed_size + (column.dictionary_page_offset or column.data_page_offset)
        for group in map(footer.row_group, range(footer.num_row_groups))
        for column in map(group.column, range(group.num_columns))
    )
    needed = max(ends, default=len(_MAGIC)) + footer.serialized_size + 4 + len(_MAGIC)
    if status.size_bytes < needed:
        found = f"it has {status.size_bytes} bytes, but its footer describes {needed}"
        raise _differs(status.path, found)
    return footer


def _ensure_unchanged(before: Sequence[FileStatus], now: Sequence[FileStatus]) -> None:
    sizes = {status.path: status.size_bytes for status in now}
    for status in before:
        path, size = status.path, status.size_bytes
        if sizes.get(path) != size:
            found = f"{sizes[path]} bytes" if path in sizes else "nothing"
            raise _differs(path, f"Spark wrote {size} bytes, but it now has {found}")


def _differs(path: str, what: str) -> StorageError:
    return StorageError(
        f"What is at {shown(path)} is not what Spark wrote: {shown(what)}. Nothing was "
        "committed. Run the operation again.",
        kind="OPTIMIST_DATA_FILE_DIFFERS",
        path=path,
        retryable=True,
    )


def _add(spec: FileSpec, relative: str, status: FileStatus, footer: pq.FileMetaData) -> AddFile:
    return AddFile(
        path=uri_reference(join(spec.directory, relative)),
        partition_values=_partition_values(spec, relative.split("/")[:-1]),
        size=status.size_bytes,
        # Of drivers that tell no time (hdfs-native's): now, since the file is new.
        modification_time=status.modified_ms or SystemClock().now_ms(),
        data_change=spec.data_change,
        stats=_stats(spec, footer),
    )


def _partition_values(spec: FileSpec, directories: Sequence[str]) -> dict[str, str | None]:
    by_name: dict[str, str | None] = {}
    for segment in directories:
        name, _, value = segment.partition("=")
        by_name[unescape_hive(name) or name] = unescape_hive(value)
    return {
        field.physical_name: canonical_partition_value(
            _unmarked(by_name[field.physical_name], field), field.data_type, zone="UTC"
        )
        for field in partition_schema(spec.schema, spec.partition_columns)
    }


def _unmarked(text: str | None, field: StructField) -> str | None:
    """The text that `_partition_text` was given, without the mark it may have put before it."""
    is_marked = str(field.data_type) in _TEXTS and _MARKED.fullmatch(text or "")
    return text[1:] if text and is_marked else text


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


def _is_data_file(parts: Sequence[str]) -> bool:
    """Whether a file is one of a task that is done.

    Args:
        parts: Its path within the directory of the write. What is above is the user's, and may have
            any names.
    """
    return not parts[-1].startswith(("_", ".")) and parts[0] != _OF_TASKS
