"""Texts that a command copies from file to file as numbers into a dictionary.

Where a file stores a column of texts by a dictionary, Arrow can read the numbers and the dictionary
instead of each text. Rows that are only copied or left out need no more. To filter and to encode
numbers takes a fraction of the time and memory, and the new files hold the same texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from optimist.core.data.column_shape import is_text_dictionary
from optimist.core.values.column_chunks import ColumnChunks
from optimist.core.values.thrift_values import read_struct

__all__ = [
    "StoredDictionaries",
    "UnfitDictionaryError",
    "in_plain_pieces",
    "joined_rows",
    "rows_at_once",
    "with_plain_texts",
    "with_texts_of",
]

_TEXT = pa.string()
_ROWS_AT_ONCE = 1 << 13
_BYTES_AT_ONCE = 256 << 10
_SMALL_DICTIONARY = 4 << 10
"""The compressed size of a dictionary that is worth it however short its column is."""
_MOST_PLAIN_BYTES = 1 << 30
"""The most bytes of texts as such. An array of Arrow holds less than 2 GiB."""
_HEADER_BYTES = 256
"""More bytes than the header of a dictionary's page has."""
_DICTIONARY_HEADER, _NUM_VALUES = 7, 1
"""The numbers of fields in Parquet's `parquet.thrift`."""
_READ_AS_NUMBERS = frozenset({"BIT_PACKED", "PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY"})
"""The encodings from which Arrow reads numbers. After a dictionary, some engines write others."""


class UnfitDictionaryError(Exception):
    """Texts can't be read as numbers: their dictionary has a text twice, or lacks some texts."""


@dataclass(frozen=True, slots=True)
class StoredDictionaries:
    """The columns of one file that store all their texts by small dictionaries.

    Attributes:
        counts: For each column that can be read as numbers, how many texts the dictionary of each
            row group has.
        ends: The position behind the last row of each row group.
    """

    counts: Mapping[str, Sequence[int]]
    ends: Sequence[int]

    @classmethod
    def of(cls, file: pq.ParquetFile, source: pa.NativeFile) -> StoredDictionaries:
        """Return the columns of texts, not in structs, whose dictionaries are small.

        Only the footer and the first bytes of the dictionaries are looked at.

        Args:
            file: The file, open with any settings.
            source: Its bytes.
        """
        metadata, schema, fields = file.metadata, file.schema, file.schema_arrow
        groups = range(metadata.num_row_groups)
        chunks = ColumnChunks(metadata)
        indices = {schema.column(index).path: index for index in range(len(schema))}
        occurrences = Counter(fields.names)
        counts: dict[str, list[int]] = {}
        for field in fields:
            is_one = occurrences[field.name] == 1 and field.name in indices
            if field.type == _TEXT and is_one:
                column = indices[field.name]
                found = [_count_texts(chunks, group, column, source) for group in groups]
                if all(found):
                    counts[field.name] = found
        ends = accumulate(metadata.row_group(group).num_rows for group in groups)
        return cls(counts, list(ends))

    def ensure_fit(self, rows: pa.RecordBatch, start: int) -> None:
        """Check that the dictionaries of a batch are those of the file.

        Arrow keeps one of two texts that are the same, and does not change the numbers. If some
        texts of a row group are stored as such, it adds them to the dictionary, at a high cost.

        Args:
            rows: A batch, as Arrow has read it.
            start: The position of its first row in the file.

        Raises:
            UnfitDictionaryError: One of them is not.
        """
        group = bisect_right(self.ends, start)
        for name, values in zip(rows.schema.names, rows.columns, strict=True):
            if not is_text_dictionary(values.type) or values.null_count == len(values):
                continue
            counts = self.counts.get(name)
            if counts is None or len(values.dictionary) != counts[group]:
                raise UnfitDictionaryError


