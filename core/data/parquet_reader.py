"""Data files of a table as Arrow batches: the table's columns, order and types (design 5).

A plain function of small picklable values, so that it runs alike in this process and on Spark's
executors. Columns are found by their physical names; partition values come from the log, never
from the file (spec 10.2). Files with deletion vectors are refused before, by
`file_parts.ensure_files_readable`; whoever adds them filters each batch by its rows' positions in
`read_batches`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from optimist.core.arrow_types import to_arrow_schema, to_arrow_type
from optimist.core.data.access import DataAccess
from optimist.core.data.column_shape import conform_column, find_name
from optimist.core.data.file_parts import FilePart
from optimist.core.data.filesystem import filesystem_for
from optimist.core.data.partition_values import parse_partition_value
from optimist.core.data.storage_errors import storage_errors, without_secrets
from optimist.core.errors import TableError
from optimist.core.schema import StructField, StructType

__all__ = ["RowLayout", "read_batches"]


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Which columns to read, and what the table says of them.

    Attributes:
        schema: The columns wanted, in order, as the table's schema has them.
        partition_columns: The table's partition columns, by logical name.
        zone: Where partition values of timestamps without a zone were written.
        batch_rows: The most rows of a batch.
        access: How data files are reached.
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    zone: str = "UTC"
    batch_rows: int = 32_768
    access: DataAccess | None = None

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return to_arrow_schema(self.schema)


def read_batches(part: FilePart, layout: RowLayout) -> Iterator[pa.RecordBatch]:
    """The rows of a file, or of a part of it, in the file's order; empty batches are left out.

    Raises:
        TableError: The file is gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`) or is no Parquet file
            (kind `OPTIMIST_UNREADABLE_DATA_FILE`), a value does not fit the table's type (kind
            `OPTIMIST_DATA_FILE_TYPE_MISMATCH`), or a partition value in the log does not (kind
            `OPTIMIST_MALFORMED_PARTITION_VALUE`).
        StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
    """
    columns = _Columns.of(part, layout)
    filesystem, path = filesystem_for(part.path, layout.access)
    with _translated(part.path), _opened(filesystem, path, part.path) as source:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=True)
        groups = _row_groups(file.metadata, part)
        names = file.schema_arrow.names
        found = [find_name(names, item.physical_name) for item in columns.stored]
        wanted = [name for name in found if name is not None]
        for rows in _raw_batches(file, groups, wanted, layout.batch_rows):
            if rows.num_rows:
                yield columns.batch(rows)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Turns a file's batches into the table's; constants are parsed once per file."""

    schema: StructType
    arrow_schema: pa.Schema
    constants: dict[str, pa.Scalar]

    @classmethod
    def of(cls, part: FilePart, layout: RowLayout) -> _Columns:
        partitions = {name.lower() for name in layout.partition_columns}
        constants = {
            item.name: _constant(part, item, layout.zone)
            for item in layout.schema
            if item.name.lower() in partitions
        }
        return cls(layout.schema, layout.arrow_schema, constants)

    @property
    def stored(self) -> tuple[StructField, ...]:
        """The columns that are looked for in the file."""
        return tuple(item for item in self.schema if item.name not in self.constants)

    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [self._column(rows, item) for item in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)

    def _column(self, rows: pa.RecordBatch, item: StructField) -> pa.Array:
        if item.name in self.constants:
            return pa.repeat(self.constants[item.name], rows.num_rows)
        name = find_name(rows.schema.names, item.physical_name)
        if name is None:
            return pa.nulls(rows.num_rows, to_arrow_type(item.data_type))
        values = rows.column(rows.schema.get_field_index(name))
        return conform_column(values, item.data_type, column=item.name)


def _constant(part: FilePart, item: StructField, zone: str) -> pa.Scalar:
    text = part.partition_values.get(item.physical_name)
    value = parse_partition_value(text, item.data_type, zone=zone, column=item.name)
    return pa.scalar(value, to_arrow_type(item.data_type))


def _row_groups(metadata: pq.FileMetaData, part: FilePart) -> list[int]:
    """The row groups that begin in the part's range."""
    numbers = range(metadata.num_row_groups)
    if part.start == 0 and part.end is None:
        return list(numbers)
    end = float("inf") if part.end is None else part.end
    return [number for number in numbers if part.start <= _first_byte(metadata, number) < end]


def _first_byte(metadata: pq.FileMetaData, number: int) -> int:
    group = metadata.row_group(number)
    if group.num_columns == 0:
        return 0
    column = group.column(0)
    offset = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        offset = min(offset, column.dictionary_page_offset)
    return int(offset)


def _raw_batches(
    file: pq.ParquetFile, groups: list[int], names: list[str], batch_rows: int
) -> Iterator[Any]:
    if not groups:
        return
    if names:
        yield from file.iter_batches(batch_rows, row_groups=groups, columns=names)
        return
    # Nothing of the file itself is asked for: its footer knows how many rows it has.
    rest = sum(file.metadata.row_group(number).num_rows for number in groups)
    while rest:
        size = min(rest, batch_rows)
        yield pa.RecordBatch.from_arrays([pa.nulls(size)], names=[""])
        rest -= size


def _opened(filesystem: fs.FileSystem, path: str, shown: str) -> Any:
    try:
        return filesystem.open_input_file(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        with storage_errors("read", shown):
            raise error from None


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise TableError(
            f"The data file {path} is gone, though the table's log names it. It was removed by "
            "hand, or by a vacuum while an old version was read. Restore it, or read a newer "
            "version.",
            kind="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        ) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(
            f"The data file {path} can't be read as Parquet: {without_secrets(str(error))}. "
            "Restore it, or read an older version of the table.",
            kind="OPTIMIST_UNREADABLE_DATA_FILE",
            path=path,
        ) from None
