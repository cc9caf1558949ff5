"""Which rows of the table match, and which clauses they get: one file at a time (spec 10.15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.merge_clauses import several_matches
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import read_located_batches
from optimist.core.data.row_numbers import row_numbers
from optimist.core.local.merge.keys import SourceKeys
from optimist.core.local.merge.resolution import ResolvedMerge, first_clause
from optimist.core.local.target import LocalTarget, positions_of
from optimist.core.requests.merge_clauses import Kind
from optimist.core.schema.types import StructType

__all__ = ["FileMatches", "find_matches"]

_CHANGED = pa.schema(
    {"position": pa.int64(), "source": pa.int64(), "kind": pa.string(), "clause": pa.int32()}
)


@dataclass(frozen=True, slots=True)
class FileMatches:
    """What becomes of the rows of one file.

    Attributes:
        changed: A row for each row of the file that changes, in order: its `position` in the file,
            the row of the `source` that it matches (null if none), the `kind` of clause that it
            gets, and the place of the `clause` among those of the kind.
        matched: The rows of the source that match a row of the file.
        needed: The positions of the rows that the outcome depends on: the rows that change, and, if
            rows are inserted, the rows that match, because a match keeps a row of the source from
            being inserted.
    """

    changed: pa.Table
    matched: pa.Array
    needed: BitMap64


def find_matches(
    target: LocalTarget, candidates: pa.Table, merge: ResolvedMerge
) -> Iterator[FileMatches]:
    """Search the files, in their order; only the columns that decide are read.

    Raises:
        UsageError: Several rows of the source change one of the table, and it matters.
    """
    schema = target.snapshot.schema
    needed = merge.columns_for_search()
    layout = target.layout(StructType(tuple(item for item in schema if item.name in needed)))
    keys = SourceKeys.of(merge.request.source, merge.keys)

    def search(part: FilePart) -> FileMatches:
        batches, positions = [], []
        for batch, places in read_located_batches(part, layout):
            batches.append(batch)
            positions.append(places())
        rows = pa.Table.from_batches(batches, schema=layout.arrow_schema)
        return _matches(rows, pa.chunked_array(positions, pa.int64()), keys, merge)

    return target.read_each("search", candidates, search)


def _matches(
    rows: pa.Table, positions: pa.ChunkedArray, keys: SourceKeys, merge: ResolvedMerge
) -> FileMatches:
    request = merge.request
    own, other = keys.matching(rows)
    seen = pc.unique(other)
    keeps_out = pc.unique(own) if merge.of_kind("NOT MATCHED") else own.slice(0, 0)
    parts = []
    matched = merge.of_kind("MATCHED")
    if matched and len(own):
        found = first_clause(
            matched,
            lambda: {
                request.target_alias: rows.take(own),
                request.source_alias: request.source.take(other),
            },
            len(own),
        )
        parts.append(_once(_changed(own, other, "MATCHED", found), merge))
    by_source = merge.of_kind("NOT MATCHED BY SOURCE")
    if by_source and rows.num_rows:
        all_rows = row_numbers(rows.num_rows)
        alone = all_rows.filter(pc.invert(pc.is_in(all_rows, value_set=own)))
        found = first_clause(
            by_source, lambda: {request.target_alias: rows.take(alone)}, len(alone)
        )
        nobody = pa.nulls(len(alone), pa.int64())
        parts.append(_changed(alone, nobody, "NOT MATCHED BY SOURCE", found))
    changed = pa.concat_tables(parts) if parts else _CHANGED.empty_table()
    places = positions.take(changed["position"])
    changed = changed.set_column(0, "position", places).sort_by("position")
    needed = pa.chunked_array([*places.chunks, *positions.take(keeps_out).chunks], pa.int64())
    return FileMatches(changed, seen, positions_of(needed.combine_chunks()))


def _once(changed: pa.Table, merge: ResolvedMerge) -> pa.Table:
    """The changes of rows that match, one for each row of the table."""
    if len(pc.unique(changed["position"])) == changed.num_rows:
        return changed
    if not merge.takes_several_matches:
        raise several_matches()
    first = changed.group_by("position", use_threads=False).aggregate([("source", "min")])
    own, other = (first[name].combine_chunks() for name in ("position", "source_min"))
    return _changed(own, other, "MATCHED", pa.repeat(pa.scalar(0, pa.int32()), len(own)))


def _changed(own: pa.Array, other: pa.Array, kind: Kind, clause: pa.Array) -> pa.Table:
    kinds = pa.repeat(pa.scalar(kind), len(own))
    table = pa.table([own, other, kinds, clause], schema=_CHANGED)
    return table.filter(pc.is_valid(clause))
