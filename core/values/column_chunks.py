"""What a Parquet footer says of its column chunks, for callers that a forged footer must not end.

Arrow throws where pyarrow catches nothing, and the whole process ends, if it is asked for a chunk
that a key of its column encrypts, or for the statistics of a chunk with a bound shorter than its
type, or with another type than its column. So these are looked for first. pyarrow shows neither
keys nor the lengths of bounds, but the bytes of the footer do.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

import pyarrow.parquet as pq

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
    """

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self.metadata = metadata
        schema = metadata.schema
        self._columns = [schema.column(index) for index in range(len(schema))]
        self._encrypted: frozenset[tuple[int, int]] | None = None
        self._short: frozenset[tuple[int, int]] | None = None

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
    return frozenset(
        (group, column)
        for group, chunks in enumerate(_row_groups(_Walk(footer, len(b"PAR1"))))
        for column, lengths in enumerate(chunks)
        if is_wanted(column, lengths)
    )


# The numbers of fields in Parquet's footer.
_ROW_GROUPS = 4
_COLUMNS = 1
_META_DATA = 3
_STATISTICS = 12
_KEY = 8


def _row_groups(walk: _Walk) -> Iterator[list[list[int] | None]]:
    """Yield for each row group the lengths of each chunk's bounds, None if it is encrypted."""
    for number, kind in walk.fields():
        if number == _ROW_GROUPS:
            for _ in range(walk.list_header()[0]):
                yield _chunks(walk)
        else:
            walk.skip(kind)


def _chunks(walk: _Walk) -> list[list[int] | None]:
    found: list[list[int] | None] = []
    for number, kind in walk.fields():
        if number == _COLUMNS:
            found = [_chunk(walk) for _ in range(walk.list_header()[0])]
        else:
            walk.skip(kind)
    return found


def _chunk(walk: _Walk) -> list[int] | None:
    lengths: list[int] = []
    is_encrypted = False
    for number, kind in walk.fields():
        if number == _META_DATA:
            lengths = _bounds(walk)
        else:
            is_encrypted = is_encrypted or number == _KEY
            walk.skip(kind)
    return None if is_encrypted else lengths


def _bounds(walk: _Walk) -> list[int]:
    lengths = []
    for number, kind in walk.fields():
        if number != _STATISTICS:
            walk.skip(kind)
            continue
        for _, inner in walk.fields():
            if inner == _BINARY:  # the bounds: nothing else there is
                lengths.append(walk.skip_binary())
            else:
                walk.skip(inner)
    return lengths


# The kinds of values in Thrift's compact protocol. The header of a boolean field has its value.
_BOOLEANS = frozenset({1, 2})
_BYTE = 3
_INTEGERS = frozenset({4, 5, 6})
_DOUBLE = 7
_BINARY = 8
_LISTS = frozenset({9, 10})
_STRUCT = 12
_LONG_LIST = 15


class _Walk:
    """A place in bytes of Thrift's compact protocol. Each method goes past what it names."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._at = start

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field of a struct. The caller goes past its value."""
        number = 0
        while head := self._byte():
            step = head >> 4
            number = number + step if step else self._varint() >> 1
            yield number, head & 15

    def list_header(self) -> tuple[int, int]:
        """Return number and kind of the items of a list. The caller goes past them."""
        head = self._byte()
        length = head >> 4
        return self._varint() if length == _LONG_LIST else length, head & 15

    def skip_binary(self) -> int:
        """Go past a text, and return its length."""
        length = self._varint()
        self._at += length
        return length

    def skip(self, kind: int) -> None:
        """Go past the value of a field."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            self.skip_binary()
        elif kind in _LISTS:
            length, inner = self.list_header()
            for _ in range(length):
                self._skip_item(inner)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BYTE:
            self._at += 1
        elif kind not in _BOOLEANS:
            raise OSError(f"its footer has a value of kind {kind}")

    def _skip_item(self, kind: int) -> None:
        if kind in _BOOLEANS:
            self._at += 1
        else:
            self.skip(kind)

    def _byte(self) -> int:
        at = self._at
        self._at = at + 1
        return self._data[at]

    def _varint(self) -> int:
        data, at = self._data, self._at
        value = shift = 0
        while (byte := data[at]) > 127:
            value |= (byte & 127) << shift
            shift += 7
            at += 1
        self._at = at + 1
        return value | byte << shift
