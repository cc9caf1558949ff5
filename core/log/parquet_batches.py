"""Batches of a Parquet file, each small enough not to fill the memory (spec 5.8).

Arrow unpacks without a limit: if a chunk has a dictionary, a text that is once in the file may be
in every row of a batch. The footer gives a bound for a chunk's longest text, and so for the number
of rows that may be unpacked at once. A forged footer goes unnoticed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.log.checkpoint_file import CheckpointFile

__all__ = ["bounded_batches"]

_WITHOUT_REPEATS = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
"""Encodings that store each text with all of its bytes."""

_OF_DICTIONARIES = _WITHOUT_REPEATS | {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
"""The same, and encodings that may store the text in the chunk's dictionary."""

_MOST_EXPANSION = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 256, "GZIP": 1_100}
"""The largest expansion of each codec. Other codecs have no limit."""

_MOST_JOINED_BYTES = 64 << 20
_RUN_BYTES = 16 << 20
"""Arrow keeps what it has read of the file until the last of the row groups that it was asked for:
so it is asked for a few at a time, and for enough that reading them takes few requests."""


def bounded_batches(
    file: CheckpointFile,
    columns: Sequence[str],
    groups: Sequence[int],
    *,
    max_rows: int,
    max_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these row groups, unpacked in pieces of at most about `max_bytes`.

    Pieces are joined up to `max_rows`, so that many small ones cost no more than a few large ones.

    Args:
        file: The file.
        columns: The columns to read, or fields of struct columns, as paths with dots.
        groups: The row groups.
        max_rows: The rows of a batch, if they can't be large.
        max_bytes: The most memory to use at once.

    Raises:
        ValueError: By its footer, a row group unpacks to more than `max_bytes`.
    """
    leaves = _leaf_indices(file, columns)
    # If Arrow keeps a column as a dictionary, a piece's size does not show how long a value is.
    is_size_known = not any("dictionary<" in str(field.type) for field in file.schema_arrow)
    rows_of = {group: _safe_row_count(file, group, leaves, max_rows, max_bytes) for group in groups}
    for rows, alike in itertools.groupby(groups, rows_of.__getitem__):
        runs = _runs(file, list(alike), leaves)
        pieces = (
            piece
            for run in runs
            for piece in file.iter_batches(
                rows, row_groups=run, columns=list(columns), use_threads=not file.is_streamed
            )
        )
        yield from _join_pieces(pieces, max_rows) if is_size_known and rows < max_rows else pieces


def _runs(
    file: CheckpointFile, groups: Sequence[int], leaves: Sequence[int]
) -> Iterator[list[int]]:
    """Yield the row groups in runs, each of a few bytes in the file or of one row group."""
    run: list[int] = []
    size = 0
    for group in groups:
        stored = sum(file.chunks.chunk(group, leaf).total_compressed_size for leaf in leaves)
        if run and size + stored > _RUN_BYTES:
            yield run
            run, size = [], 0
        run.append(group)
        size += stored
    if run:
        yield run


def _leaf_indices(file: CheckpointFile, columns: Sequence[str]) -> list[int]:
    prefixes = tuple(f"{column}." for column in columns)
    paths = file.chunks.paths
    return [index for index, path in enumerate(paths) if f"{path}.".startswith(prefixes)]


def _safe_row_count(
    file: CheckpointFile, group: int, leaves: Sequence[int], max_rows: int, max_bytes: int
) -> int:
    schema, metadata = file.schema, file.metadata.row_group(group)
    chunks = [(schema.column(index), file.chunks.chunk(group, index)) for index in leaves]
    plain_bytes = sum(chunk.total_uncompressed_size for _, chunk in chunks)
    if plain_bytes > max_bytes:
        raise ValueError(f"a row group of {metadata.num_rows} rows unpacks to {plain_bytes} bytes")
    row_bytes = sum(
        _longest_value(column, chunk) * -(-chunk.num_values // max(metadata.num_rows, 1))
        for column, chunk in chunks
    )
    return max_rows if row_bytes * max_rows <= max_bytes else max(1, max_bytes // row_bytes)


def _longest_value(column: pq.ColumnSchema, chunk: pq.ColumnChunkMetaData) -> int:
    """Return how many bytes one value may take beyond its share of the chunk."""
    if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)  # nulls take as many
    if chunk.physical_type != "BYTE_ARRAY" or _WITHOUT_REPEATS.issuperset(chunk.encodings):
        return 0
    longest = int(chunk.total_uncompressed_size)
    start, end = chunk.dictionary_page_offset, chunk.data_page_offset
    expansion = _MOST_EXPANSION.get(chunk.compression)
    if start is None or expansion is None or not _OF_DICTIONARIES.issuperset(chunk.encodings):
        return longest
    # Only the dictionary matters: a text outside it takes at most its share of its page.
    return min(longest, (end - start) * expansion) if end > start else longest


def _join_pieces(pieces: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in pieces:
        waiting.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        if rows >= max_rows or size >= _MOST_JOINED_BYTES:
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)
