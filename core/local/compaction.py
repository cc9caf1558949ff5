"""The bins of an OPTIMIZE, written in this process (spec 10.14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.column_shape import value_at
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import Positions, RowLayout, read_located_batches
from optimist.core.local.moved_rows import SplitRows
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.maintenance.optimize.compacted_bin import CompactedBin, InOrder
from optimist.core.maintenance.optimize.row_order import (
    SAMPLED_ROWS,
    TIE_BITS,
    FileLayout,
    RowOrder,
    num_files_of,
    num_rows_of,
)
from optimist.core.runtime.progress import Progress, ProgressReport
from optimist.core.schema.types import StructType
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalBins", "write_bins"]

_OPERATION = "OPTIMIZE"


@dataclass(frozen=True, slots=True)
class LocalBins:
    """Writes bins in this process, as a `BinWriter`.

    Attributes:
        progress: Called after each bin with the files that are done.
    """

    progress: Progress | None = None

    def __call__(
        self,
        txn: OptimisticTransaction,
        bins: Sequence[pa.Table],
        pending: UncommittedFiles,
        order: RowOrder | None,
    ) -> Sequence[CompactedBin]:
        """Write the bins (see `BinWriter`)."""
        report = ProgressReport(txn.table.clock, self.progress, _OPERATION)
        writer = RowWriter(LocalTarget(txn, report), pending, is_checked=False, data_change=False)
        return write_bins(writer, bins, order)


def write_bins(
    writer: RowWriter, bins: Sequence[pa.Table], order: RowOrder | None
) -> list[CompactedBin]:
    """Write bins by a writer that does not check rows (see `BinWriter`)."""
    txn, max_bytes = writer.target.txn, writer.target.table.options.optimize_max_file_size
    counts = [1 if order is None else num_files_of(files, max_bytes) for files in bins]
    whole = [files for files, count in zip(bins, counts, strict=True) if count == 1]
    copied = iter(writer.copy(whole, _OPERATION) if whole else ())
    written = []
    for files, count in zip(bins, counts, strict=True):
        if order is None or count == 1:
            found, rows = next(copied)
            written.append(CompactedBin.of(txn, files, found, InOrder(rows)))
        else:
            columns = _order_columns(writer.target, order)
            number_rows = _file_numbers(_choose_layout(writer.target, files, order, columns, count))
            found = writer.split(files, _OPERATION, count, number_rows)
            trace = SplitRows(writer.target, files, columns, number_rows, count)
            written.append(CompactedBin.of(txn, files, found, trace))
    return written


def _order_columns(target: LocalTarget, order: RowOrder) -> RowLayout:
    """Return the layout for reading the columns by which rows are arranged."""
    tops = {path[0] for path in order.columns}
    return target.layout(
        StructType(tuple(item for item in target.snapshot.schema if item.name in tops))
    )


def _choose_layout(
    target: LocalTarget, files: pa.Table, order: RowOrder, columns: RowLayout, num_files: int
) -> FileLayout:
    """Choose the layout of a bin from a sample of its rows, which is always the same."""
    step = max((num_rows_of(files) or 0) // SAMPLED_ROWS, 1)

    def sample_rows(part: FilePart) -> pa.Table:
        batches = [batch for batch, _ in read_located_batches(part, columns)]
        rows = pa.Table.from_batches(batches, columns.arrow_schema)
        return rows.take(pa.array(np.arange(0, rows.num_rows, step)))

    rows = pa.concat_tables(target.read_each("search", files, sample_rows))
    return FileLayout.of(order, [value_at(rows, path) for path in order.columns], num_files)


def _file_numbers(layout: FileLayout) -> Callable[[pa.RecordBatch, Positions], np.ndarray]:
    def number_rows(batch: pa.RecordBatch, positions: Positions) -> np.ndarray:
        # The same at each reading of a file, and as good as random.
        ties = np.asarray(positions()).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        columns: list[Any] = [value_at(batch, path) for path in layout.order.columns]
        return layout.file_numbers(columns, (ties >> np.uint64(64 - TIE_BITS)).astype(np.int64))

    return number_rows
