"""Data files of a table as Arrow batches: the table's columns, order and types (spec 10.8, 10.10).

`read_batches` is a plain function of small picklable values, so it runs in this process and on
Spark's executors. Columns are found by their physical names. Partition values come from the log,
never from the file (spec 10.2). Rows that a deletion vector marks are left out by their positions
in the file. These are known even if only a part of the file is read, because the footer has the
number of rows in each row group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyroaring import BitMap64

from optimist.core.data.column_shape import (
    conform_column,
    find_field,
    has_field_ids,
    is_text_dictionary,
    nulls_of,
)
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.leaf_columns import leaf_columns
from optimist.core.data.parquet.text_dictionaries import (
    StoredDictionaries,
    UnfitDictionaryError,
    in_plain_pieces,
)
from optimist.core.data.partition_values import partition_scalar
from optimist.core.data.row_tracking import is_tracking_column, with_defaults
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.storage.filesystem import filesystem_for, open_to_read
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.unreadable_files import UNREADABLE, may_be_cut, whole_copy
from optimist.core.data.vectors.deletion_vectors import ensure_rows_exist, read_deletion_vector
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.data_access import DataAccess
from optimist.core.schema.arrow_types import to_arrow_schema, to_arrow_type
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.core.values.column_chunks import ColumnChunks
from optimist.core.values.legacy_calendar import LegacyCalendar

__all__ = ["Positions", "RowLayout", "read_batches", "read_located_batches"]

_RUN_BYTES = 128 << 20
"""The size, uncompressed, at which a run of row groups is not made longer."""
_WORTH_THREADS = 8 << 20
"""The uncompressed size of a run below which a thread for each column costs more than it saves."""

_FEW_ROWS = 1 << 14
"""A file with fewer rows is read with texts as such: to look at its dictionaries takes longer."""

_TEXT = PrimitiveType("string")

Positions = Callable[[], pa.Array]
"""Returns the positions of a batch's rows in their file, from 0 (int64)."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The columns to read, and the facts of the table that this needs.

    Attributes:
        schema: The wanted columns, in order, as in the table's schema.
        partition_columns: The table's partition columns, by logical name.
        zone: The time zone in which partition values of timestamps without one were written.
        batch_rows: The most rows of a batch.
        access: The access to data files.
        data_paths: The rules for paths of deletion vectors' files. None if no data file has a
            vector.
        by_id: Whether columns are found in files by their ids, not by their physical names.
        keeps_dictionaries: Whether columns of texts come as numbers into a dictionary where a file
            of this machine stores them so, for rows that go into another file.
        arrow_schema: The schema of the batches, with all texts as such.
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    zone: str = "UTC"
    batch_rows: int = 32_768
    access: DataAccess | None = None
    data_paths: DataPaths | None = None
    by_id: bool = False
    keeps_dictionaries: bool = False
    arrow_schema: pa.Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrow_schema", to_arrow_schema(self.schema))  # once for all files


