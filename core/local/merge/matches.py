"""Which rows of the table match, and which clauses they get (spec 10.15).

1. A source of one block is in memory. Files are read in runs of batches, small files together, and
   each run is searched.
2. A larger source whose rows are found by equal keys is split into pieces by a hash of the keys, on
   this machine's disk, and so are the rows of the table that can match. Each piece is searched
   alone.
3. Any other source is searched block by block, each against all files.

Pairs of rows are made and judged a bounded number at a time. What is kept of a row is its position,
as a bit; the values that updated rows get are kept in memory as far as they are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.local.merge.found_rows import FileRows, FoundRows
from optimist.core.local.merge.join import JoinBranch
from optimist.core.local.merge.joined_rows import BlockSearch, RowFates
from optimist.core.local.merge.key_hashes import key_hashes
from optimist.core.local.merge.pieces import SourcePieces
from optimist.core.local.merge.resolution import LocalResolvedMerge
from optimist.core.local.merge.table_rows import StoredTableRows, TableRows
from optimist.core.local.target import LocalTarget, is_among
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.types import StructType

__all__ = ["find_matches"]

_RUN_BYTES = 32 << 20
"""Rows of the table are searched together until they have about this size."""
_RUN_ROWS = 1 << 18
"""Or until they are so many: a search takes some numbers for each row, however small a row is."""
_WRITTEN_BYTES = 4 << 20
"""Rows of a file are split into pieces until they have about this size."""
_SEARCHERS = 2

_Item = TypeVar("_Item")


@contextmanager
def find_matches(
    target: LocalTarget, candidates: pa.Table, merge: LocalResolvedMerge
) -> Iterator[FoundRows]:
    """Search the files, and read only the columns that decide.

    What is stored is freed at the end of the context.

    Raises:
        StorageError: The disk for what is stored is full, or failed.
        UsageError: Several rows of the source change one of the table, and it matters.
    """
    names, schema = merge.columns_for_search(), target.snapshot.schema
    columns = tuple(item for item in schema if item.name in names)
    # Rows are counted by a column even where none decides.
    layout = target.layout(StructType(columns or schema.fields[:1]))
    search = _Search(target, candidates, merge, layout)
    takes_several = merge.takes_several_matches
    has_keys = len(merge.branches) == 1 and bool(merge.branches[0].keys)
    if merge.source.num_blocks > 1 and has_keys:
        (branch,) = merge.branches
        with (
            SourcePieces.of(merge.source, branch.keys) as pieces,
            closing(FoundRows(pieces, takes_several=takes_several)) as found,
        ):
            search.in_pieces(pieces, branch, found)
            yield found
    else:
        with closing(FoundRows(merge.source, takes_several=takes_several)) as found:
            search.in_blocks(found)
            yield found


@dataclass(frozen=True, slots=True)
class _Search:
    """Searches the files of one MERGE.

    Attributes:
        target: The table.
        candidates: The files, as rows of `Snapshot.files`.
        merge: The MERGE.
        layout: Reads the columns that decide.
    """

    target: LocalTarget
    candidates: pa.Table
    merge: LocalResolvedMerge
    layout: RowLayout

    def in_blocks(self, found: FoundRows) -> None:
        """Search all files for each block of the source."""
        for rows, is_last in _with_last(self.merge.source.blocks()):
            block = _BlockSearch(BlockSearch.of(self.merge, rows), found, is_last)

            def search(parts: Sequence[FilePart], block: _BlockSearch = block) -> None:
                for run in self._runs(parts, _RUN_BYTES):
                    block.search(run)

            # Each search makes a table of the block's keys, so small files are searched together.
            self.target.read_together("search", self.candidates, search)
            found.end_block(block.block.is_matched)

    def in_pieces(self, pieces: SourcePieces, branch: JoinBranch, found: FoundRows) -> None:
        """Search each piece of the source in the rows of the table that can match it."""
        with closing(StoredTableRows(pieces.num_pieces)) as stored:
            self._store(stored, branch)
            for number in range(pieces.num_pieces):
                for rows, is_last in _with_last(pieces.blocks_of(number)):
                    block = _BlockSearch(BlockSearch.of(self.merge, rows), found, is_last)
                    matters = rows.num_rows or self.merge.searches_all_rows
                    runs = stored.runs(number, _RUN_BYTES) if matters else ()
                    for _ in read_ahead(block.search, runs, threads=_SEARCHERS, ahead=_SEARCHERS):
                        pass
                    found.end_block(block.block.is_matched)

    def _store(self, stored: StoredTableRows, branch: JoinBranch) -> None:
        """Write the rows that can match to disk, in pieces, or all rows where all can change."""

        def store(part: FilePart) -> None:
            number = stored.number_of(part.reference)
            for run in self._runs([part], _WRITTEN_BYTES):
                rows, positions = run.rows, run.positions
                keys = [key.of_target(rows) for key in branch.keys]
                hashes = key_hashes(keys, rows.num_rows)
                if not self.merge.searches_all_rows:
                    is_able = branch.able_targets(rows, keys, self.merge.sides)
                    mask, hashes = pa.array(is_able), hashes[is_able]
                    rows, positions = rows.filter(mask), positions.filter(mask)
                stored.add(number, rows, positions, hashes)

        for _ in self.target.read_each("search", self.candidates, store):
            pass
        stored.finish()

    def _runs(self, parts: Sequence[FilePart], max_bytes: int) -> Iterator[TableRows]:
        """Yield the rows of some files, some batches at a time."""
        batches: list[pa.RecordBatch] = []
        positions: list[pa.Array] = []
        ends: dict[str, int] = {}
        num_rows = num_bytes = 0

        def run() -> TableRows:
            rows = pa.Table.from_batches(batches, schema=self.layout.arrow_schema)
            return TableRows(list(ends.items()), rows, pa.concat_arrays(positions))

        for part in parts:
            for batch, find_positions in read_located_batches(part, self.layout):
                batches.append(batch)
                positions.append(find_positions())
                num_rows, num_bytes = num_rows + batch.num_rows, num_bytes + batch.nbytes
                ends[part.reference] = num_rows
                if num_bytes >= max_bytes or num_rows >= _RUN_ROWS:
                    yield run()
                    batches, positions, ends, num_rows, num_bytes = [], [], {}, 0, 0
        if batches:
            yield run()


@dataclass(frozen=True, slots=True)
class _BlockSearch:
    """Searches rows of the table for those that match a block of the source.

    Attributes:
        block: The block.
        found: Gets the rows.
        is_last: Whether rows without a match can be told, since no other block can match them.
    """

    block: BlockSearch
    found: FoundRows
    is_last: bool

    def search(self, run: TableRows) -> None:
        """Search some rows."""
        merge = self.block.merge
        fates = self.block.fates(run.rows)
        clauses = fates.clauses
        if self.is_last and merge.searches_all_rows:
            clauses = self._with_absent(run, fates)
        keeps_matched = merge.has_inserts or merge.searches_all_rows
        values, places = self.block.values(run.positions, fates)
        for name, part in run.parts():
            first, end = np.searchsorted(places, (part.start, part.stop))
            if end > first:
                self.found.values.add(name, values.slice(first, end - first))
            matched = fates.is_matched[part] if keeps_matched else None
            positions = run.positions.slice(part.start, part.stop - part.start)
            self.found.add(name, FileRows.of(positions, clauses[part], matched))

    def _with_absent(self, run: TableRows, fates: RowFates) -> np.ndarray:
        """Return the clauses, also of rows that match nothing."""
        merge = self.block.merge
        is_alone = ~fates.is_matched
        for name, part in run.parts():
            before = self.found.file(name).matched
            if before:
                positions = run.positions.slice(part.start, part.stop - part.start)
                is_alone[part] &= ~is_among(positions, before).to_numpy(zero_copy_only=False)
        alone = run.rows.filter(pa.array(is_alone))
        numbers = merge.clauses_of_rows(
            "NOT MATCHED BY SOURCE",
            lambda: merge.sides.rows("NOT MATCHED BY SOURCE", target=alone),
            alone.num_rows,
        )
        clauses: np.ndarray = fates.clauses.copy()
        clauses[is_alone] = pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False)
        return clauses


def _with_last(items: Iterator[_Item]) -> Iterator[tuple[_Item, bool]]:
    """Yield each item with whether it is the last."""
    last = next(items)
    for item in items:
        yield last, False
        last = item
    yield last, True
