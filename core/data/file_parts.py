"""What there is to read of a table: files, or byte ranges of them, in balanced groups.

Everything here is Arrow, a row per file or part; only the parts of one group become values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.row_numbers import row_numbers
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.log.file_table import deletion_vector_of
from optimist.core.protocol.actions import DeletionVectorDescriptor
from optimist.core.values.exact_sums import exact_sum

__all__ = ["MAX_GROUPS", "MAX_PIECES", "FilePart", "balanced_groups", "file_parts", "parts_of"]

MAX_GROUPS = 100_000
"""How many groups one scan has at most: each is a task, and a table may claim any size."""
MAX_PIECES = 1_000
"""How many pieces one file is cut into at most: its size is a claim until somebody opens it."""

_WINDOW = 256

_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class FilePart:
    """A data file, or the row groups of it that begin in a range of bytes.

    Attributes:
        path: Where it is, not percent-encoded.
        partition_values: The log's texts by physical name.
        start: The range's first byte.
        end: The byte after the range's last; None for all from `start`.
        reference: `add.path`, by which the log knows the file.
        deletion_vector: Which rows of the file are deleted; None if none is.
        base_row_id: The id of its first row, in a table that tracks rows.
        default_row_commit_version: The version that wrote it, in a table that tracks rows.
        file_size: How many bytes the whole file has, as the log says.
        modification_time: When it was written, in epoch milliseconds, as the log says.
    """

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    start: int = 0
    end: int | None = None
    reference: str = ""
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    file_size: int | None = None
    modification_time: int | None = None


def file_parts(data_paths: DataPaths, files: pa.Table) -> pa.Table:
    """One row per file, as a whole: the columns are the fields of `FilePart`, and `size`.

    The end is null, not the size: a file that is longer than the log says is still read whole.

    Args:
        data_paths: What the paths in the log mean.
        files: A `FILES_SCHEMA` table.

    Raises:
        TableError: A path may not be opened; see `DataPaths.full_paths`.
    """
    references = _in_one_piece(files["path"])
    return pa.table(
        {
            "path": data_paths.full_paths(references),
            "partitionValues": _in_one_piece(files["partitionValues"]).cast(_MAP),
            "start": pa.repeat(pa.scalar(0, pa.int64()), files.num_rows),
            "end": pa.nulls(files.num_rows, pa.int64()),
            "reference": references,
            "size": _in_one_piece(files["size"]),
            "deletionVector": _in_one_piece(files["deletionVector"]),
            "baseRowId": _in_one_piece(files["baseRowId"]),
            "defaultRowCommitVersion": _in_one_piece(files["defaultRowCommitVersion"]),
            "fileSize": _in_one_piece(files["size"]),
            "modificationTime": _in_one_piece(files["modificationTime"]),
        }
    )


def balanced_groups(
    parts: pa.Table, *, max_bytes: int, num_groups: int, open_cost: int
) -> Iterator[pa.Table]:
    """The parts in groups of about equal work, large files cut in pieces.

    A group is as large as one of `num_groups` equal shares, but not above `max_bytes` and not below
    `open_cost`. A row group is read with the piece that it begins in, so that a file of one row
    group has one reader however often it is cut. However much the log says that there is, there are
    at most `MAX_GROUPS` groups, and `MAX_PIECES` pieces of one file.

    Args:
        parts: Whole files; see `file_parts`.
        max_bytes: How large a group or a piece is meant to be at most.
        num_groups: How many groups are wanted at least, if there are bytes enough.
        open_cost: What opening one more file costs, in bytes that could be read meanwhile.
    """
    if parts.num_rows == 0:
        return
    work = exact_sum(parts["size"]) + parts.num_rows * open_cost
    wanted = min(max(1, num_groups), MAX_GROUPS)
    share = max(open_cost, min(max_bytes, -(-work // wanted)), -(-work // MAX_GROUPS), 1)
    pieces = _cut(parts["size"], share).sort_by([("size", "descending")])
    costs = pc.add(pieces["size"], open_cost)
    before = pc.subtract(pc.cumulative_sum(costs), costs)
    numbers = pc.run_end_encode(_in_one_piece(pc.divide(before, share)))
    ends = numbers.run_ends.to_pylist()
    yield from _described_groups(parts, pieces.combine_chunks(), ends)


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
            file_size=row["fileSize"],
            modification_time=row["modificationTime"],
        )
        for row in group.to_pylist(maps_as_pydicts="strict")
    )


def _cut(sizes: pa.ChunkedArray, share: int) -> pa.Table:
    """Files above the share in equal pieces: each piece's row among the files, range and size."""
    sizes = _in_one_piece(sizes)
    filled = pc.divide(pc.subtract(pc.max_element_wise(sizes, 1), 1), share)
    counts = pc.min_element_wise(pc.add(filled, 1), MAX_PIECES)
    ends = pc.cumulative_sum(counts)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    total = offsets[-1].as_py()
    lists = pa.ListArray.from_arrays(offsets, row_numbers(total))
    file_rows = pc.list_parent_indices(lists)
    place = pc.subtract(lists.values, pc.take(pc.subtract(ends, counts), file_rows))
    size, count = pc.take(sizes, file_rows), pc.take(counts, file_rows)
    # Divided before it is multiplied: a claimed size times a number of pieces may exceed 64 bits.
    step = pc.divide(size, count)
    start = pc.multiply(step, place)
    is_last = pc.equal(pc.add(place, 1), count)
    end = pc.if_else(is_last, size, pc.add(start, step))
    return pa.table(
        {
            "row": file_rows,
            "start": start,
            "end": pc.if_else(is_last, pa.scalar(None, pa.int64()), end),
            "size": pc.subtract(end, start),
        }
    )


def _described_groups(parts: pa.Table, pieces: pa.Table, ends: Sequence[int]) -> Iterator[pa.Table]:
    """The groups that end at these pieces; only some are described at a time, to save memory."""
    first = 0
    window: list[int] = []
    for end in ends:
        window.append(end)
        if end - first >= _WINDOW or end == ends[-1]:
            described = _described(parts, pieces.slice(first, end - first))
            for begin, stop in pairwise([first, *window]):
                yield described.slice(begin - first, stop - begin)
            first, window = end, []


def _described(parts: pa.Table, pieces: pa.Table) -> pa.Table:
    """Pieces with what is known of their files."""
    found = parts.take(pieces["row"])
    for name in ("start", "end", "size"):
        found = found.set_column(found.schema.get_field_index(name), name, pieces[name])
    return found


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
