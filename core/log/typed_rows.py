"""The file actions of a checkpoint of this engine, with the typed columns that it has (spec 5.8).

`CheckpointReader` reads checkpoints of all writers in the columns that the table's state has. The
writer of the next checkpoint continues from one of its own, and takes over all of its columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import OptimistError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import MALFORMED_CHECKPOINT
from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.file_table import file_keys
from optimist.core.log.limits import LogLimits, most_unpacked_bytes, unpacked
from optimist.core.log.parquet_actions import AddReader, ensure_utf8
from optimist.core.log.parquet_batches import bounded_batches
from optimist.core.log.stored_groups import StoredFile, StoredGroup, has_sums, is_as_indexed
from optimist.core.plugins.logstore import LogStore

__all__ = ["OpenAdds", "TypedFile", "not_continued"]

_BATCH_ROWS = 65_536
_MOST_HELD_BYTES = 256 << 20
_OF_DAMAGED_FILES = (
    pa.ArrowException,
    OSError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
)
"""What pyarrow raises for a damaged file."""
_KEY_COLUMNS = ("path", "deletionVector")
_CHECKED = frozenset(
    {"path", "partitionValues", "size", "modificationTime", "dataChange", "deletionVector"}
)
"""What `_ensure_as_written` looks at."""
_BOUNDED = ("add.partitionValues_parsed.", "add.stats_parsed.")


@dataclass(frozen=True, slots=True)
class TypedFile:
    """A Parquet file of a checkpoint. Each method opens it anew.

    Every method raises `TableError` of kind `OPTIMIST_MALFORMED_CHECKPOINT` for a file that is not
    as this engine writes it, and `LogFileNotFoundError` for a missing one.

    Attributes:
        store: The store of the log.
        path: The path of the file.
        limits: The most that is read of it.
    """

    store: LogStore
    path: str
    limits: LogLimits

    def metadata(self, key: str) -> str | None:
        """Return a text that the writer put into the footer, or None."""
        with self._open() as (file, _):
            found = (file.metadata.metadata or {}).get(key.encode())
            return None if found is None else found.decode(errors="replace")

    def num_adds(self) -> int | None:
        """Return the number of adds, if the footer shows it."""
        with self._open() as (file, size_bytes):
            return AddReader(file, size_bytes).num_adds

    def rows(self, column: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `add` or `remove`, which has exactly the columns of `schema`."""
        with self._open() as (file, size_bytes):
            found = self._structs(file, size_bytes, column, schema)
            for batch in unpacked(found, size_bytes, self.limits):
                _ensure_as_written(batch, is_add=column == "add")
                yield batch

    @contextmanager
    def opened(self, schema: pa.Schema, like: StoredFile | None) -> Iterator[OpenAdds]:
        """Open the file once for all of its adds.

        Args:
            schema: The exact columns of `add`.
            like: A file of the kind into which row groups may be copied; None: none may.
        """
        with self._source() as source:
            size_bytes = source.seek(0, os.SEEK_END)
            stored = None if like is None else StoredFile(source)
            if stored is not None and like is not None and not stored.is_written_like(like):
                stored = None
            opened = source if stored is None else cast(BinaryIO, stored)
            with CheckpointFile(opened, is_streamed=True) as file:
                yield OpenAdds(self, file, size_bytes, schema, stored)

    def adds_of(
        self, file: CheckpointFile, size_bytes: int, group: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the adds of a row group, which have exactly the columns of `schema`."""
        found = self._structs(file, size_bytes, "add", schema, [group])
        for batch in unpacked(found, size_bytes, self.limits):
            _ensure_as_written(batch, is_add=True)
            yield batch

    def keys(self, column: str) -> Iterator[pa.Array]:
        """Yield the keys of the rows of `add` or `remove` (see `file_keys`)."""
        with self._open() as (file, size_bytes):
            wanted = [f"{column}.{name}" for name in _KEY_COLUMNS]
            for array in self._arrays(file, size_bytes, column, wanted):
                names = [field.name for field in array.type]
                yield file_keys(pa.RecordBatch.from_arrays(array.flatten(), names=names))

    def _structs(
        self,
        file: CheckpointFile,
        size_bytes: int,
        column: str,
        schema: pa.Schema,
        groups: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        wanted = pa.struct(list(schema))
        fields = [f"{column}.{name}" for name in schema.names]
        for array in self._arrays(file, size_bytes, column, fields, groups):
            if array.type != wanted:
                raise ValueError(f"the column {column!r} is {array.type}, not {wanted}")
            yield pa.RecordBatch.from_arrays(array.flatten(), schema=schema)

    def _arrays(
        self,
        file: CheckpointFile,
        size_bytes: int,
        column: str,
        wanted: list[str],
        groups: Sequence[int] | None = None,
    ) -> Iterator[pa.StructArray]:
        if file.schema_arrow.get_field_index(column) < 0:
            raise ValueError(f"it has no column {column!r}")
        most_bytes = most_unpacked_bytes(size_bytes)
        # One by one: a row group stays one, if it is not written with others.
        for group in range(file.num_row_groups) if groups is None else groups:
            batches = bounded_batches(
                file, wanted, [group], max_rows=_BATCH_ROWS, max_bytes=most_bytes
            )
            for batch in batches:
                array = batch.column(0).drop_null()
                if len(array):
                    yield array

    @contextmanager
    def _open(self) -> Iterator[tuple[CheckpointFile, int]]:
        with self._source() as source, CheckpointFile(source, is_streamed=True) as file:
            yield file, source.seek(0, os.SEEK_END)

    @contextmanager
    def _source(self) -> Iterator[BinaryIO]:
        with self.store.open_read(self.path) as source:
            try:
                yield source
            except OptimistError:
                raise
            except _OF_DAMAGED_FILES as error:
                raise not_continued(self.path, error) from error


class OpenAdds:
    """The adds of an open file.

    Args:
        path: The file.
        file: The same, open.
        size_bytes: Its size.
        schema: The exact columns of `add`.
        stored: The same file, if row groups of it may be copied.

    Attributes:
        groups: The row groups that may hold adds, each with its rows.
    """

    def __init__(
        self,
        path: TypedFile,
        file: CheckpointFile,
        size_bytes: int,
        schema: pa.Schema,
        stored: StoredFile | None,
    ) -> None:
        self._path = path
        self._file = file
        self._size_bytes = size_bytes
        self._schema = schema
        self._stored = stored
        numbers = AddReader(file, size_bytes).groups
        self.groups = [(number, file.metadata.row_group(number).num_rows) for number in numbers]

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the adds of a row group."""
        return self._path.adds_of(self._file, self._size_bytes, number, self._schema)

    def keys(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns that tell files from each other, and sound adds from forged ones."""
        schema = pa.schema([field for field in self._schema if field.name in _CHECKED])
        return self._path.adds_of(self._file, self._size_bytes, number, schema)

    def stored(self, most_rows: int) -> Iterator[StoredGroup | None]:
        """Yield for each of `groups` the row group with its bytes, if these may be copied.

        Until the next one is asked for, its adds are read from the very bytes.

        Args:
            most_rows: The most rows of a row group. One with less than half as many is not copied.
        """
        found = [] if self._stored is None else list(self._stored.groups())
        for number, num_rows in self.groups:
            is_fit = num_rows <= most_rows <= 2 * num_rows
            if self._stored is None or not is_fit or found[number].size_bytes > _MOST_HELD_BYTES:
                yield None
                continue
            group = self._stored.hold(found[number])
            is_sound = has_sums(group) and is_as_indexed(group, self._bounded_leaves())
            yield group if is_sound and self._has_only_adds(number) else None

    def _bounded_leaves(self) -> frozenset[int]:
        """Return the leaves by whose bounds readers leave out row groups (`GroupBounds`)."""
        schema = self._file.schema
        leaves = range(len(schema))
        return frozenset(leaf for leaf in leaves if schema.column(leaf).path.startswith(_BOUNDED))

    def _has_only_adds(self, number: int) -> bool:
        """Return whether a row group has no action but adds, in exactly the right columns.

        As for all readers here, the footer decides which other actions are there.
        """
        if self._file.schema_arrow.field("add").type != pa.struct(list(self._schema)):
            return False
        schema = self._file.schema
        return all(
            schema.column(leaf).path.startswith("add.") or self._is_empty(number, leaf)
            for leaf in range(len(schema))
        )

    def _is_empty(self, number: int, leaf: int) -> bool:
        statistics = self._file.chunks.statistics(number, leaf)
        return (
            statistics is not None
            and statistics.has_null_count
            and statistics.null_count == self._file.metadata.row_group(number).num_rows
        )


def not_continued(path: str, reason: object) -> TableError:
    """Make the error for a checkpoint that the next one can't continue."""
    return TableError(
        f"The checkpoint's file {shown(path)} can't be continued: {shown(reason)}. The table's "
        "files are read from it in another way.",
        kind=MALFORMED_CHECKPOINT,
        path=path,
    )


def _ensure_as_written(batch: pa.RecordBatch, *, is_add: bool) -> None:
    """Refuse rows that this engine does not write, such as those of a forged file."""
    if batch.column("path").null_count:
        raise ValueError("a file action lacks its path")
    if not pc.all(pc.invert(batch.column("dataChange")), min_count=0).as_py():
        raise ValueError("a file action of a checkpoint changes data")
    if not is_add:
        return
    ensure_utf8(batch)
    vectors = batch.column("deletionVector").drop_null()
    parts = dict(zip((field.name for field in vectors.type), vectors.flatten(), strict=True))
    given = [batch.column(name) for name in ("size", "partitionValues", "modificationTime")]
    given += [parts[name] for name in ("storageType", "pathOrInlineDv", "sizeInBytes")]
    if any(column.null_count for column in (*given, parts["cardinality"])):
        raise ValueError("an add lacks a value that each add has")
    counts = (batch.column("size"), parts["sizeInBytes"], parts["cardinality"], parts["offset"])
    if any((pc.min(column).as_py() or 0) < 0 for column in counts):
        raise ValueError("an add counts bytes or rows below zero")
