"""How OPTIMIZE groups files into bins (spec 10.14), in columns without a Python object per file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.log.file_table import canonical_paths
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.values.map_texts import values_of_key

__all__ = ["bins_now", "bins_of", "worth_compacting"]


def worth_compacting(files: pa.Table, *, min_bytes: int, max_deleted_ratio: float) -> pa.Table:
    """Return the files that are small or have many deleted rows.

    It includes a file with a vector if the number of its deleted rows is unknown.

    Args:
        files: Rows of `Snapshot.files`.
        min_bytes: A file of at least this many bytes is large enough.
        max_deleted_ratio: A file with a larger share of deleted rows is written again.
    """
    vectors = files["deletionVector"].combine_chunks()
    has_vector = vectors.is_valid()
    # Statistics are texts, so only those of files with vectors are parsed.
    counted = FileStatistics(files.filter(has_vector), StructType())
    num_rows = counted.num_records.combine_chunks().cast(pa.float64())
    deleted = pc.struct_field(vectors.drop_null(), "cardinality").cast(pa.float64())
    is_above = pc.greater(pc.divide(deleted, num_rows), max_deleted_ratio)
    has_many = pc.replace_with_mask(has_vector, has_vector, pc.fill_null(is_above, True))
    is_small = pc.less(files["size"], min_bytes)
    return files.filter(pc.or_(is_small, has_many))


def bins_of(
    files: pa.Table,
    partition_fields: StructType,
    *,
    max_bytes: int,
    keeps_single: bool = False,
    zone: str = "UTC",
) -> list[pa.Table]:
    """Group files into bins, each of which is to become one file.

    Two files are of one partition if their values are equal, however the log spells them. Times
    must also have equal texts: readers take a time without a zone in their own zone. Within a
    partition, files are taken from the smallest on, until the next one would make the bin too
    large.

    Args:
        files: Rows of `Snapshot.files`.
        partition_fields: The fields of the partition columns.
        max_bytes: The most bytes that the files of a bin may have together.
        keeps_single: Whether to keep a bin that has one file.
        zone: The time zone in which timestamps without one were written.
    """
    if not files.num_rows:
        return []
    values = partition_columns_of(files, partition_fields, zone=zone)
    keys = [*values.columns, *_texts_of_times(files, partition_fields)]
    names = [f"p{at}" for at in range(len(keys))]
    plain = pa.table(list(map(_encode_as_numbers, keys)), names=names)
    order = plain if names else pa.table({"none": pa.nulls(files.num_rows, pa.int8())})
    order = order.append_column("size", files["size"]).append_column("path", files["path"])
    sorting = [(name, "ascending") for name in order.column_names]
    indices = pc.sort_indices(order, sort_keys=sorting)
    ordered = files.take(indices)
    starts = _find_group_starts(order.select(order.column_names[:-2]).take(indices))
    sizes = ordered["size"].to_numpy()
    bins: list[pa.Table] = []
    for start, end in zip(starts, [*starts[1:], files.num_rows], strict=True):
        bins += [ordered.slice(at, size) for at, size in _fill_bins(sizes, start, end, max_bytes)]
    return bins if keeps_single else [found for found in bins if found.num_rows > 1]


def bins_now(
    bins: Sequence[pa.Table], live: pa.Table, *, keeps_single: bool = False
) -> list[pa.Table]:
    """Return the bins with the files of a newer version, without the files that it lacks.

    Args:
        bins: The result of `bins_of` for an older version.
        live: Rows of `Snapshot.files` of the newer version, with at least the bins' files.
        keeps_single: Whether to keep a bin that has one file.
    """
    wanted = pa.concat_tables(bins)["path"]
    fewest = 1 if keeps_single else 2
    indices = pc.index_in(canonical_paths(wanted), value_set=canonical_paths(live["path"]))
    first, found = 0, []
    for files in bins:
        found.append(live.take(indices.slice(first, files.num_rows).drop_null()))
        first += files.num_rows
    return [files for files in found if files.num_rows >= fewest]


def _texts_of_times(files: pa.Table, partition_fields: StructType) -> list[pa.ChunkedArray]:
    return [
        values_of_key(files["partitionValues"], item.physical_name)
        for item in partition_fields
        if str(item.data_type) == "timestamp"
    ]


def _encode_as_numbers(column: pa.ChunkedArray) -> pa.Array:
    """Encode values as numbers that are equal where the values are.

    Arrow sorts and compares few types.
    """
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(pa.int64())


def _find_group_starts(keys: pa.Table) -> list[int]:
    """Return the row numbers at which a new key begins, in sorted keys."""
    differs = np.zeros(keys.num_rows, bool)
    differs[0] = True
    for column in keys.columns:
        values = pc.fill_null(column.cast(pa.int64()), -1).to_numpy()
        differs[1:] |= values[1:] != values[:-1]
    return [int(index) for index in np.flatnonzero(differs)]


def _fill_bins(sizes: np.ndarray, start: int, end: int, max_bytes: int) -> list[tuple[int, int]]:
    """Return where each bin of one partition begins, and how many files it has."""
    bins = []
    sums = np.cumsum(sizes[start:end])
    at = 0
    while at < len(sums):
        before = sums[at - 1] if at else 0
        upto = max(int(np.searchsorted(sums, before + max_bytes, side="right")), at + 1)
        bins.append((start + at, upto - at))
        at = upto
    return bins
