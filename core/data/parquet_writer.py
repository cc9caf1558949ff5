"""Rows in Arrow to data files: Parquet with statistics from the footers (spec 10.2).

Rows come in batches of any size, and go to one file per partition, straight to its final path; no
version of the table names a file before a commit does. Memory is bounded by a row group. Rows of
one partition are best given one after the other: a file ends where another partition begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from optimist.core.clock import Clock
from optimist.core.data.access import DataAccess
from optimist.core.data.filesystem import filesystem_for, make_directories
from optimist.core.data.footer_statistics import (
    ColumnPath,
    nan_free_columns,
    stats_from_footer,
)
from optimist.core.data.partition_values import (
    partition_directory,
    partition_schema,
    serialize_partition_values,
    uri_reference,
)
from optimist.core.data.stats_columns import stats_columns
from optimist.core.data.storage_errors import storage_errors
from optimist.core.errors import UsageError
from optimist.core.options import EngineOptions
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructType
from optimist.core.table_schema import table_schema

__all__ = ["DEFAULT_CODEC", "FileSet", "FileSpec", "arrow_rows", "delete_files", "ensure_codec"]

DEFAULT_CODEC = "snappy"
_CODECS = {
    "brotli": "brotli",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "none": "none",
    "snappy": "snappy",
    "uncompressed": "none",
    "zstd": "zstd",
}
"""Spark's names of Parquet's codecs, to pyarrow's."""
_ROW_GROUP_ROWS = 1_000_000
_ROW_GROUP_BYTES = 128 << 20
_GROUP_ROW = "__row"


def ensure_codec(name: str) -> str:
    """The codec's name in lower case.

    Raises:
        UsageError: Arrow does not write it (kind `DELTA_ILLEGAL_OPTION`).
    """
    folded = name.strip().lower()
    if folded not in _CODECS:
        raise UsageError(
            f"Files can't be compressed by {name!r}. Known: {', '.join(sorted(_CODECS))}. Nothing "
            "was written.",
            kind="DELTA_ILLEGAL_OPTION",
            key="compression",
        )
    return folded


@dataclass(frozen=True, slots=True)
class FileSpec:
    """What the files of one write have in common; small, and picklable.

    Attributes:
        table_path: The table's directory.
        schema: The table's schema.
        partition_columns: Names of the partition columns, in order.
        stats_columns: The leaves that get statistics; None for files without any.
        string_prefix_length: Text in statistics is shortened to so many UTF-16 units.
        tight_bounds: What statistics say as `tightBounds`; None leaves it out.
        directory: Where below the table the files go; empty for the table's own directory.
        compression: A codec by Spark's name; a `FileSet` takes those that `ensure_codec` knows.
        max_rows_per_file: Files are split that would hold more.
        data_change: What the `add` actions say.
        access: How data files are reached.
    """

    table_path: str
    schema: StructType
    partition_columns: tuple[str, ...]
    stats_columns: tuple[ColumnPath, ...] | None
    string_prefix_length: int = 32
    tight_bounds: bool | None = None
    directory: str = ""
    compression: str = DEFAULT_CODEC
    max_rows_per_file: int | None = None
    data_change: bool = True
    access: DataAccess | None = None

    @classmethod
    def of(
        cls,
        table_path: str,
        metadata: Metadata,
        options: EngineOptions,
        *,
        codec: str = DEFAULT_CODEC,
    ) -> FileSpec:
        """What a table and the engine's options say about new files.

        Args:
            table_path: The table's directory.
            metadata: As it will be with the write.
            options: The engine's.
            codec: Used where the table's `delta.parquet.compression.codec` names none.

        Raises:
            SchemaError: A property of the statistics names a column that can't have any.
        """
        schema = table_schema(metadata)
        properties = TableProperties.from_configuration(metadata.configuration)
        columns = stats_columns(schema, metadata.partition_columns, metadata.configuration)
        wanted = properties.parquet_compression_codec
        return cls(
            table_path=table_path,
            schema=schema,
            partition_columns=metadata.partition_columns,
            stats_columns=tuple(columns) if options.stats_collect else None,
            string_prefix_length=(
                properties.data_skipping_string_prefix_length or options.string_prefix_length
            ),
            compression=(wanted or codec).strip().lower(),
        )


