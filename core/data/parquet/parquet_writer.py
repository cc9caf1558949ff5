"""The writer of Arrow rows to Parquet data files, with statistics from footers (spec 10.2).

Rows come in batches of any size and go to one file per partition. No version of the table names a
file before a commit does. Memory is bounded by a row group. Callers should give the rows of one
partition together, because a file ends where another partition begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.data.directory_names import ensure_nameable
from optimist.core.data.parquet.dictionary_choice import columns_with_dictionary
from optimist.core.data.parquet.footer_statistics import (
    ColumnPath,
    nan_free_columns,
    stats_from_footer,
)
from optimist.core.data.parquet.parquet_format import (
    DEFAULT_CODEC,
    arrow_codec,
    data_page_version,
    ensure_codec,
    wanted_codec,
)
from optimist.core.data.parquet.partitioned_rows import rows_by_partition
from optimist.core.data.parquet.text_dictionaries import joined_rows, rows_at_once, with_texts_of
from optimist.core.data.partition_values import (
    partition_directory,
    partition_schema,
    uri_reference,
)
from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.data.storage.filesystem import filesystem_for, make_directories
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.new_file import NewFile, new_file
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import try_remove_file
from optimist.core.data.stored_rows import StoredRows
from optimist.core.errors import ConfigError
from optimist.core.options.engine import EngineOptions
from optimist.core.options.packing import FilePacking
from optimist.core.paths import join
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.actions import AddCDCFile, AddFile, Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import RetryPolicy
from optimist.core.schema.types import PrimitiveType, StructField, StructType

__all__ = ["ROW_GROUP_ROWS", "FileSpec", "TaskFiles", "delete_files"]

ROW_GROUP_ROWS = 1 << 20
"""The most rows of a row group."""


@dataclass(frozen=True, slots=True)
class FileSpec:
    """The common settings of the files of one write. Small, and picklable.

    Attributes:
        table_path: The table's directory.
        schema: The table's schema.
        partition_columns: Names of the partition columns, in order.
        stats_columns: The leaves that get statistics. None for files without any.
        string_prefix_length: The most UTF-16 units of a text in statistics.
        tight_bounds: The value of `tightBounds` in statistics. None leaves it out.
        directory: The directory of the files below the table. Empty for the table's own.
        prefix: The beginning of the files' names.
        compression: A codec by Spark's name. A `TaskFiles` takes those that `ensure_codec` knows.
        data_page_version: The kind of Parquet's data pages, `1.0` or `2.0`.
        max_rows_per_file: A file with more rows is split. None for no limit.
        target_bytes: A file ends with the row group that takes it to this size. None for no limit.
        group_bytes: A row group has about this size in memory at most.
        data_change: The `dataChange` of the `add` actions.
        carried: Additional columns of the files, after the table's. They have no statistics.
        access: The access to data files.
        policy: The limits for repeating a request without a clear answer.
        packing: How the files are packed, besides the codec.
    """

    table_path: str
    schema: StructType
    partition_columns: tuple[str, ...]
    stats_columns: tuple[ColumnPath, ...] | None
    string_prefix_length: int = 32
    tight_bounds: bool | None = None
    directory: str = ""
    prefix: str = "part"
    compression: str = DEFAULT_CODEC
    data_page_version: str = "1.0"
    max_rows_per_file: int | None = None
    target_bytes: int | None = None
    group_bytes: int = 128 << 20
    data_change: bool = True
    carried: tuple[StructField, ...] = ()
    access: DataAccess | None = None
    policy: RetryPolicy = EngineOptions().retry_policy
    packing: FilePacking = field(default_factory=FilePacking)

    @classmethod
    def of(
        cls,
        table_path: str,
        metadata: Metadata,
        options: EngineOptions,
        *,
        codec: str = DEFAULT_CODEC,
        with_statistics: Sequence[ColumnPath] = (),
    ) -> FileSpec:
        """Return the spec of a table's new files, from its metadata and the engine's options.

        Args:
            table_path: The table's directory.
            metadata: The table's metadata after the write.
            options: The engine's options.
            codec: The codec to use if the table's `delta.parquet.compression.codec` names none.
            with_statistics: Columns that have statistics whatever the properties are.

        Raises:
            ConfigError: An option asks for files of a kind that the engine can't write.
        """
        table = TableMetadata.of(metadata)
        schema, properties = table.schema, table.properties
        columns = stats_columns(schema, metadata.partition_columns, properties, with_statistics)
        _ensure_partitions_in_utc(schema, metadata.partition_columns, options)
        return cls(
            table_path=table_path,
            schema=schema,
            partition_columns=metadata.partition_columns,
            stats_columns=tuple(columns) if options.stats_collect else None,
            string_prefix_length=(
                properties.data_skipping_string_prefix_length or options.string_prefix_length
            ),
            compression=options.packing.codec or wanted_codec(properties, codec),
            packing=options.packing,
            data_page_version=data_page_version(properties),
            policy=options.retry_policy,
        )


def _ensure_partitions_in_utc(
    schema: StructType, partition_columns: Sequence[str], options: EngineOptions
) -> None:
    if options.utc_timestamp_partition_values:
        return
    fields = partition_schema(schema, partition_columns)
    if any(field.data_type == PrimitiveType("timestamp") for field in fields):
        raise ConfigError(
            "The conf key spark.databricks.delta.write.utcTimestampPartitionValues can't be false: "
            "in a time zone with summer time, two instants would become one partition. Nothing was "
            "written. Leave the key unset.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="spark.databricks.delta.write.utcTimestampPartitionValues",
        )


class TaskFiles:
    """The files that one task writes. End it with `close` or `abort`, in the same thread.

    Args:
        spec: The common settings of the files.
        clock: Gives modification times, and file names that no other attempt of the task uses.
        task: The task's number, for the names.

    Raises:
        UsageError: Arrow does not write the codec (kind `DELTA_ILLEGAL_OPTION`).
    """

    def __init__(self, spec: FileSpec, clock: Clock, *, task: int = 0) -> None:
        self._spec = spec
        self._codec = arrow_codec(ensure_codec(spec.compression))
        self._clock = clock
        self._task = task
        self._filesystem, self._root = filesystem_for(spec.table_path, spec.access)
        self._partitions = partition_schema(spec.schema, spec.partition_columns)
        self._stored = StoredRows(spec.schema)
        self._values: Mapping[str, str | None] = {}
        self._open: _OpenFile | None = None
        self._adds: list[AddFile] = []
        self._paths: list[str] = []

    def write(self, rows: pa.Table, values: Mapping[str, str | None] | None = None) -> None:
        """Write some rows, which have the table's columns (void ones may be missing).

        The columns of `FileSpec.carried` come last.

        Args:
            rows: The rows.
            values: The partition values of all rows, by physical name; None to look for them.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        with storage_errors("written", self._spec.table_path):
            for found, part in self._by_partition(rows, values):
                if self._open is not None and found != self._values:
                    self._finish()
                self._values = found
                self._append(part)

    def flush(self) -> None:
        """Write the rows that wait in memory as a row group.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        with storage_errors("written", self._spec.table_path):
            if self._open is not None:
                self._open.flush()
                self._end_if_large()

    def close(self) -> tuple[AddFile, ...]:
        """Finish the last file, and return the `add` actions of all files.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        with storage_errors("written", self._spec.table_path):
            self._finish()
        return tuple(self._adds)

    def abort(self) -> None:
        """Remove all written files. VACUUM finds those that can't be removed."""
        if self._open is not None:
            self._open.abandon()
            self._open = None
        for path in self._paths:
            try_remove_file(path, self._spec.access)

    def _append(self, rows: pa.Table) -> None:
        limit = self._spec.max_rows_per_file
        while rows.num_rows:
            if self._open is None:
                self._open = self._start()
            room = rows.num_rows if not limit else limit - self._open.num_rows
            self._open.write(rows.slice(0, room))
            rows = rows.slice(room)
            if limit and self._open.num_rows >= limit:
                self._finish()
            else:
                self._end_if_large()

    def _end_if_large(self) -> None:
        target = self._spec.target_bytes
        if target is not None and self._open is not None and self._open.size_bytes >= target:
            self._finish()

    def _start(self) -> _OpenFile:
        codec = self._codec
        ending = "parquet" if codec == "none" else f"{self._spec.compression}.parquet"
        name = f"{self._spec.prefix}-{self._task:05d}-{self._clock.new_uuid()}.c000.{ending}"
        partition = partition_directory(self._values)
        if is_on_disk(self._spec.table_path):
            ensure_nameable(partition)
        parts = (self._spec.directory, partition, name)
        relative = "/".join(part for part in parts if part)
        path, full_path = join(self._root, relative), join(self._spec.table_path, relative)
        self._paths.append(full_path)
        make_directories(self._filesystem, [path])
        file = new_file(
            full_path,
            self._filesystem,
            path,
            access=self._spec.access,
            clock=self._clock,
            policy=self._spec.policy,
        )

        packing = self._spec.packing

        def new_writer(first: pa.Table, footers: list[pq.FileMetaData]) -> pq.ParquetWriter:
            return pq.ParquetWriter(
                file.sink,
                first.schema,
                compression=codec,
                compression_level=packing.level,
                data_page_size=packing.page_bytes,
                dictionary_pagesize_limit=packing.dictionary_bytes,
                write_batch_size=packing.batch_rows or rows_at_once(first),
                data_page_version=self._spec.data_page_version,
                use_dictionary=columns_with_dictionary(first),
                store_schema=False,
                metadata_collector=footers,
            )

        return _OpenFile(
            file,
            relative,
            new_writer,
            row_group_rows=packing.row_group_rows or ROW_GROUP_ROWS,
            group_bytes=self._spec.group_bytes,
        )

    def _finish(self) -> None:
        if self._open is None:
            return
        spec, done = self._spec, self._open
        size, footer = done.close()
        self._open = None
        stats = None
        if spec.stats_columns is not None:
            stats = stats_from_footer(
                footer,
                spec.schema,
                spec.stats_columns,
                string_prefix_length=spec.string_prefix_length,
                tight_bounds=spec.tight_bounds,
                nan_free=done.nan_free or (),
            )
        self._adds.append(
            AddFile(
                path=uri_reference(done.relative),
                partition_values=self._values,
                size=size,
                modification_time=self._clock.now_ms(),
                data_change=spec.data_change,
                stats=stats,
            )
        )

    def _by_partition(
        self, rows: pa.Table, known: Mapping[str, str | None] | None
    ) -> Iterator[tuple[Mapping[str, str | None], pa.Table]]:
        names = list(self._partitions.names)
        if not rows.num_rows:
            return
        if not names:
            yield {}, self._stored.of(rows)
            return
        if known is not None:
            yield known, self._stored.of(rows.drop_columns(names))
            return
        for batch in rows.combine_chunks().to_batches():
            stored = self._stored.of(pa.Table.from_batches([batch]).drop_columns(names))
            for values, numbers in rows_by_partition(batch, self._partitions):
                yield values, stored if numbers is None else stored.take(numbers)


