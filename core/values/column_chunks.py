"""What a Parquet footer says of its column chunks, for callers that a forged footer must not end.

Arrow throws where pyarrow catches nothing, and the whole process ends, if it is asked for a chunk
that a key of its column encrypts, or for the statistics of a chunk with a bound shorter than its
type, or with another type than its column. So these are looked for first. pyarrow shows neither
keys nor the lengths of bounds, but the bytes of the footer do.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pyarrow.parquet as pq

from optimist.core.values.thrift_values import ALL, STRUCT, Struct, Wanted, read_struct

__all__ = ["ColumnChunks"]

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
"""The bytes of a bound by its column's physical type. Bytes of a fixed length have that length."""

_ANY_LENGTH = "BYTE_ARRAY"

_KEY_OF_A_COLUMN = re.compile(rb"[\x1c\x2c\x3c\x4c\x5c\x6c\x7c\x8c]\x2c\x19")
"""How a column's key begins: a struct, whose second field is a struct, whose first is a list.

Other bytes may look the same, but hardly ever do. So footers without keys need no walk.
"""


class ColumnChunks:
    """The column chunks of one file. Threads may share it.

    Args:
        metadata: The file's footer.

    Attributes:
        metadata: The same.
        paths: The path of each leaf column, with dots.
    """

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self.metadata = metadata
        schema = metadata.schema
        self._columns = [schema.column(index) for index in range(len(schema))]
        self.paths = tuple(item.path for item in self._columns)
        self._encrypted: frozenset[tuple[int, int]] | None = None
        self._short: frozenset[tuple[int, int]] | None = None

    @property
    def unpacked_bytes(self) -> int:
        """The bytes of all pages without compression, as the footer has them."""
        groups = range(self.metadata.num_row_groups)
        return sum(self.metadata.row_group(group).total_byte_size for group in groups)

    def chunk(self, group: int, column: int) -> pq.ColumnChunkMetaData:
        """Return what the footer says of a chunk, which must not be asked for its statistics.

        Args:
            group: The number of the row group.
            column: The number of the leaf column.

        Raises:
            OSError: The chunk is encrypted.
        """
        if (group, column) in self._encrypted_chunks():
            raise OSError(f"its column {self._columns[column].path!r} is encrypted")
        return self.metadata.row_group(group).column(column)

    def statistics(self, group: int, column: int) -> pq.Statistics | None:
        """Return the statistics of a chunk, or None if there are none that Arrow can decode."""
        if (group, column) in self._encrypted_chunks():
            return None
        chunk = self.metadata.row_group(group).column(column)
        kind = self._columns[column].physical_type
        if chunk.physical_type != kind:
            return None
        if kind != _ANY_LENGTH and (group, column) in self._chunks_with_short_bounds():
            return None
        return chunk.statistics

    def _encrypted_chunks(self) -> frozenset[tuple[int, int]]:
        if self._encrypted is None:
            footer = _bytes_of(self.metadata)
            has_keys = _KEY_OF_A_COLUMN.search(footer) is not None
            self._encrypted = _find(footer, _is_encrypted) if has_keys else frozenset()
        return self._encrypted

    def _chunks_with_short_bounds(self) -> frozenset[tuple[int, int]]:
        if self._short is None:
            widths = [_WIDTHS.get(item.physical_type, item.length) for item in self._columns]

            def is_short(column: int, lengths: list[int] | None) -> bool:
                width = widths[column] if column < len(widths) else 0
                return min(lengths or (width,)) < width

            self._short = _find(_bytes_of(self.metadata), is_short)
        return self._short


def _bytes_of(metadata: pq.FileMetaData) -> bytes:
    """Return the footer as Arrow writes it, no matter how the file's writer did."""
    copy = io.BytesIO()
    metadata.write_metadata_file(copy)
    return copy.getvalue()


def _is_encrypted(_: int, lengths: list[int] | None) -> bool:
    return lengths is None


def _find(
    footer: bytes, is_wanted: Callable[[int, list[int] | None], bool]
) -> frozenset[tuple[int, int]]:
    """Return row group and column of the chunks that are wanted by column and bounds."""
    fields, _ = read_struct(footer, len(b"PAR1"), {_ROW_GROUPS: _lengths_of_bounds}, _WANTED)
    return frozenset(
        (group, column)
        for group, chunks in enumerate(fields[_ROW_GROUPS][1][1])
        for column, lengths in enumerate(chunks)
        if is_wanted(column, lengths)
    )


# The numbers of fields in Parquet's footer.
_ROW_GROUPS = 4
_COLUMNS = 1
_META_DATA = 3
_STATISTICS = 12
_KEY = 8
_OF_A_CHUNK = Wanted({_META_DATA: Wanted({_STATISTICS: ALL}), _KEY: ALL})
_WANTED = Wanted({_ROW_GROUPS: Wanted({_COLUMNS: _OF_A_CHUNK})})


def _lengths_of_bounds(group: Struct, _: bytes) -> list[list[int] | None]:
    """Return for each chunk of a row group the lengths of its bounds, None if it is encrypted."""
    return [None if _KEY in chunk else _lengths(chunk) for chunk in group[_COLUMNS][1][1]]


def _lengths(chunk: Struct) -> list[int]:
    _, meta = chunk.get(_META_DATA, (STRUCT, {}))
    _, statistics = meta.get(_STATISTICS, (STRUCT, {}))
    # Nothing but bounds are bytes there.
    return [len(value) for _, value in statistics.values() if isinstance(value, bytes)]
