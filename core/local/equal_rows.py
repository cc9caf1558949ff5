"""Rows of old files in the new ones of an OPTIMIZE, where rows have no ids (spec 10.14).

A Spark job tells nobody in which order it has written. But a row without an id is nothing but its
values, so any row of the new files with the same values stands for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.data.file_parts import file_parts, parts_of
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.errors import TableError
from optimist.core.local.target import LocalTarget, is_among, positions_of
from optimist.core.log.file_table import files_table
from optimist.core.maintenance.optimize.compacted_bin import GoneRows
from optimist.core.protocol.actions import AddFile

__all__ = ["EqualRows"]

_MOST_ROWS = 100_000
"""So many rows are looked for, since each becomes a Python object."""


@dataclass(frozen=True, slots=True)
class EqualRows:
    """Rows of a table that has no ids of rows.

    Attributes:
        target: The table in the version that was read.
        files: The old files, rows of `Snapshot.files`.
        written: The new files.
    """

    target: LocalTarget
    files: pa.Table
    written: Sequence[AddFile]

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """Find the rows, as `Trace`; also None where pyarrow can't read what Spark can."""
        if sum(len(rows) for _, rows in gone) > _MOST_ROWS:
            return None
        layout = self.target.layout(self.target.snapshot.schema)
        try:
            return self._found(self._gone_rows(gone, layout), layout)
        except TableError:
            return None

    def _gone_rows(self, gone: Sequence[GoneRows], layout: RowLayout) -> pa.Table:
        paths = self.target.snapshot.data_paths
        parts = parts_of(file_parts(paths, self.files))
        batches = [
            batch.filter(is_among(positions(), rows))
            for part, (_, rows) in zip(parts, gone, strict=True)
            if rows
            for batch, positions in read_located_batches(part, layout)
        ]
        return pa.Table.from_batches(batches, layout.arrow_schema)

    def _found(self, gone: pa.Table, layout: RowLayout) -> BitMap64 | None:
        """Find where the rows stand; None if one of them is nowhere."""
        wanted = Counter(_values(gone))
        moved, start = BitMap64(), 0
        parts = parts_of(file_parts(self.target.snapshot.data_paths, files_table(self.written)))
        for add, part in zip(self.written, parts, strict=True):
            for batch, positions in read_located_batches(part, layout):
                may_be = _may_be_among(batch, gone)
                hits = [_take(wanted, row) for row in _values(batch.filter(may_be))]
                found = positions().filter(may_be).filter(pa.array(hits, pa.bool_()))
                moved |= positions_of(pc.add(found, start))
            start += num_rows(add.stats) or 0
        return moved if wanted.total() == 0 else None


def _take(wanted: Counter[str], row: str) -> bool:
    is_wanted = wanted[row] > 0
    if is_wanted:
        wanted[row] -= 1
    return is_wanted


def _may_be_among(batch: pa.RecordBatch, rows: pa.Table) -> pa.BooleanArray:
    """Find the rows of a batch whose values, column by column, some of the rows have."""
    mask = pa.repeat(pa.scalar(True), batch.num_rows)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_nested(column.type) and not pa.types.is_null(column.type):
            mask = pc.and_(mask, pc.is_in(column, value_set=rows[name].combine_chunks()))
    return mask


def _values(rows: pa.Table | pa.RecordBatch) -> Iterator[str]:
    """Give each row as a text that only equal rows share: bit by bit, but for kinds of NaN."""
    columns = [
        column.view(_counted(column.type)).to_pylist()
        for column in (pa.concat_arrays(_chunks(item)) for item in rows.columns)
    ]
    return map(repr, zip(*columns, strict=True))


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    return column.chunks or [pa.array([], column.type)]


def _counted(kind: pa.DataType) -> pa.DataType:
    """Return the type with days and microseconds as numbers: Python has no year after 9999."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_counted(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_counted(kind.key_type), kind.item_field.with_type(_counted(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)))
    return kind
