"""Which rows of the table match, and which clauses they get: one file at a time (spec 10.15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.merge.clauses import several_matches
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import read_located_batches
from optimist.core.data.row_numbers import row_numbers
from optimist.core.local.merge.keys import SourceKeys
from optimist.core.local.merge.resolution import LocalResolvedMerge
from optimist.core.local.target import LocalTarget, positions_of
from optimist.core.schema.types import StructType

__all__ = ["FileMatches", "find_matches"]

_CHANGED = pa.schema({"position": pa.int64(), "source": pa.int64(), "clause": pa.int32()})


@dataclass(frozen=True, slots=True)
class FileMatches:
    """What becomes of the rows of one file.

    Attributes:
        changed: A row for each row of the file that changes, in their order: its `position` in the
            file, the number of the `source` row that it matches (null if none), and the number of
            its `clause`.
        matched: The numbers of the source rows that match a row of the file.
        needed: The positions of the rows that the outcome depends on: the rows that change, and, if
            rows are inserted, the rows that match, because a match keeps a source row from being
            inserted.
    """

    changed: pa.Table
    matched: pa.Array
    needed: BitMap64


def find_matches(
    target: LocalTarget, candidates: pa.Table, merge: LocalResolvedMerge
) -> Iterator[FileMatches]:
    """Search the files in their order, and read only the columns that decide.

    Raises:
        UsageError: Several rows of the source change one of the table, and it matters.
    """
    schema = target.snapshot.schema
    needed = merge.columns_for_search()
    layout = target.layout(StructType(tuple(item for item in schema if item.name in needed)))
    keys = SourceKeys.of(merge.source, merge.keys)

    def search(part: FilePart) -> FileMatches:
        batches, positions = [], []
        for batch, find_positions in read_located_batches(part, layout):
            batches.append(batch)
            positions.append(find_positions())
        rows = pa.Table.from_batches(batches, schema=layout.arrow_schema)
        return _search_file(rows, pa.chunked_array(positions, pa.int64()), keys, merge)

    return target.read_each("search", candidates, search)


def _search_file(
    rows: pa.Table, positions: pa.ChunkedArray, keys: SourceKeys, merge: LocalResolvedMerge
) -> FileMatches:
    target, source = keys.matching(rows)
    parts = [_CHANGED.empty_table()]
    if merge.of_kind("MATCHED") and len(target):
        parts.append(_matching_changes(rows, target, source, merge))
    if merge.of_kind("NOT MATCHED BY SOURCE") and rows.num_rows:
        parts.append(_other_changes(rows, target, merge))
    changed = pa.concat_tables(parts)
    changed_positions = positions.take(changed["position"])
    changed = changed.set_column(0, "position", changed_positions).sort_by("position")
    keeps_out = pc.unique(target) if merge.has_inserts else target.slice(0, 0)
    needed = [*changed_positions.chunks, *positions.take(keeps_out).chunks]
    needed_positions = pa.chunked_array(needed, pa.int64()).combine_chunks()
    return FileMatches(changed, pc.unique(source), positions_of(needed_positions))


def _matching_changes(
    rows: pa.Table, target: pa.Array, source: pa.Array, merge: LocalResolvedMerge
) -> pa.Table:
    """Return what becomes of rows that match, once for each row of the table."""

    def seen() -> pa.Table:
        sides = merge.sides
        return sides.rows("MATCHED", target=rows.take(target), source=merge.source.take(source))

    changed = _changes(target, source, merge.clauses_of_rows("MATCHED", seen, len(target)))
    if len(pc.unique(changed["position"])) == changed.num_rows:
        return changed
    if not merge.takes_several_matches:
        raise several_matches()
    grouped = changed.group_by(["position", "clause"], use_threads=False)
    first = grouped.aggregate([("source", "min")])
    return first.select(["position", "source_min", "clause"]).rename_columns(_CHANGED.names)


def _other_changes(rows: pa.Table, matching: pa.Array, merge: LocalResolvedMerge) -> pa.Table:
    """Return what becomes of rows that match no row of the source."""
    all_rows = row_numbers(rows.num_rows)
    alone = all_rows.filter(pc.invert(pc.is_in(all_rows, value_set=matching)))

    def seen() -> pa.Table:
        return merge.sides.rows("NOT MATCHED BY SOURCE", target=rows.take(alone))

    clauses = merge.clauses_of_rows("NOT MATCHED BY SOURCE", seen, len(alone))
    return _changes(alone, pa.nulls(len(alone), pa.int64()), clauses)


def _changes(target: pa.Array, source: pa.Array, clauses: pa.Int32Array) -> pa.Table:
    """Return the rows that get a clause, each with its row number in place of its position."""
    table = pa.table([target, source, clauses], schema=_CHANGED)
    return table.filter(pc.is_valid(clauses))