def read_batches(part: FilePart, layout: RowLayout) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, or of a part of it, in the file's order, without empty batches.

    Raises:
        TableError: The file is gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`) or is not a Parquet file
            (`OPTIMIST_UNREADABLE_DATA_FILE`); a value does not fit the table's type
            (`OPTIMIST_DATA_FILE_TYPE_MISMATCH`), or a partition value in the log does not
            (`OPTIMIST_MALFORMED_PARTITION_VALUE`); columns are found by ids and the file has none
            (`OPTIMIST_DATA_FILE_WITHOUT_IDS`); the file's deletion vector can't be read (kinds of
            `read_deletion_vector`) or names rows that the file lacks
            (`OPTIMIST_MALFORMED_DELETION_VECTOR`); or the file has dates in an old calendar
            (`OPTIMIST_LEGACY_CALENDAR`).
        StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
    """
    for batch, _ in read_located_batches(part, layout):
        yield batch


def read_located_batches(
    part: FilePart, layout: RowLayout
) -> Iterator[tuple[pa.RecordBatch, Positions]]:
    """Yield batches like `read_batches`, each with a function for its rows' positions."""
    filesystem, path = filesystem_for(part.path, layout.access)
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    constants, deleted = _constant_columns(part, layout), _read_vector(part, layout)
    keeps = layout.keeps_dictionaries and is_local  # to look at each would be a request
    reading = _Reading(part, layout, constants, deleted, is_local, keeps)
    plain = replace(reading, keeps_dictionaries=False)
    done = 0  # the position behind the last row that was returned
    with _translating_errors(part.path):
        for each in (reading, plain) if keeps else (plain,):
            try:
                with _open(filesystem, path, part.path) as source:
                    for end, found in _located_batches(source, each, done):
                        yield from found
                        done = end
                    return
            except UnfitDictionaryError:
                continue
            except UNREADABLE as error:
                if not may_be_cut(filesystem, error):
                    raise
                break
        with whole_copy(part.path, layout.access) as copy:
            for _, found in _located_batches(copy, plain, done):
                yield from found


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a file, or a part of it, is read.

    Attributes:
        part: The file.
        layout: The columns.
        constants: The values of partition columns.
        deleted: The positions that the deletion vector has; None without one.
        is_local: Whether the file is on a disk of this machine.
        keeps_dictionaries: Whether texts come as numbers where that saves time.
    """

    part: FilePart
    layout: RowLayout
    constants: dict[str, pa.Scalar]
    deleted: BitMap64 | None
    is_local: bool
    keeps_dictionaries: bool


def _located_batches(
    source: pa.NativeFile, reading: _Reading, first: int
) -> Iterator[tuple[int, list[tuple[pa.RecordBatch, Positions]]]]:
    """Yield the batches of an open file from a row on, each with the position behind its rows.

    The list is empty if no row of a batch is left, or else has one item.

    Raises:
        UnfitDictionaryError: Texts of the next rows can't come as numbers.
    """
    part, layout, deleted = reading.part, reading.layout, reading.deleted
    file, dictionaries = _open_parquet(source, reading)
    columns = _Columns.of(file, reading)
    legacy = LegacyCalendar.of(file.metadata.metadata)
    if deleted is not None:
        ensure_rows_exist(deleted, file.metadata.num_rows, part.path)
    names, batch_rows = columns.stored_names, layout.batch_rows
    for found, read in _raw_batches(file, dictionaries, part, names, batch_rows):
        start, rows = max(found, first), read.slice(max(0, first - found))
        num_rows = rows.num_rows
        if not num_rows:
            continue
        if legacy is not None:
            legacy.ensure_not_met(rows, part.path)
        batch = columns.batch(rows, start)
        mask = None if deleted is None else _live_mask(deleted, start, num_rows)
        kept = batch if mask is None else batch.filter(mask)
        located = (kept, partial(_live_positions, start, num_rows, mask))
        yield start + num_rows, [located] if kept.num_rows else []


def _open_parquet(
    source: pa.NativeFile, reading: _Reading
) -> tuple[pq.ParquetFile, StoredDictionaries | None]:
    """Open a file, and return it with the dictionaries by which texts are read, if any are."""
    # INT96 in nanoseconds would end in 2262. Buffering ahead merges many requests into few, but to
    # wait for the threads that do it takes longer than to read a file of this machine.
    settings = {"coerce_int96_timestamp_unit": "us", "pre_buffer": not reading.is_local}
    file = pq.ParquetFile(source, **settings)
    if not reading.keeps_dictionaries or file.metadata.num_rows < _FEW_ROWS:
        return file, None
    stored = StoredDictionaries.of(file, source)
    if not stored.counts:
        return file, None
    names = list(stored.counts)
    return pq.ParquetFile(source, metadata=file.metadata, read_dictionary=names, **settings), stored


def _read_vector(part: FilePart, layout: RowLayout) -> BitMap64 | None:
    if part.deletion_vector is None:
        return None
    if layout.data_paths is None:
        raise ValueError(f"the layout can't find the deletion vector of {part.path}")
    return read_deletion_vector(part.deletion_vector, layout.data_paths, layout.access)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The conversion of a file's batches to the table's, with names and constants found once."""

    reading: _Reading
    names_in_file: dict[str, str]
    """The file's name of each column of the table."""
    stored_names: list[str]
    """The columns to read from the file. Of structs, only the wanted parts."""

    @classmethod
    def of(cls, file: pq.ParquetFile, reading: _Reading) -> _Columns:
        fields, by_id = list(file.schema_arrow), reading.layout.by_id
        if by_id:
            _ensure_ids(fields, reading.part)
        names_in_file: dict[str, str] = {}
        names: list[str] = []
        for item in reading.layout.schema:
            index = find_field(fields, item, by_id=by_id)
            if index is not None and item.name not in reading.constants:
                names_in_file[item.name] = fields[index].name
                names += leaf_columns(file, fields, index, item.data_type, by_id=by_id)
        return cls(reading, names_in_file, names)

    def batch(self, rows: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Return the file's rows as the table's. The first is at position `start`.

        Raises:
            ValueError: No column is asked for, so that the batch could not tell how many rows it
                has.
        """
        layout = self.reading.layout
        if not layout.schema.fields:
            raise ValueError(f"rows of {self.reading.part.path} are read without any column")
        columns, schema = [], layout.arrow_schema
        for index, item in enumerate(layout.schema):
            column = self._column(rows, item)
            if is_tracking_column(item):
                column = self._fill_tracked(column, item, start)
            if is_text_dictionary(column.type):
                schema = schema.set(index, schema.field(index).with_type(column.type))
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, rows: pa.RecordBatch, item: StructField) -> pa.Array:
        reading = self.reading
        if item.name in reading.constants:
            return pa.repeat(reading.constants[item.name], rows.num_rows)
        if item.name not in self.names_in_file:
            return nulls_of(to_arrow_type(item.data_type), rows.num_rows)
        values = rows.column(rows.schema.get_field_index(self.names_in_file[item.name]))
        is_kept = reading.keeps_dictionaries and item.data_type == _TEXT
        if is_kept and is_text_dictionary(values.type):
            return values
        return conform_column(values, item.data_type, column=item.name, by_id=reading.layout.by_id)

    def _fill_tracked(self, stored: pa.Array, item: StructField, start: int) -> pa.Array:
        part = self.reading.part
        return with_defaults(
            stored,
            item,
            _positions_from(start, len(stored)),
            base_row_id=part.base_row_id,
            commit_version=part.default_row_commit_version,
        )


def _ensure_ids(fields: Sequence[pa.Field], part: FilePart) -> None:
    if has_field_ids(fields):
        return
    raise TableError(
        f"The table finds columns in files by their ids (delta.columnMapping.mode is id), and the "
        f"data file {shown(part.path)} has none. Nothing was read. The engine that wrote the file "
        "broke the protocol. Read an older version of the table.",
        kind="OPTIMIST_DATA_FILE_WITHOUT_IDS",
        path=part.path,
    )


def _constant_columns(part: FilePart, layout: RowLayout) -> dict[str, pa.Scalar]:
    partitions = {name.lower() for name in layout.partition_columns}
    return {
        item.name: _constant_scalar(part, item, layout.zone)
        for item in layout.schema
        if item.name.lower() in partitions
    }


def _constant_scalar(part: FilePart, item: StructField, zone: str) -> pa.Scalar:
    text = part.partition_values.get(item.physical_name)
    return partition_scalar(text, item.data_type, zone=zone, column=item.name)


def _row_groups(metadata: pq.FileMetaData, part: FilePart) -> list[int]:
    """Return the row groups that begin in the part's range."""
    numbers = range(metadata.num_row_groups)
    if part.start == 0 and part.end is None:
        return list(numbers)
    end = float("inf") if part.end is None else part.end
    chunks = ColumnChunks(metadata)
    return [number for number in numbers if part.start <= _first_byte(chunks, number) < end]


def _first_byte(chunks: ColumnChunks, number: int) -> int:
    if chunks.metadata.row_group(number).num_columns == 0:
        return 0
    column = chunks.chunk(number, 0)
    offset = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        offset = min(offset, column.dictionary_page_offset)
    return int(offset)


def _raw_batches(
    file: pq.ParquetFile,
    dictionaries: StoredDictionaries | None,
    part: FilePart,
    names: list[str],
    batch_rows: int,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of those columns, each with the position of its first row in the file."""
    for start, groups, size in _runs(file.metadata, _row_groups(file.metadata, part)):
        threaded = size >= _WORTH_THREADS
        for batch in _read_groups(file, groups, names, batch_rows, use_threads=threaded):
            if dictionaries is not None:
                dictionaries.ensure_fit(batch, start)
            for rows in in_plain_pieces(batch):
                yield start, rows
                start += rows.num_rows


def _runs(metadata: pq.FileMetaData, groups: Sequence[int]) -> Iterator[tuple[int, list[int], int]]:
    """Yield row groups that follow each other, with their first row's position and their size.

    A run is read ahead as a whole, so a large one ends early.
    """
    wanted, position = set(groups), 0
    run: list[int] = []
    start = size = 0
    for number in range(metadata.num_row_groups):
        if run and (number not in wanted or size >= _RUN_BYTES):
            yield start, run, size
            run, size = [], 0
        group = metadata.row_group(number)
        if number in wanted:
            start = start if run else position
            run.append(number)
            size += group.total_byte_size
        position += group.num_rows
    if run:
        yield start, run, size


def _read_groups(
    file: pq.ParquetFile,
    groups: list[int],
    names: list[str],
    batch_rows: int,
    *,
    use_threads: bool,
) -> Iterator[pa.RecordBatch]:
    if names:
        yield from file.iter_batches(
            batch_rows, row_groups=groups, columns=names, use_threads=use_threads
        )
        return
    # No column of the file itself is wanted: its footer has the number of rows.
    rest = sum(file.metadata.row_group(number).num_rows for number in groups)
    while rest:
        size = min(rest, batch_rows)
        yield pa.RecordBatch.from_arrays([pa.nulls(size)], names=[""])
        rest -= size


def _live_mask(deleted: BitMap64, start: int, num_rows: int) -> pa.Array | None:
    """Return which of these rows from position `start` on are live, or None if all are."""
    end = start + num_rows
    here = deleted & BitMap64(range(start, end))
    return _decode_mask(here, start, end) if here else None


def _live_positions(start: int, num_rows: int, mask: pa.Array | None) -> pa.Array:
    """Return the positions of the rows from `start` on that the mask keeps."""
    positions = _positions_from(start, num_rows)
    return positions if mask is None else positions.filter(mask)


def _decode_mask(deleted: BitMap64, start: int, end: int) -> pa.Array:
    """Return which of the positions are not deleted, as booleans.

    Runs of kept and of deleted rows alternate. A run ends where the set of deleted positions
    differs from itself shifted by one, so no work is done row by row.
    """
    ends = deleted ^ deleted.shift(1)
    ends.discard(start)
    ends.add(end)
    # Use the numbers in memory: a Python object for each would take far longer.
    numbers = pa.Array.from_buffers(pa.uint64(), len(ends), [None, pa.py_buffer(ends.to_array())])
    run_ends = pc.subtract(numbers, pa.scalar(start, pa.uint64())).cast(pa.int32())
    kept = pa.array(np.arange(len(ends)) % 2 == int(start in deleted))
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(run_ends, kept))


def _positions_from(start: int, num_rows: int) -> pa.Array:
    return pa.array(np.arange(start, start + num_rows, dtype=np.int64))


def _open(filesystem: fs.FileSystem, path: str, name: str) -> Any:
    try:
        return open_to_read(filesystem, path)
    except OSError as error:
        if may_be_cut(filesystem, error) or isinstance(error, FileNotFoundError):
            raise
        with storage_errors("read", name):
            raise error from None


@contextmanager
def _translating_errors(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise TableError(
            f"The data file {shown(path)} is missing, although the table's log names it. It was "
            "removed by hand, or by VACUUM while an old version was read. Restore it, or read a "
            "newer version.",
            kind="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        ) from None
    except UNREADABLE as error:
        raise TableError(
            f"The data file {shown(path)} can't be read as Parquet: {shown(error)}. "
            "Restore it, or read an older version of the table.",
            kind="OPTIMIST_UNREADABLE_DATA_FILE",
            path=path,
        ) from None
