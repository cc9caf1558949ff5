"""The search for rows of old files in the new files of an OPTIMIZE (spec 10.14).

Nothing is stored for it: the files that were read still exist, and are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet.parquet_reader import Positions, RowLayout, read_located_batches
from optimist.core.data.row_tracking import carried_columns
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.local.target import LocalTarget, is_among, positions_of
from optimist.core.log.file_table import files_table
from optimist.core.maintenance.optimize.compacted_bin import GoneRows
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.types import StructType

__all__ = ["SplitRows", "TrackedRows"]


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows that were split into files by their values, each file in the order of the old files.

    Attributes:
        target: The table in the version that was read.
        files: The old files, as rows of `Snapshot.files`.
        layout: The layout for reading the columns by which rows were split.
        file_numbers: See `RowWriter.split`.
        num_files: The planned number of new files.
    """

    target: LocalTarget
    files: pa.Table
    layout: RowLayout
    file_numbers: Callable[[pa.RecordBatch, Positions], np.ndarray]
    num_files: int

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """Return the positions of rows (see `Trace`)."""
        counts = np.zeros(self.num_files, np.int64)
        found: list[tuple[int, np.ndarray]] = []
        for part, (_, rows) in zip(_parts_of_files(self.target, self.files), gone, strict=True):
            for batch, positions in read_located_batches(part, self.layout):
                numbers = self.file_numbers(batch, positions)
                is_gone = is_among(positions(), rows).to_numpy(zero_copy_only=False)
                for number in np.unique(numbers[is_gone]):
                    inside = numbers == number
                    new_positions = counts[number] + np.cumsum(inside) - 1
                    found.append((int(number), new_positions[inside & is_gone]))
                counts += np.bincount(numbers, minlength=self.num_files)
        starts = np.cumsum(counts) - counts
        moved = BitMap64()
        for number, new_positions in found:
            moved |= positions_of(pa.array(new_positions + starts[number], pa.int64()))
        return moved


@dataclass(frozen=True, slots=True)
class TrackedRows:
    """Rows of a table with row tracking, whose ids are the same in the new files.

    Attributes:
        target: The table in the version that was read.
        files: The old files, as rows of `Snapshot.files`.
        written: The new files.
    """

    target: LocalTarget
    files: pa.Table
    written: Sequence[AddFile]

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """Return the positions of rows (see `Trace`)."""
        snapshot = self.target.snapshot
        row_id, _ = carried_columns(snapshot.metadata, snapshot.protocol)
        layout = self.target.layout(StructType((row_id,)))
        ids = [
            batch.column(0).filter(is_among(positions(), rows))
            for part, (_, rows) in zip(_parts_of_files(self.target, self.files), gone, strict=True)
            if rows
            for batch, positions in read_located_batches(part, layout)
        ]
        wanted = pa.chunked_array(ids, pa.int64()).combine_chunks()
        moved, start = BitMap64(), 0
        parts = _parts_of_files(self.target, files_table(self.written))
        for add, part in zip(self.written, parts, strict=True):
            for batch, positions in read_located_batches(part, layout):
                hits = positions().filter(pc.is_in(batch.column(0), value_set=wanted))
                moved |= positions_of(pc.add(hits, start))
            start += num_rows(add.stats) or 0
        return moved


def _parts_of_files(target: LocalTarget, files: pa.Table) -> Sequence[FilePart]:
    return parts_of(file_parts(target.snapshot.data_paths, files))
