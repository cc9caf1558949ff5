"""The table that a command changes in this process: it finds and reads the table's rows.

Rows are read one file at a time, with a few files ahead, so that memory use does not grow with the
number of files. A row is identified by its file and its position in the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.data.storage.reader_threads import reader_threads
from optimist.core.data.table_ref import TableRef
from optimist.core.local.conditions import RUN_WITH_SPARK, LocalCondition
from optimist.core.runtime.progress import FileProgress, ProgressReport, Step
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.row_filter import row_mask, with_columns_of
from optimist.core.snapshot.row_layout import row_layout
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalTarget", "is_among", "positions_of"]

_Result = TypeVar("_Result")
_BATCH_ROWS = 131_072
_BYTES_TOGETHER = 8 << 20
"""Files that together have about this size are read by one call of `read_together`."""


@dataclass(frozen=True)
class LocalTarget:
    """One table in one transaction.

    Attributes:
        txn: The transaction.
        report: Called after each file.
        zone: The time zone of conditions and partition values.
    """

    txn: OptimisticTransaction
    report: ProgressReport
    zone: str = "UTC"

    @property
    def snapshot(self) -> Snapshot:
        """The version that the command reads."""
        return self.txn.snapshot

    @property
    def table(self) -> TableRef:
        """The table."""
        return self.txn.table

    # Finding rows

    def search(self, candidates: pa.Table, condition: LocalCondition | None) -> TouchedFiles:
        """Find the files of the version that hold matching rows.

        Without a condition, or with a condition on partition columns only, no row is read, and
        every row of the files matches.

        Args:
            candidates: Rows of `Snapshot.files`.
            condition: The condition for matching rows; None for all rows.
        """
        if condition is None:
            return TouchedFiles(candidates, None)
        if condition.is_partition_only:
            return TouchedFiles(condition.matching_partitions(self.snapshot, candidates), None)
        found = list(self._search_files(candidates, condition))
        hit = [index for index, rows in enumerate(found) if rows]
        rows = tuple(found[index] for index in hit)
        files = candidates.take(pa.array(hit, pa.int64()))
        return TouchedFiles(files, sum(map(len, rows)), rows)

    def _search_files(self, candidates: pa.Table, condition: LocalCondition) -> Iterator[BitMap64]:
        predicate, schema = condition.predicate, self.snapshot.schema
        named = with_columns_of(predicate, StructType(), schema)
        layout = self.layout(named or StructType(schema.fields[:1]))

        def matching_rows(part: FilePart) -> BitMap64:
            found = BitMap64()
            for batch, positions in read_located_batches(part, layout):
                mask = row_mask(predicate, batch, zone=condition.zone, remedy=RUN_WITH_SPARK)
                if mask.true_count:
                    found |= positions_of(positions().filter(mask))
            return found

        return self.read_each("search", candidates, matching_rows)

    # Reading files

    def read_each(
        self, step: Step, files: pa.Table, work: Callable[[FilePart], _Result]
    ) -> Iterator[_Result]:
        """Yield the result of `work` for each file, in order.

        Several threads call it.

        Args:
            step: The step's name, for the report.
            files: Rows of `Snapshot.files`.
            work: Reads one file.
        """
        parts = parts_of(file_parts(self.snapshot.data_paths, files))
        threads = reader_threads(self.table.table_path)
        found = read_ahead(work, parts, threads=threads, ahead=2 * threads)
        for done, result in enumerate(found, start=1):
            self.report.tell(FileProgress(step, done, len(parts)))
            yield result

    def read_together(
        self, step: Step, files: pa.Table, work: Callable[[Sequence[FilePart]], None]
    ) -> None:
        """Call `work` for some files at a time: small files together, but enough for all threads.

        Several threads call it.

        Args:
            step: The step's name, for the report.
            files: Rows of `Snapshot.files`.
            work: Reads the files.
        """
        parts = parts_of(file_parts(self.snapshot.data_paths, files))
        threads = reader_threads(self.table.table_path)
        most_files = -(-len(parts) // threads)
        groups = list(_files_together(parts, files["size"].to_pylist(), most_files))
        done = 0
        found = read_ahead(work, groups, threads=threads, ahead=2 * threads)
        for group, _ in zip(groups, found, strict=True):
            for _ in group:
                done += 1
                self.report.tell(FileProgress(step, done, len(parts)))

    def layout(self, schema: StructType) -> RowLayout:
        """Return the layout for reading some columns of the table's files."""
        access = self.table.data_access()
        return row_layout(
            self.snapshot, schema, zone=self.zone, batch_rows=_BATCH_ROWS, access=access
        )


def _files_together(
    parts: Sequence[FilePart], sizes: Sequence[int], most_files: int
) -> Iterator[list[FilePart]]:
    """Yield files that follow each other, until they are so many or have about the size."""
    group: list[FilePart] = []
    num_bytes = 0
    for part, size in zip(parts, sizes, strict=True):
        group.append(part)
        num_bytes += size
        if len(group) >= most_files or num_bytes >= _BYTES_TOGETHER:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group


def positions_of(numbers: pa.Array) -> BitMap64:
    """Convert an array of positions (int64, no nulls) to a set."""
    _, values = numbers.buffers()
    items = array("Q")
    items.frombytes(memoryview(values)[8 * numbers.offset : 8 * (numbers.offset + len(numbers))])
    return BitMap64(items)


def is_among(positions: pa.Array, rows: BitMap64) -> pa.BooleanArray:
    """Tell for each position (int64, in rising order) whether it is one of the rows."""
    if not len(positions):
        return pa.array([], pa.bool_())
    first, end = positions[0].as_py(), positions[-1].as_py() + 1
    rows = rows & BitMap64(range(first, end))
    buffer = pa.py_buffer(rows.to_array())
    if end - first == len(positions):
        found = np.zeros(len(positions), np.bool_)
        found[np.frombuffer(buffer, np.uint64).astype(np.int64) - first] = True
        return pa.array(found)
    numbers = pa.Array.from_buffers(pa.int64(), len(rows), [None, buffer])
    return pc.is_in(positions, value_set=numbers)
