"""Which rows of the table match, and which clauses they get: one file at a time (spec 10.15).

The source is searched in blocks, each against all files. A file is read in runs of batches, and
pairs of rows are made and judged a bounded number at a time. What is kept grows with the rows that
match, and not with the pairs; of rows that match nothing, only their places are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.merge.clauses import several_matches
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.data.row_numbers import row_numbers
from optimist.core.local.merge.joined_rows import BlockSearch
from optimist.core.local.merge.read_rows import block_predicate
from optimist.core.local.merge.resolution import LocalResolvedMerge
from optimist.core.local.target import LocalTarget, positions_of
from optimist.core.schema.types import StructType

__all__ = ["FileMatches", "find_matches"]

_CHANGED = pa.schema({"position": pa.int64(), "source": pa.int64(), "clause": pa.int32()})
_RUN_BYTES = 32 << 20
"""Rows of a file are searched together until they have about this size."""
_NO_NUMBERS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class FileMatches:
    """What becomes of the rows of one file.

    Attributes:
        by_match: A row for each matching row that changes: its `position` in the file, the number
            of the `source` row that changes it, and the number of its `clause`.
        by_absence: The positions of rows without a match that change, by the numbers of their
            clauses.
        matched: The positions of the rows that match.
        sources: The numbers of source rows that match a row of the file, if they matter.
    """

    by_match: pa.Table = field(default_factory=_CHANGED.empty_table)
    by_absence: dict[int, BitMap64] = field(default_factory=dict)
    matched: BitMap64 = field(default_factory=BitMap64)
    sources: np.ndarray = field(default_factory=lambda: _NO_NUMBERS)

    @property
    def positions(self) -> BitMap64:
        """The positions of the rows that change."""
        return self._matching_positions.union(*self.by_absence.values())

    @property
    def changed(self) -> pa.Table:
        """A row for each row that changes; see `by_match`."""
        return self._with_absent(self.by_match, self.by_absence)

    def changed_at(self, positions: pa.Array) -> pa.Table:
        """Return `changed` for the rows at some positions."""
        is_there = pc.is_in(self.by_match["position"], value_set=positions)
        rows = positions_of(positions) if self.by_absence else BitMap64()
        absent = {clause: found & rows for clause, found in self.by_absence.items()}
        return self._with_absent(self.by_match.filter(is_there), absent)

    @staticmethod
    def _with_absent(by_match: pa.Table, by_absence: Mapping[int, BitMap64]) -> pa.Table:
        parts = [by_match]
        for clause, rows in by_absence.items():
            none = pa.nulls(len(rows), pa.int64())
            clauses = pa.repeat(pa.scalar(clause, pa.int32()), len(rows))
            parts.append(pa.table([numbers_of(rows), none, clauses], schema=_CHANGED))
        return pa.concat_tables(parts).combine_chunks()

    def num_by_clause(self) -> dict[int, int]:
        """Return how many rows get each clause."""
        counts = pc.value_counts(self.by_match["clause"]).to_pylist()
        found = {item["values"]: item["counts"] for item in counts}
        return found | {clause: len(rows) for clause, rows in self.by_absence.items()}

    def without_sources(self) -> FileMatches:
        """Return the same without the numbers of source rows."""
        return FileMatches(self.by_match, self.by_absence, self.matched)

    def joined(self, other: FileMatches, *, takes_several: bool) -> FileMatches:
        """Return what other rows of the file, or other rows of the source, add.

        Raises:
            UsageError: Both change a row, and it matters.
        """
        by_match = other.by_match
        twice = self._matching_positions & other._matching_positions
        if twice:
            if not takes_several:
                raise several_matches()
            is_new = pc.invert(pc.is_in(by_match["position"], value_set=numbers_of(twice)))
            by_match = by_match.filter(is_new)
        absent = dict(self.by_absence)
        for clause, rows in other.by_absence.items():
            absent[clause] = absent.get(clause, BitMap64()) | rows
        return FileMatches(
            pa.concat_tables([self.by_match, by_match]),
            absent,
            self.matched | other.matched,
            np.concatenate([self.sources, other.sources]),
        )

    @property
    def _matching_positions(self) -> BitMap64:
        return positions_of(_one_array(self.by_match["position"]))


def find_matches(
    target: LocalTarget, candidates: pa.Table, merge: LocalResolvedMerge
) -> tuple[list[FileMatches], np.ndarray]:
    """Search the files in their order, and read only the columns that decide.

    Returns:
        What becomes of the rows of each file, and for each row of the source whether it matches one
        (empty if that does not matter).

    Raises:
        UsageError: Several rows of the source change one of the table, and it matters.
    """
    names, schema = merge.columns_for_search(), target.snapshot.schema
    columns = tuple(item for item in schema if item.name in names)
    # Rows are counted by a column even where none decides.
    layout = target.layout(StructType(columns or schema.fields[:1]))
    found = [FileMatches()] * candidates.num_rows
    num_sources = merge.source.num_rows if merge.has_inserts else 0
    is_matched = np.zeros(num_sources, np.bool_)
    for first, rows in merge.source.blocks():
        is_last = first + rows.num_rows == merge.source.num_rows
        before = _matched_before(candidates, found) if first else {}
        search = _FileSearch(BlockSearch.of(merge, first, rows), layout, merge, before, is_last)
        places = _places(target, candidates, merge, rows, is_last=is_last)
        searched = candidates.take(places)
        news = target.read_each("search", searched, search)
        for at, new in zip(places.to_pylist(), news, strict=True):
            if merge.has_inserts:
                is_matched[new.sources] = True
            found[at] = found[at].joined(new, takes_several=merge.takes_several_matches)
            found[at] = found[at].without_sources()
    return found, is_matched


def _places(
    target: LocalTarget,
    candidates: pa.Table,
    merge: LocalResolvedMerge,
    rows: pa.Table,
    *,
    is_last: bool,
) -> pa.Array:
    """Return the indices of the files in which rows can match a block of the source."""
    places = row_numbers(candidates.num_rows)
    if merge.source.num_blocks == 1 or (is_last and merge.searches_all_rows):
        return places
    wanted = block_predicate(merge.branches, rows, merge.sides)
    names = target.snapshot.scan(wanted).files["path"]
    return places.filter(_one_array(pc.is_in(candidates["path"], value_set=_one_array(names))))


def _matched_before(candidates: pa.Table, found: Sequence[FileMatches]) -> dict[str, BitMap64]:
    """Return the rows that match, by the names of their files in the log."""
    hits = [at for at, item in enumerate(found) if item.matched]
    names = candidates["path"].take(pa.array(hits, pa.int64())).to_pylist()
    return {name: found[at].matched for name, at in zip(names, hits, strict=True)}


@dataclass(frozen=True, slots=True)
class _FileSearch:
    """Searches a file for rows that match a block of the source.

    Attributes:
        block: The block.
        layout: Reads the columns that decide.
        merge: The MERGE.
        before: The rows that match earlier blocks, by the names of their files.
        is_last: Whether no block follows, so that rows without a match can be told.
    """

    block: BlockSearch
    layout: RowLayout
    merge: LocalResolvedMerge
    before: Mapping[str, BitMap64]
    is_last: bool

    def __call__(self, part: FilePart) -> FileMatches:
        found, before = FileMatches(), self.before.get(part.reference, BitMap64())
        for rows, positions in _runs(part, self.layout):
            new = self._search_rows(rows, positions, before)
            found = found.joined(new, takes_several=True)  # the rows of a file come once
        return found

    def _search_rows(self, rows: pa.Table, positions: pa.Array, before: BitMap64) -> FileMatches:
        merge = self.merge
        fates = self.block.fates(rows)
        changing = np.flatnonzero(fates.clauses >= 0)
        by_match = pa.table(
            [positions.take(pa.array(changing)), fates.sources[changing], fates.clauses[changing]],
            schema=_CHANGED,
        )
        matched = BitMap64()
        if merge.has_inserts or merge.searches_all_rows:
            matched = positions_of(positions.filter(pa.array(fates.is_matched)))
        by_absence = {}
        if merge.searches_all_rows and self.is_last:
            is_alone = ~_among(positions, matched | before)
            by_absence = self._changes_by_absence(rows, positions, pa.array(is_alone))
        return FileMatches(by_match, by_absence, matched, fates.matched_sources())

    def _changes_by_absence(
        self, rows: pa.Table, positions: pa.Array, is_alone: pa.BooleanArray
    ) -> dict[int, BitMap64]:
        """Return the positions of rows without a match that change, by their clauses."""
        merge = self.merge
        alone, places = rows.filter(is_alone), positions.filter(is_alone)
        clauses = merge.clauses_of_rows(
            "NOT MATCHED BY SOURCE",
            lambda: merge.sides.rows("NOT MATCHED BY SOURCE", target=alone),
            alone.num_rows,
        )
        found = {}
        for item in merge.of_kind("NOT MATCHED BY SOURCE"):
            is_clause = pc.fill_null(pc.equal(clauses, item.number), False)
            found[item.number] = positions_of(_one_array(places.filter(is_clause)))
        return {number: rows for number, rows in found.items() if rows}


def _runs(part: FilePart, layout: RowLayout) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield the rows of a file and their positions, some batches at a time."""
    batches: list[pa.RecordBatch] = []
    positions: list[pa.Array] = []
    num_bytes = 0

    def run() -> tuple[pa.Table, pa.Array]:
        rows = pa.Table.from_batches(batches, schema=layout.arrow_schema)
        return rows, _one_array(pa.chunked_array(positions, pa.int64()))

    for batch, find_positions in read_located_batches(part, layout):
        batches.append(batch)
        positions.append(find_positions())
        num_bytes += batch.nbytes
        if num_bytes >= _RUN_BYTES:
            yield run()
            batches, positions, num_bytes = [], [], 0
    if batches:
        yield run()


def numbers_of(rows: BitMap64) -> pa.Array:
    """Convert a set of positions to an array (int64), in order."""
    buffer = pa.py_buffer(rows.to_array())
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, buffer])


def _among(positions: pa.Array, rows: BitMap64) -> np.ndarray:
    found = pc.is_in(positions, value_set=numbers_of(rows))
    mask: np.ndarray = found.to_numpy(zero_copy_only=False)
    return mask


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
