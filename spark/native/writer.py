"""The writer of data files by Spark's Parquet writer, with actions from the footers (spec 10.2).

The same job writes the changes of rows (spec 10.11), in a separate partition. Its directory is then
renamed to one below `_change_data/`.

*Assumes* that Spark's committer, and Hadoop's file system below it, have put a task's files in
place when the task reports success, and that none of their requests changes the files later. As a
check, every footer is read and must fit its file, the sizes are read again at the end, and the
files must have as many rows as Spark has counted. Any difference is an error, and nothing is
committed. Only the file system can prevent a change after that; see docs/planes.md.
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
from optimist.core.data.hive_names import HIVE_NULL, unescape_hive
from optimist.core.data.parquet.footer_statistics import stats_from_footer
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.partition_values import (
    canonical_partition_value,
    partition_schema,
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
    # These make the files fit for Delta, whatever the user's session says. They are set on a clone
    # of the session.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # Every reader of variants reads unshredded ones; some know no shredding, nor the newer
    # annotation.
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.parquet.variant.annotateLogicalType.enabled": "false",
}
_WRITE_IDS = "spark.sql.parquet.fieldId.write.enabled"
_COMMITTER: Mapping[str, str] = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # With version 2, a task's files are among the job's files before Spark knows that the task has
    # succeeded. If the task then fails, and runs again with other rows, its first files stay there
    # beside the second ones.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
_TASK_FOLDER = "_temporary"
"""The committer's folder for the files of tasks, right below the directory of the write."""
_PAGES = {"1.0": "PARQUET_1_0", "2.0": "PARQUET_2_0"}
_MAGIC = b"PAR1"
_TEXTS = ("string", "binary")
_MARKED = re.compile(f"%+{HIVE_NULL}")
"""Matches a text that spells the name of null's directory, after `%` marks."""
_IS_CHANGE = "is_change"
"""The partition column that tells rows of the table (`false`) from changes (`true`). A vacuum finds
files that a killed writer has left there, since the name does not begin with `_`.
"""
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class _WrittenFile:
    """A file that Spark has written: its path, its number of rows, and its action."""

    path: str
    num_rows: int
    add: AddFile


def write_natively(rows: DataFrame, spec: FileSpec, *, has_changes: bool = False) -> WrittenFiles:
    """Write the rows below `spec.directory`, which must be new.

    Args:
        rows: Exactly the stored columns of the table, in its types, and then the carried columns.
        spec: What the files have in common.
        has_changes: The last column holds each row's kind of change; see `change_files`.
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
    """Let Spark write the rows, with changes in a separate partition, and return its row count."""
    fields = partition_schema(spec.schema, spec.partition_columns)
    texts = {field.name: _partition_text(field) for field in fields}
    partitions = [field.physical_name for field in fields]
    if is_change is not None:
        texts = {is_change: column_of(CHANGE_TYPE).isNotNull(), **texts}
        partitions = [is_change, *partitions]
    jvm = Jvm.of(rows.sparkSession)
    stored = file_columns(rows.withColumns(texts) if texts else rows, spec.schema)
    # The rows' columns may have field ids of other files; files of an unmapped table have none.
    ids = {_WRITE_IDS: str(is_mapped(spec.schema)).lower()}
    isolated = jvm.isolated(stored, {**_SESSION_CONFS, **ids})
    writer = isolated.write.format("parquet").mode("errorifexists").options(**_COMMITTER)
    writer = writer.option("compression", spec.compression)
    writer = writer.option("parquet.writer.version", _PAGES[spec.data_page_version])
    # 0 is set, too, or else the session's conf would apply.
    writer = writer.option("maxRecordsPerFile", spec.max_rows_per_file or 0)
    if partitions:
        writer = writer.partitionBy(*partitions)
    directory = join(spec.table_path, spec.directory)
    with jvm.muted(_WRITER_LOGGER):  # it repeats the error that is raised, with a long stack
        return save_counted(isolated, writer, hadoop_path(directory))


def _take_changes(jvm: Jvm, spec: FileSpec, partition: str) -> WrittenFiles:
    """Move the partition of changes to the directory of change files, if there is one."""
    changes = change_spec(spec)
    directory = join(spec.table_path, changes.directory)
    if not rename_directory(jvm, join(spec.table_path, spec.directory, partition), directory):
        return WrittenFiles()
    with storage_errors("read", directory):
        return _collect(changes)


def _partition_text(field: StructField) -> Column:
    """Return the value as the text in a directory's name, independent of session settings."""
    value = column_of(field.name)
    if str(field.data_type) in _TEXTS:
        text = value.cast("string")
        named_as_null = text.rlike(rf"\A%*{HIVE_NULL}\z")
        marked = sf.when(named_as_null, sf.concat(sf.lit("%"), text)).otherwise(text)
        return sf.when(text != "", marked)  # an empty string is null in a partition
    if str(field.data_type) != "timestamp":
        return value.cast("string")
    # In the session's zone, two different hours at a clock change would have the same text.
    micros = sf.unix_micros(value)
    return sf.timestamp_add("MICROSECOND", micros, sf.expr(_EPOCH)).cast("string")