class _OpenFile:
    """One file being written, which keeps rows until they fill a row group."""

    def __init__(
        self,
        file: NewFile,
        relative: str,
        new_writer: Callable[[pa.Table, list[pq.FileMetaData]], pq.ParquetWriter],
        *,
        row_group_rows: int,
        group_bytes: int,
    ) -> None:
        self._row_group_rows = row_group_rows
        self._group_bytes = group_bytes
        self.relative = relative
        self.num_rows = 0
        self.nan_free: frozenset[ColumnPath] | None = None
        self._kept: list[pa.Table] = []
        self._kept_rows = 0
        self._kept_bytes = 0
        self._footers: list[pq.FileMetaData] = []
        self._file = file
        self._new_writer = new_writer
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None

    def write(self, rows: pa.Table) -> None:
        while rows.num_rows:
            part = rows.slice(0, ROW_GROUP_ROWS - self._kept_rows)
            rows = rows.slice(part.num_rows)
            if self._schema is not None:
                part = with_texts_of(self._schema, part)
            self._kept.append(part)
            self.num_rows += part.num_rows
            self._kept_rows += part.num_rows
            self._kept_bytes += part.nbytes
            if self._kept_rows >= ROW_GROUP_ROWS or self._kept_bytes >= self._group_bytes:
                self.flush()

    def close(self) -> tuple[int, pq.FileMetaData]:
        """Finish the file, and return its size in bytes and its footer."""
        self.flush()
        if self._writer is not None:
            self._writer.close()
        return self._file.publish(), self._footers[0]

    @property
    def size_bytes(self) -> int:
        """The size of the row groups so far."""
        size: int = self._file.sink.tell()
        return size

    def abandon(self) -> None:
        """Discard the file, which is of no use."""
        # A writer that failed half-way has no footer, which is a RuntimeError.
        with suppress(OSError, RuntimeError, ValueError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        self._file.discard()

    def flush(self) -> None:
        if not self._kept:
            return
        group = joined_rows(self._kept, self._schema)
        found = nan_free_columns(group)
        self.nan_free = found if self.nan_free is None else self.nan_free & found
        if self._writer is None:
            self._writer, self._schema = self._new_writer(group, self._footers), group.schema
        self._writer.write_table(group, row_group_size=self._row_group_rows)
        self._kept, self._kept_rows, self._kept_bytes = [], 0, 0


def delete_files(
    table_path: str, files: Sequence[AddFile | AddCDCFile], access: DataAccess | None = None
) -> None:
    """Try to remove files that were written but will never be committed."""
    for item in files:
        try_remove_file(join(table_path, unquote(item.path)), access)
