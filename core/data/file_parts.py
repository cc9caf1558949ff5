"""What there is to read of a table: files, or byte ranges of them, in balanced groups.

Everything here is Arrow, a row per file or part; only the parts of one group become values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import canonical_paths, deletion_vector_of
from optimist.core.protocol.actions import DeletionVectorDescriptor

__all__ = ["FilePart", "balanced_groups", "file_parts", "parts_of"]

_SCHEME = "^[A-Za-z][A-Za-z0-9+.-]*:/"
_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class FilePart:
    """A data file, or the row groups of it that begin in a range of bytes.

    Attributes:
        path: Where it is, not percent-encoded.
        partition_values: The log's texts by physical name.
        start: The range's first byte.
        end: The byte after its last; None for all from `start`.
        reference: `add.path`, by which the log knows the file.
        deletion_vector: Which rows of the file are no longer there; None if all are.
        base_row_id: The id of its first row, in a table that tracks rows.
        default_row_commit_version: The version that wrote it, in a table that tracks rows.
    """

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    start: int = 0
    end: int | None = None
    reference: str = ""
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


def file_parts(table_path: str, files: pa.Table) -> pa.Table:
    """Each file whole: the columns that `FilePart` has, and its `size`.

    The end is null, not the size: a file that is longer than the log says is still read whole.

    Args:
        table_path: Where relative paths start.
        files: A `FILES_SCHEMA` table.
    """
    references = _in_one_piece(files["path"])
    return pa.table(
        {
            "path": _full_paths(table_path, references),
            "partitionValues": _in_one_piece(files["partitionValues"]).cast(_MAP),
            "start": pa.repeat(pa.scalar(0, pa.int64()), files.num_rows),
            "end": pa.nulls(files.num_rows, pa.int64()),
            "reference": references,
            "size": _in_one_piece(files["size"]),
            "deletionVector": _in_one_piece(files["deletionVector"]),
            "baseRowId": _in_one_piece(files["baseRowId"]),
            "defaultRowCommitVersion": _in_one_piece(files["defaultRowCommitVersion"]),
        }
    )


def balanced_groups(
    parts: pa.Table, *, max_bytes: int, num_groups: int, open_cost: int
) -> Iterator[pa.Table]:
    """The parts in groups of about equal work, large files cut in pieces.

    A group is as large as one of `num_groups` equal shares, but not above `max_bytes` and not
    below `open_cost`. A piece is read by whoever finds the beginning of a row group in it, so a
    file of one row group is read by one reader however often it is cut.

    Args:
        parts: Whole files; see `file_parts`.
        max_bytes: No group and no piece is meant to be larger.
        num_groups: How many groups are wanted at least, if there are bytes enough.
        open_cost: What opening one more file costs, in bytes that could be read meanwhile.
    """
    if parts.num_rows == 0:
        return
    work = pc.sum(pc.add(parts["size"], open_cost)).as_py()
    share = max(open_cost, min(max_bytes, -(-work // max(1, num_groups))), 1)
    pieces = _cut(parts, share).sort_by([("size", "descending")])
    costs = pc.add(pieces["size"], open_cost)
    before = pc.subtract(pc.cumulative_sum(costs), costs)
    numbers = _in_one_piece(pc.divide(before, share))
    for number in pc.unique(numbers):
        yield pieces.filter(pc.equal(numbers, number))


def parts_of(group: pa.Table) -> tuple[FilePart, ...]:
    """The parts of one group as values."""
    return tuple(
        FilePart(
            path=row["path"],
            partition_values=row["partitionValues"],
            start=row["start"],
            end=row["end"],
            reference=row["reference"],
            deletion_vector=deletion_vector_of(row["deletionVector"]),
            base_row_id=row["baseRowId"],
            default_row_commit_version=row["defaultRowCommitVersion"],
        )
        for row in group.to_pylist(maps_as_pydicts="strict")
    )


def _cut(parts: pa.Table, share: int) -> pa.Table:
    """Files above the share in equal pieces, one row each with the piece's own size."""
    sizes = _in_one_piece(parts["size"])
    counts = pc.max_element_wise(pc.divide(pc.add(sizes, share - 1), share), 1)
    ends = pc.cumulative_sum(counts)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    total = offsets[-1].as_py()
    lists = pa.ListArray.from_arrays(offsets, pa.array(range(total), pa.int64()))
    file_rows = pc.list_parent_indices(lists)
    place = pc.subtract(lists.values, pc.take(pc.subtract(ends, counts), file_rows))
    size, count = pc.take(sizes, file_rows), pc.take(counts, file_rows)
    pieces = parts.take(file_rows)
    start = pc.divide(pc.multiply(size, place), count)
    end = pc.divide(pc.multiply(size, pc.add(place, 1)), count)
    is_last = pc.equal(pc.add(place, 1), count)
    columns = {
        "start": start,
        "end": pc.if_else(is_last, pa.scalar(None, pa.int64()), end),
        "size": pc.subtract(end, start),
    }
    for name, column in columns.items():
        pieces = pieces.set_column(pieces.schema.get_field_index(name), name, column)
    return pieces


def _full_paths(table_path: str, references: pa.Array) -> pa.Array:
    decoded = canonical_paths(references)
    is_full = pc.or_(pc.starts_with(decoded, "/"), pc.match_substring_regex(decoded, _SCHEME))
    relative = pc.binary_join_element_wise(table_path.rstrip("/"), decoded, "/")
    return pc.if_else(is_full, decoded, relative)


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