def _count_texts(chunks: ColumnChunks, group: int, column: int, source: pa.NativeFile) -> int:
    """Return how many texts the dictionary of a chunk has, or 0 if its texts are read as such."""
    try:
        chunk = chunks.chunk(group, column)
    except OSError:
        return 0
    if not (chunk.has_dictionary_page and chunk.dictionary_page_offset):
        return 0
    if not _READ_AS_NUMBERS.issuperset(chunk.encodings):
        return 0
    size = chunk.data_page_offset - chunk.dictionary_page_offset
    if not 0 < size <= max(_SMALL_DICTIONARY, chunk.total_compressed_size // 2):
        return 0
    try:
        header, _ = read_struct(source.read_at(_HEADER_BYTES, chunk.dictionary_page_offset))
        return int(header[_DICTIONARY_HEADER][1][_NUM_VALUES][1])
    except (LookupError, TypeError, ValueError):
        return 0


def with_plain_texts(rows: pa.Table) -> pa.Table:
    """Return rows in which each text is there itself."""
    return with_texts_of(None, rows)


def with_texts_of(schema: pa.Schema | None, rows: pa.Table) -> pa.Table:
    """Return rows in which each text is there itself, unless it is a number in the schema, too.

    Their size in memory is then the size with which they are written.
    """
    for index, field in enumerate(rows.schema):
        if is_text_dictionary(field.type) and (schema is None or field.type != schema.types[index]):
            rows = rows.set_column(index, field.with_type(_TEXT), _plain(rows.column(index)))
    return rows


def in_plain_pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows in pieces whose texts, each as such, fit into arrays of Arrow.

    Raises:
        pa.ArrowInvalid: A number has no text, as in a damaged file.
    """
    longest = 1
    for values in rows.columns:
        if is_text_dictionary(values.type):
            texts = values.dictionary
            ends = pc.min_max(values.indices).as_py()
            if (ends["min"] or 0) < 0 or (ends["max"] or 0) >= max(1, len(texts)):
                raise pa.ArrowInvalid("a text is a number that its dictionary does not have")
            if texts.nbytes * len(values) > _MOST_PLAIN_BYTES:
                longest = max(longest, pc.max(pc.binary_length(texts)).as_py())
    size = max(1, _MOST_PLAIN_BYTES // longest)
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


def joined_rows(parts: Sequence[pa.Table], schema: pa.Schema | None = None) -> pa.Table:
    """Return the rows of all parts, each column in one form, without texts that no row has.

    Args:
        parts: At least one table. They have the same columns, but texts of some may be numbers into
            a dictionary where those of others are not.
        schema: The columns of the result; None to choose the form of texts.
    """
    schemas = [part.schema for part in parts] + ([schema] if schema is not None else [])
    mixed = [
        index
        for index in range(parts[0].num_columns)
        if any(is_text_dictionary(each.field(index).type) for each in schemas)
    ]
    if not mixed:
        return pa.concat_tables(parts)
    found = schema or _chosen_schema(parts, mixed)
    alike = [_as_in(part, found, mixed) for part in parts]
    joined = pa.concat_tables(alike).unify_dictionaries()
    for index in mixed:
        if is_text_dictionary(found.field(index).type):
            used = _with_used_texts(joined.column(index))
            joined = joined.set_column(index, found.field(index), used)
    return joined


def rows_at_once(rows: pa.Table) -> int | None:
    """Return how many rows Arrow should encode at a time; None for its own choice.

    Each time it looks for the least and the greatest text of a dictionary, which costs more than to
    encode a few numbers. But a page can't end within these rows, so wide ones must be few.
    """
    if not rows.num_rows or not any(map(is_text_dictionary, rows.schema.types)):
        return None
    widest = max(column.nbytes for column in rows.columns) // rows.num_rows + 1
    count = min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // widest)
    return count if count > _ROWS_AT_ONCE // 8 else None


def _with_used_texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values without the texts of their one dictionary that no row has.

    Arrow's writer would store those, so that a deleted text stayed in the file. Where rows are
    null, it would also take one for the least or the greatest text.
    """
    if not values.num_chunks:
        return values
    texts = values.chunk(0).dictionary
    is_used = np.zeros(len(texts), np.bool_)
    for chunk in values.chunks:
        is_used[chunk.indices.drop_null().to_numpy()] = True
    if is_used.all():
        return values
    kept = texts.filter(pa.array(is_used))
    numbers = pa.array(np.cumsum(is_used, dtype=np.int32) - 1, pa.int32())
    return pa.chunked_array(
        pa.DictionaryArray.from_arrays(pc.take(numbers, chunk.indices), kept)
        for chunk in values.chunks
    )


def _chosen_schema(parts: Sequence[pa.Table], mixed: Sequence[int]) -> pa.Schema:
    """Return the columns, with dictionaries where the values of most rows repeat."""
    schema = parts[0].schema
    num_rows = sum(part.num_rows for part in parts)
    for index in mixed:
        chunks = [
            chunk
            for part in parts
            if is_text_dictionary(part.schema.field(index).type)
            for chunk in part.column(index).chunks
        ]
        is_worth_it = (
            2 * sum(map(len, chunks)) >= num_rows
            and 2 * sum(len(chunk.dictionary) for chunk in chunks) <= num_rows
        )
        chosen = pa.dictionary(pa.int32(), _TEXT) if is_worth_it else _TEXT
        schema = schema.set(index, schema.field(index).with_type(chosen))
    return schema


def _as_in(rows: pa.Table, schema: pa.Schema, mixed: Sequence[int]) -> pa.Table:
    for index in mixed:
        field, values = schema.field(index), rows.column(index)
        if values.type == field.type:
            continue
        is_wanted = is_text_dictionary(field.type)
        changed = values.dictionary_encode() if is_wanted else _plain(values)
        rows = rows.set_column(index, field, changed)
    return rows


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.dictionary_decode() for chunk in values.chunks], _TEXT)