class FileSet:
    """The files that one task writes. End it with `close` or `abort`, in this thread.

    Args:
        spec: What the files have in common.
        clock: Gives modification times, and names that no other attempt of the task has.
        task: The task's number, for the names.

    Raises:
        UsageError: Arrow does not write the codec (kind `DELTA_ILLEGAL_OPTION`).
    """

    def __init__(self, spec: FileSpec, clock: Clock, *, task: int = 0) -> None:
        self._spec = spec
        self._codec = _CODECS[ensure_codec(spec.compression)]
        self._clock = clock
        self._task = task
        self._filesystem, self._root = filesystem_for(spec.table_path, spec.access)
        self._partitions = partition_schema(spec.schema, spec.partition_columns)
        self._values: Mapping[str, str | None] = {}
        self._open: _OpenFile | None = None
        self._adds: list[AddFile] = []
        self._paths: list[str] = []

    def write(self, rows: pa.Table) -> None:
        """Write some rows, which have the table's columns (void ones may be missing).

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        with storage_errors("written", self._spec.table_path):
            for values, part in self._by_partition(rows):
                if self._open is not None and values != self._values:
                    self._finish()
                self._values = values
                self._append(part)

    def close(self) -> tuple[AddFile, ...]:
        """Finish the last file; the `add` actions of all of them.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        with storage_errors("written", self._spec.table_path):
            self._finish()
        return tuple(self._adds)

    def abort(self) -> None:
        """Remove all that was written; what can't be removed is left for vacuum to find."""
        if self._open is not None:
            self._open.abandon()
            self._open = None
        for path in self._paths:
            with suppress(OSError):  # the reason for aborting is the error to tell
                self._filesystem.delete_file(path)

    def _append(self, rows: pa.Table) -> None:
        limit = self._spec.max_rows_per_file
        while rows.num_rows:
            if self._open is None:
                self._open = self._start(rows.schema)
            room = rows.num_rows if not limit else limit - self._open.num_rows
            self._open.write(rows.slice(0, room))
            rows = rows.slice(room)
            if limit and self._open.num_rows >= limit:
                self._finish()

    def _start(self, schema: pa.Schema) -> _OpenFile:
        codec = self._codec
        ending = "parquet" if codec == "none" else f"{self._spec.compression}.parquet"
        name = f"part-{self._task:05d}-{self._clock.new_uuid()}.c000.{ending}"
        places = (self._spec.directory, partition_directory(self._values), name)
        relative = "/".join(place for place in places if place)
        path = join(self._root, relative)
        self._paths.append(path)
        make_directories(self._filesystem, [path])
        return _OpenFile(self._filesystem, path, relative, schema=schema, codec=codec)

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

    def _by_partition(self, rows: pa.Table) -> Iterator[tuple[Mapping[str, str | None], pa.Table]]:
        names = list(self._partitions.names)
        if not rows.num_rows:
            return
        if not names:
            yield {}, rows
            return
        # Empty text is null in a partition (spec 10.2), so both must fall into one group.
        for name in names:
            rows = rows.set_column(
                rows.schema.get_field_index(name), name, _without_empty_text(rows[name])
            )
        numbered = rows.append_column(_GROUP_ROW, pa.array(range(rows.num_rows), pa.int64()))
        groups = numbered.group_by(names, use_threads=False).aggregate([(_GROUP_ROW, "list")])
        stored = rows.drop_columns(names)
        keys = groups.select(names).to_pylist()
        for position, key in enumerate(keys):
            values = serialize_partition_values(key, self._partitions)
            if len(keys) == 1:
                yield values, stored
                return
            chosen = groups[f"{_GROUP_ROW}_list"].slice(position, 1).combine_chunks().flatten()
            yield values, stored.take(chosen)


class _OpenFile:
    """One file being written: rows are kept until they fill a row group."""

    def __init__(
        self,
        filesystem: fs.FileSystem,
        path: str,
        relative: str,
        *,
        schema: pa.Schema,
        codec: str,
    ) -> None:
        self.relative = relative
        self.num_rows = 0
        self.nan_free: frozenset[ColumnPath] | None = None
        self._kept: list[pa.Table] = []
        self._kept_rows = 0
        self._kept_bytes = 0
        self._footers: list[pq.FileMetaData] = []
        self._stream = filesystem.open_output_stream(path)
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression=codec,
            store_schema=False,
            metadata_collector=self._footers,
        )

    def write(self, rows: pa.Table) -> None:
        while rows.num_rows:
            part = rows.slice(0, _ROW_GROUP_ROWS - self._kept_rows)
            rows = rows.slice(part.num_rows)
            self._kept.append(part)
            self.num_rows += part.num_rows
            self._kept_rows += part.num_rows
            self._kept_bytes += part.nbytes
            if self._kept_rows >= _ROW_GROUP_ROWS or self._kept_bytes >= _ROW_GROUP_BYTES:
                self._flush()

    def close(self) -> tuple[int, pq.FileMetaData]:
        """The file's size in bytes and its footer."""
        self._flush()
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        return size, self._footers[0]

    def abandon(self) -> None:
        """End the upload, since an open one could not be removed; the file is of no use."""
        for part in (self._writer, self._stream):
            # A writer that failed half-way has no footer to give, which is a RuntimeError.
            with suppress(OSError, RuntimeError, pa.ArrowException):
                part.close()

    def _flush(self) -> None:
        if not self._kept:
            return
        group = pa.concat_tables(self._kept)
        found = nan_free_columns(group)
        self.nan_free = found if self.nan_free is None else self.nan_free & found
        self._writer.write_table(group, row_group_size=_ROW_GROUP_ROWS)
        self._kept, self._kept_rows, self._kept_bytes = [], 0, 0


def delete_files(
    table_path: str, files: Sequence[AddFile], access: DataAccess | None = None
) -> None:
    """Remove files that were written but will never be committed, as far as that can be done."""
    filesystem, root = filesystem_for(table_path, access)
    for item in files:
        with suppress(OSError):  # vacuum finds what is left
            filesystem.delete_file(join(root, unquote(item.path)))


def arrow_rows(rows: pa.Table, schema: StructType) -> pa.Table:
    """The rows with exactly the table's columns: by name in any case, in its order, with its types.

    Columns the rows lack are null.
    """
    wanted = to_arrow_schema(schema)
    present = {name.lower(): name for name in rows.column_names}
    columns = [
        rows[present[field.name.lower()]].cast(field.type)
        if field.name.lower() in present
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.table(columns, schema=wanted)


def _without_empty_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
