"""Batches of a Parquet file, each of so few rows that it can't fill the memory (spec 5.8).

Arrow unpacks without a limit: if a chunk has a dictionary, a text that stands once in the file may
stand in every row of a batch. What the footer says of a chunk bounds its longest text, from which
follows how many rows may be unpacked at once. A footer forged to say less goes unnoticed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["bounded_batches"]

_WITHOUT_REPEATS = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
"""Encodings in which each text stands with all of its bytes."""

_OF_DICTIONARIES = _WITHOUT_REPEATS | {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
"""The same, and those in which it may stand in the chunk's dictionary instead."""

_MOST_EXPANSION = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 256, "GZIP": 1_100}
"""How many times its input a codec can unpack to at most; other codecs have no such limit."""

_MOST_JOINED_BYTES = 64 << 20


def bounded_batches(
    file: pq.ParquetFile,
    columns: Sequence[str],
    groups: Sequence[int],
    *,
    max_rows: int,
    max_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """The rows of these row groups, unpacked in pieces of about `max_bytes` at most.

    Pieces are joined up to `max_rows`, so that many small ones cost no more than a few large ones.

    Args:
        file: The file.
        columns: The columns to read, or fields of struct columns, as paths with dots.
        groups: The row groups.
        max_rows: How many rows a batch has, where they can't be large.
        max_bytes: How much memory may be taken at once.

    Raises:
        ValueError: By what the footer says, a row group unpacks to more than `max_bytes`.
    """
    leaves = _leaves(file, columns)
    # Where Arrow keeps a column as a dictionary, a piece's size does not tell how long a value is.
    is_told = not any("dictionary<" in str(field.type) for field in file.schema_arrow)
    rows_of = {group: _safe_rows(file, group, leaves, max_rows, max_bytes) for group in groups}
    for rows, alike in itertools.groupby(groups, rows_of.__getitem__):
        pieces = file.iter_batches(rows, row_groups=list(alike), columns=list(columns))
        yield from _joined(pieces, max_rows) if is_told and rows < max_rows else pieces


def _leaves(file: pq.ParquetFile, columns: Sequence[str]) -> list[int]:
    prefixes = tuple(f"{column}." for column in columns)
    schema = file.schema
    paths = (f"{schema.column(index).path}." for index in range(len(schema)))
    return [index for index, path in enumerate(paths) if path.startswith(prefixes)]


def _safe_rows(
    file: pq.ParquetFile, group: int, leaves: Sequence[int], max_rows: int, max_bytes: int
) -> int:
    schema, metadata = file.schema, file.metadata.row_group(group)
    chunks = [(schema.column(index), metadata.column(index)) for index in leaves]
    plain_bytes = sum(chunk.total_uncompressed_size for _, chunk in chunks)
    if plain_bytes > max_bytes:
        raise ValueError(f"a row group of {metadata.num_rows} rows unpacks to {plain_bytes} bytes")
    row_bytes = sum(
        _longest_value(column, chunk) * -(-chunk.num_values // max(metadata.num_rows, 1))
        for column, chunk in chunks
    )
    return max_rows if row_bytes * max_rows <= max_bytes else max(1, max_bytes // row_bytes)


def _longest_value(column: pq.ColumnSchema, chunk: pq.ColumnChunkMetaData) -> int:
    """How many bytes one value may take beyond its share of the chunk; 0 if it can't take more."""
    if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)  # nulls take as many
    if chunk.physical_type != "BYTE_ARRAY" or _WITHOUT_REPEATS.issuperset(chunk.encodings):
        return 0
    longest = int(chunk.total_uncompressed_size)
    start, end = chunk.dictionary_page_offset, chunk.data_page_offset
    expansion = _MOST_EXPANSION.get(chunk.compression)
    if start is None or expansion is None or not _OF_DICTIONARIES.issuperset(chunk.encodings):
        return longest
    # Only the dictionary matters: a text outside it takes no more than its share of its page.
    return min(longest, (end - start) * expansion) if end > start else longest


def _joined(pieces: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
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
