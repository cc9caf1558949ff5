"""The parts of a table to read: files, or byte ranges of them, in balanced groups.

Everything here is Arrow, with a row per file or part. Only the parts of one group become values.
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
"""The most groups of one scan: each is a task, and a table may claim any size."""
MAX_PIECES = 1_000
"""The most pieces of one file: its size is only a claim until somebody opens it."""

_WINDOW = 256

_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class FilePart:
    """A data file, or the row groups of it that begin in a range of bytes.

    Attributes:
        path: Its path, not percent-encoded.
        partition_values: The log's texts by physical name.
        start: The range's first byte.
        end: The byte after the range's last. None for all from `start`.
        reference: `add.path`, the log's name for the file.
        deletion_vector: The deleted rows of the file, or None.
        base_row_id: The id of its first row, in a table that tracks rows.
        default_row_commit_version: The version that wrote it, in a table that tracks rows.
        file_size: The size of the whole file in bytes, according to the log.
        modification_time: The time when it was written, in epoch milliseconds, according to the
            log.
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
    """Return one row per whole file, with the fields of `FilePart` and `size` as columns.

    The end is null, not the size: a file that is longer than in the log is still read whole.

    Args:
        data_paths: The rules for paths in the log.
        files: A `FILES_SCHEMA` table.

    Raises:
        TableError: A path may not be opened; see `DataPaths.full_paths`.
    """
    references = _as_one_array(files["path"])
    return pa.table(
        {
            "path": data_paths.full_paths(references),
            "partitionValues": _as_one_array(files["partitionValues"]).cast(_MAP),
            "start": pa.repeat(pa.scalar(0, pa.int64()), files.num_rows),
            "end": pa.nulls(files.num_rows, pa.int64()),
            "reference": references,
            "size": _as_one_array(files["size"]),
            "deletionVector": _as_one_array(files["deletionVector"]),
            "baseRowId": _as_one_array(files["baseRowId"]),
            "defaultRowCommitVersion": _as_one_array(files["defaultRowCommitVersion"]),
            "fileSize": _as_one_array(files["size"]),
            "modificationTime": _as_one_array(files["modificationTime"]),
        }
    )


def balanced_groups(
    parts: pa.Table, *, max_bytes: int, num_groups: int, open_cost: int
) -> Iterator[pa.Table]:
    """Yield the parts in groups of about equal work, with large files cut in pieces.

    A group is as large as one of `num_groups` equal shares, but at most `max_bytes` and at least
    `open_cost`. A row group is read with the piece in which it begins, so a file of one row group
    has one reader however often it is cut. There are at most `MAX_GROUPS` groups, and `MAX_PIECES`
    pieces of one file, whatever sizes the log claims.

    Args:
        parts: Whole files (see `file_parts`).
        max_bytes: The intended largest size of a group or a piece.
        num_groups: The least number of groups, if there are enough bytes.
        open_cost: The cost of opening one more file, in bytes that could be read meanwhile.
    """
    if parts.num_rows == 0:
        return
    work = exact_sum(parts["size"]) + parts.num_rows * open_cost
    wanted = min(max(1, num_groups), MAX_GROUPS)
    share = max(open_cost, min(max_bytes, -(-work // wanted)), -(-work // MAX_GROUPS), 1)
    pieces = _cut_files(parts["size"], share).sort_by([("size", "descending")])
    costs = pc.add(pieces["size"], open_cost)
    before = pc.subtract(pc.cumulative_sum(costs), costs)
    numbers = pc.run_end_encode(_as_one_array(pc.divide(before, share)))
    ends = numbers.run_ends.to_pylist()
    yield from _described_groups(parts, pieces.combine_chunks(), ends)


def parts_of(group: pa.Table) -> tuple[FilePart, ...]:
    """Return the parts of one group as values."""
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


def _cut_files(sizes: pa.ChunkedArray, share: int) -> pa.Table:
    """Cut files above the share in equal pieces: each has a row of the files, range and size."""
    sizes = _as_one_array(sizes)
    filled = pc.divide(pc.subtract(pc.max_element_wise(sizes, 1), 1), share)
    counts = pc.min_element_wise(pc.add(filled, 1), MAX_PIECES)
    ends = pc.cumulative_sum(counts)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    total = offsets[-1].as_py()
    lists = pa.ListArray.from_arrays(offsets, row_numbers(total))
    file_rows = pc.list_parent_indices(lists)
    number = pc.subtract(lists.values, pc.take(pc.subtract(ends, counts), file_rows))
    size, count = pc.take(sizes, file_rows), pc.take(counts, file_rows)
    # Divide before multiplying: a claimed size times a number of pieces may exceed 64 bits.
    step = pc.divide(size, count)
    start = pc.multiply(step, number)
    is_last = pc.equal(pc.add(number, 1), count)
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
    """Yield the groups that end at these pieces, and build only some at a time to save memory."""
    first = 0
    window: list[int] = []
    for end in ends:
        window.append(end)
        if end - first >= _WINDOW or end == ends[-1]:
            described = _describe_pieces(parts, pieces.slice(first, end - first))
            for begin, stop in pairwise([first, *window]):
                yield described.slice(begin - first, stop - begin)
            first, window = end, []


def _describe_pieces(parts: pa.Table, pieces: pa.Table) -> pa.Table:
    """Return pieces with the data of their files."""
    found = parts.take(pieces["row"])
    for name in ("start", "end", "size"):
        found = found.set_column(found.schema.get_field_index(name), name, pieces[name])
    return found


def _as_one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