def _collect(spec: FileSpec) -> WrittenFiles:
    directory = join(spec.table_path, spec.directory)
    found = _data_files(directory, spec.access)
    if not found:
        _ensure_there(directory, spec.access)
    with ThreadPoolExecutor(max_workers=_FOOTER_THREADS) as pool:
        # Footers are not kept: a footer takes a kilobyte or two for each column.
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
    footer = _read_footer(status, spec.access)
    directory = join(spec.table_path, spec.directory)
    relative = status.path[len(directory.rstrip("/")) + 1 :]
    return _WrittenFile(status.path, footer.num_rows, _add_action(spec, relative, status, footer))


def _data_files(directory: str, access: DataAccess | None) -> list[FileStatus]:
    start = len(directory.rstrip("/")) + 1
    return [
        status
        for status in files_below(directory, access)
        if _is_data_file(status.path[start:].split("/"))
    ]


def _ensure_there(directory: str, access: DataAccess | None) -> None:
    """Refuse a missing directory, since an empty one only means that there were no rows."""
    if name_of(directory) not in names_in(parent_of(directory), access):
        raise _file_differs(directory, "there is no such directory")


def _ensure_all_rows(directory: str, found: int, counted: int | None) -> None:
    """Refuse a write whose files do not have as many rows as Spark counted."""
    if counted is not None and found != counted:
        raise _file_differs(directory, f"Spark wrote {counted} rows, but its files have {found}")


def _read_footer(status: FileStatus, access: DataAccess | None) -> pq.FileMetaData:
    filesystem, inner = filesystem_for(status.path, access)
    try:
        footer = pq.read_metadata(inner, filesystem=filesystem)
    except pa.ArrowInvalid as error:
        raise _file_differs(status.path, f"it is not a complete Parquet file ({error})") from None
    # The last column chunk is followed by the footer, its length in 4 bytes, and the magic.
    ends = (
        column.total_compressed_size + (column.dictionary_page_offset or column.data_page_offset)
        for group in map(footer.row_group, range(footer.num_row_groups))
        for column in map(group.column, range(group.num_columns))
    )
    needed = max(ends, default=len(_MAGIC)) + footer.serialized_size + 4 + len(_MAGIC)
    if status.size_bytes < needed:
        found = f"it has {status.size_bytes} bytes, but its footer describes {needed}"
        raise _file_differs(status.path, found)
    return footer


def _ensure_unchanged(before: Sequence[FileStatus], now: Sequence[FileStatus]) -> None:
    sizes = {status.path: status.size_bytes for status in now}
    for status in before:
        path, size = status.path, status.size_bytes
        if sizes.get(path) != size:
            found = f"{sizes[path]} bytes" if path in sizes else "nothing"
            raise _file_differs(path, f"Spark wrote {size} bytes, but it now has {found}")


def _file_differs(path: str, what: str) -> StorageError:
    return StorageError(
        f"What is at {shown(path)} is not what Spark wrote: {shown(what)}. Nothing was "
        "committed. Run the operation again.",
        kind="OPTIMIST_DATA_FILE_DIFFERS",
        path=path,
        retryable=True,
    )


def _add_action(
    spec: FileSpec, relative: str, status: FileStatus, footer: pq.FileMetaData
) -> AddFile:
    return AddFile(
        path=uri_reference(join(spec.directory, relative)),
        partition_values=_partition_values(spec, relative.split("/")[:-1]),
        size=status.size_bytes,
        # Some drivers know no time (hdfs-native's). Then it is now, since the file is new.
        modification_time=status.modified_ms or SystemClock().now_ms(),
        data_change=spec.data_change,
        stats=_stats_of_footer(spec, footer),
    )


def _partition_values(spec: FileSpec, directories: Sequence[str]) -> dict[str, str | None]:
    by_name: dict[str, str | None] = {}
    for segment in directories:
        name, _, value = segment.partition("=")
        by_name[unescape_hive(name) or name] = unescape_hive(value)
    return {
        field.physical_name: canonical_partition_value(
            _remove_mark(by_name[field.physical_name], field), field.data_type, zone="UTC"
        )
        for field in partition_schema(spec.schema, spec.partition_columns)
    }


def _remove_mark(text: str | None, field: StructField) -> str | None:
    """Remove the mark that `_partition_text` may have put before a text."""
    is_marked = str(field.data_type) in _TEXTS and _MARKED.fullmatch(text or "")
    return text[1:] if text and is_marked else text


def _stats_of_footer(spec: FileSpec, footer: pq.FileMetaData) -> str | None:
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
    """Check whether a file belongs to a task that has succeeded.

    Args:
        parts: Its path within the directory of the write. The directories above are the user's, and
            may have any names.
    """
    return not parts[-1].startswith(("_", ".")) and parts[0] != _TASK_FOLDER
