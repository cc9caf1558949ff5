"""How the files of a version lie: their sizes, partitions, statistics and vectors.

A file is left out of a query if its range of a column does not hold the value that the query wants.
So the number of files whose ranges overlap says what a query for one value reads (spec 9.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.schema.stats_property import ColumnPath, has_bounds, leaf_columns
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.pruner import FilePruner
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum
from optimist.core.values.map_texts import values_of_key

__all__ = ["Layout", "Overlap", "layout_of"]

_KB, _MB = 1_000, 1_000_000
_SIZE_CLASSES = (
    (64 * _KB, "below 64 kB"),
    (_MB, "64 kB to 1 MB"),
    (16 * _MB, "1 to 16 MB"),
    (64 * _MB, "16 to 64 MB"),
    (256 * _MB, "64 to 256 MB"),
    (1_000 * _MB, "256 MB to 1 GB"),
    (None, "1 GB and more"),
)
_MOST_PARTITIONS = 15
_MOST_COLUMNS = 8
OTHER_PARTITIONS = "all other partitions"


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much the files' ranges of one column overlap.

    Attributes:
        column: The column.
        with_bounds: The number of files that have a range of it.
        files_per_value: How many files a query for one value reads on average: those whose range
            holds the smallest value of a file, and those without a range.
    """

    column: str
    with_bounds: int
    files_per_value: float


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of a version lie.

    Attributes:
        rows: The number of rows, deleted ones left out; None if the log does not tell it.
        deleted_rows: The number of rows that vectors delete.
        with_vector: The number of files with a vector.
        with_rows: The number of files whose statistics tell their rows.
        sizes: One row per class of size: `size`, `files`, `bytes`.
        partitions: The largest partitions: `partition`, `files`, `bytes`; none in a table without.
        num_partitions: The number of partitions that have files.
        overlaps: How much ranges overlap, for a few columns.
    """

    rows: int | None
    deleted_rows: int
    with_vector: int
    with_rows: int
    sizes: pa.Table
    partitions: pa.Table
    num_partitions: int
    overlaps: Sequence[Overlap]


def layout_of(
    snapshot: Snapshot, pruner: FilePruner, first_columns: Iterable[ColumnPath]
) -> Layout:
    """Return how the files of a version lie.

    Args:
        snapshot: The version.
        pruner: A pruner of its files, which keeps the statistics that it has parsed.
        first_columns: The columns that matter most, by their logical paths.
    """
    files = snapshot.files
    statistics = pruner.statistics
    known = statistics.num_records.combine_chunks()
    live = live_rows(files, known)
    vectors = files.column("deletionVector").combine_chunks()
    partitions, num_partitions = _partitions(snapshot)
    return Layout(
        rows=None if live.null_count else exact_sum(live),
        deleted_rows=exact_sum(pc.struct_field(vectors, "cardinality").cast(pa.int64())),
        with_vector=files.num_rows - vectors.null_count,
        with_rows=files.num_rows - known.null_count,
        sizes=_size_classes(files.column("size")),
        partitions=partitions,
        num_partitions=num_partitions,
        overlaps=_overlaps(snapshot, statistics, first_columns),
    )


def _size_classes(sizes: pa.ChunkedArray) -> pa.Table:
    values = sizes.to_numpy()
    limits = [limit for limit, _ in _SIZE_CLASSES if limit is not None]
    classes = np.searchsorted(np.array(limits), values, side="right")
    rows = [
        {
            "size": name,
            "files": int((classes == at).sum()),
            "bytes": int(values[classes == at].sum()),
        }
        for at, (_, name) in enumerate(_SIZE_CLASSES)
    ]
    return pa.Table.from_pylist(rows)


def _partitions(snapshot: Snapshot) -> tuple[pa.Table, int]:
    """Return the largest partitions by bytes, and how many there are."""
    files, items = snapshot.files, list(snapshot.partition_schema)
    if not items or not files.num_rows:
        empty = [("partition", pa.large_string()), ("files", pa.int64()), ("bytes", pa.int64())]
        return pa.schema(empty).empty_table(), 0
    values = files.column("partitionValues")
    keys = [f"value{number}" for number in range(len(items))]
    columns = [values_of_key(values, item.physical_name) for item in items]
    sizes = pa.table([*columns, files.column("size")], names=[*keys, "size"])
    sums = sizes.group_by(keys, use_threads=False).aggregate([("size", "count"), ("size", "sum")])
    # Names may be alike, as of a text NULL and of a null. So the values make the groups.
    parts: list[Any] = []
    for key, item in zip(keys, items, strict=True):
        parts.append(pa.scalar(f"{', ' if parts else ''}{item.name}=", pa.large_string()))
        parts.append(pc.fill_null(sums.column(key).cast(pa.large_string()), "NULL"))
    names = pc.binary_join_element_wise(*parts, pa.scalar("", pa.large_string()))
    found = pa.table(
        {"partition": names, "files": sums.column("size_count"), "bytes": sums.column("size_sum")}
    )
    found = found.sort_by([("bytes", "descending"), ("partition", "ascending")])
    return _with_others(found), found.num_rows


def _with_others(partitions: pa.Table) -> pa.Table:
    if partitions.num_rows <= _MOST_PARTITIONS:
        return partitions
    rest = partitions.slice(_MOST_PARTITIONS)
    sums = {name: [exact_sum(rest.column(name))] for name in ("files", "bytes")}
    last = pa.table({"partition": [OTHER_PARTITIONS], **sums}, schema=partitions.schema)
    return pa.concat_tables([partitions.slice(0, _MOST_PARTITIONS), last])


def _overlaps(
    snapshot: Snapshot, statistics: FileStatistics, first_columns: Iterable[ColumnPath]
) -> list[Overlap]:
    partition = set(snapshot.partition_columns)
    bounded = [
        path
        for path, leaf in leaf_columns(snapshot.schema)
        if has_bounds(leaf.data_type) and path[0] not in partition
    ]
    wanted = [path for path in dict.fromkeys((*first_columns, *bounded)) if path in bounded]
    wanted = wanted[:_MOST_COLUMNS]
    statistics.load(wanted)
    found = (_overlap(path, statistics) for path in wanted)
    return [overlap for overlap in found if overlap is not None]


def _overlap(path: ColumnPath, statistics: FileStatistics) -> Overlap | None:
    column = statistics.column(path)
    if column is None or column.low is None or column.high is None or not len(column.low):
        return None
    is_known = pc.and_(column.low.is_valid(), column.high.is_valid())
    has_nulls_only = pc.fill_null(pc.equal(column.null_count, statistics.num_records), False)
    always_read = pc.sum(pc.invert(pc.or_(is_known, has_nulls_only)), min_count=0).as_py()
    low, high = column.low.filter(is_known), column.high.filter(is_known)
    if not len(low):
        return Overlap(".".join(path), 0, float(always_read))
    try:
        ranks = pc.rank(pa.chunked_array([*low.chunks, *high.chunks]), tiebreaker="dense")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None  # a type without an order in Arrow
    numbers = ranks.to_numpy().astype(np.int64)
    lows, highs = np.sort(numbers[: len(low)]), np.sort(numbers[len(low) :])
    begun = np.searchsorted(lows, lows, side="right")
    ended = np.searchsorted(highs, lows, side="left")
    return Overlap(".".join(path), len(low), float(np.mean(begun - ended)) + always_read)
