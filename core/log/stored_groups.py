"""Row groups of a Parquet file as they are stored, to be put into another file unchanged.

Arrow can only decode a row group and encode it again, which takes many times as long. The bytes of
a row group do not depend on where they are in a file. Only the footer and the page index name
places: these are moved, and everything else stays as it is.

Bytes that nobody decodes would carry damage on from file to file. So a row group is only taken over
if each of its pages has a checksum. A footer has none. But what it says of a row group, the page
index says of each page, and the two must agree.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, TypeAlias
from zlib import crc32

from optimist.core.values.thrift_values import (
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Struct,
    read_struct,
    write_struct,
)

__all__ = ["MAGIC", "StoredFile", "StoredGroup", "has_sums", "is_as_indexed", "write_tail"]

_Places: TypeAlias = tuple[tuple[tuple[int, int], tuple[int, int]], ...]

MAGIC = b"PAR1"
_TAIL_BYTES = 8
"""The footer's length and the mark at the end of a file."""

# The numbers of fields in Parquet's `parquet.thrift`.
_SCHEMA, _NUM_ROWS, _GROUPS, _WRITER, _ORDERS = 2, 3, 4, 6, 7
_CHUNKS, _GROUP_ROWS, _GROUP_PLACE, _GROUP_NUMBER = 1, 3, 5, 7
_CHUNK_PLACE, _CHUNK_META = 2, 3
_OFFSETS_PLACE, _OFFSETS_LENGTH, _BOUNDS_PLACE, _BOUNDS_LENGTH = 4, 5, 6, 7
_CODEC, _NUM_BYTES, _DATA_PLACE, _DICTIONARY_PLACE = 4, 7, 9, 11
_PAGES, _PAGE_PLACE = 1, 1
_PAGE_BYTES, _PAGE_SUM = 3, 4
_STATISTICS, _NULLS, _HIGH, _LOW = 12, 3, 5, 6
_NULL_PAGES, _PAGE_LOWS, _PAGE_HIGHS, _PAGE_NULLS = 1, 2, 3, 5
_IS_TRUE = 1
_OF_CHUNKS = frozenset(range(_CHUNK_PLACE, _BOUNDS_LENGTH + 1))
_NOT_OF_META = frozenset({10, 14, 15})
"""Index pages and Bloom filters, which have places of their own."""


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row group as it is stored.

    Attributes:
        footer: What the file's footer says of it, as bytes: a large table has many.
        num_rows: The number of its rows.
        codecs: The codecs of its columns.
        spans: The place of each column's first byte, and the number of its bytes.
        index: For each column, the pages' bounds and the pages' places. Empty if absent.
        data: The bytes of all columns, if they are held.
    """

    footer: bytes
    num_rows: int
    codecs: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    index: tuple[tuple[bytes, bytes], ...] = ()
    data: bytes = b""

    @property
    def start(self) -> int:
        """The place of its first byte."""
        return self.spans[0][0]

    @property
    def size_bytes(self) -> int:
        """The number of its bytes."""
        return sum(self.spans[-1]) - self.start


class StoredFile(io.RawIOBase):
    """A Parquet file of which row groups are taken over.

    It is also an open file for Arrow, with the same bytes of the row group that was held last.

    Every method raises `ValueError` or `LookupError` for a file that Arrow does not write.

    Args:
        source: The open file.
        index_shift: How much farther back its page index is than its footer says.
    """

    def __init__(self, source: BinaryIO, index_shift: int = 0) -> None:
        super().__init__()
        self._source = source
        self._held, self._held_start = b"", 0
        self._at = 0
        self.size_bytes = source.seek(0, os.SEEK_END)
        mark = self._bytes(self.size_bytes - _TAIL_BYTES, _TAIL_BYTES)
        end = self.size_bytes - _TAIL_BYTES - int.from_bytes(mark[:4], "little")
        if mark[4:] != MAGIC:
            raise ValueError("it does not end as a Parquet file")
        tail = self._bytes(end, self.size_bytes - end)
        self.footer, _ = read_struct(tail, lists={_GROUPS: _stored_group})
        self._groups: list[tuple[StoredGroup, _Places]] = self.footer.pop(_GROUPS)[1][1]
        data_end = max((group.start + group.size_bytes for group, _ in self._groups), default=end)
        self._index_start = data_end
        self._index = self._bytes(data_end + index_shift, end - data_end - index_shift)

    def is_written_like(self, other: StoredFile) -> bool:
        """Return whether its row groups may be in the other file."""
        return self._kind() == other._kind()

    def groups(self) -> Iterator[StoredGroup]:
        """Yield what the footer and the page index say of each row group."""
        for group, places in self._groups:
            index = tuple((self._part(*bounds), self._part(*pages)) for bounds, pages in places)
            yield replace(group, index=index)

    def hold(self, group: StoredGroup) -> StoredGroup:
        """Read the bytes of one row group, and keep them for whoever reads from this file."""
        self._held, self._held_start = self._bytes(group.start, group.size_bytes), group.start
        return replace(group, data=self._held)

    def read(self, size: int = -1) -> bytes:
        """Read bytes from the place that `seek` has chosen."""
        left = self.size_bytes - self._at
        length = left if size < 0 else min(size, left)
        begin = self._at - self._held_start
        if begin >= 0 and begin + length <= len(self._held):
            data = self._held[begin : begin + length]
        else:
            data = self._bytes(self._at, length)
        self._at += length
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Choose a place."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, self.size_bytes)
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def _kind(self) -> tuple[Any, ...]:
        codecs = {group.codecs for group, _ in self._groups}
        return (codecs, *(self.footer.get(field) for field in (_SCHEMA, _WRITER, _ORDERS)))

    def _part(self, start: int, length: int) -> bytes:
        begin = start - self._index_start
        part = self._index[begin : begin + length] if length else b""
        if len(part) != length or (length and begin < 0):
            raise ValueError("the page index is not where the footer says")
        return part

    def _bytes(self, start: int, length: int) -> bytes:
        if min(start, length) < 0:
            raise ValueError("it names a place before its first byte")
        self._source.seek(start)
        data = self._source.read(length)
        if len(data) != length:
            raise ValueError("it names a place behind its last byte")
        return data


def has_sums(group: StoredGroup) -> bool:
    """Return whether all pages of a row group, whose bytes are held, have checksums.

    Raises:
        ValueError, LookupError: A page is not as its checksum says, or not where it should be.
    """
    data, view = group.data, memoryview(group.data)
    for start, size in group.spans:
        at, end = start - group.start, start - group.start + size
        while at < end:
            header, at = read_struct(data, at)
            following = at + _value(header, _PAGE_BYTES)
            if _PAGE_SUM not in header:
                return False
            is_within = at <= following <= end
            if not is_within or crc32(view[at:following]) != _value(header, _PAGE_SUM) % (1 << 32):
                raise ValueError("a page is damaged: its checksum is another one")
            at = following
    return True


def is_as_indexed(group: StoredGroup, bounded: Collection[int]) -> bool:
    """Return whether the footer says of a row group's columns what its page index says of them.

    Args:
        group: The row group.
        bounded: The numbers of the columns whose bounds must be in the page index.

    Raises:
        ValueError, LookupError: The page index is damaged.
    """
    struct, _ = read_struct(group.footer)
    return all(
        _agrees(_value(chunk, _CHUNK_META), pages, is_bounded=number in bounded)
        for number, (chunk, (pages, _)) in enumerate(
            zip(_elements(struct, _CHUNKS), group.index, strict=True)
        )
    )


def _agrees(meta: Struct, pages: bytes, *, is_bounded: bool) -> bool:
    """Compare the statistics of a column with those of its pages: a bound is that of some page."""
    statistics = _value(meta, _STATISTICS) if _STATISTICS in meta else {}
    bounds = [(_LOW, _PAGE_LOWS), (_HIGH, _PAGE_HIGHS)] if is_bounded else []
    bounds = [(field, of_pages) for field, of_pages in bounds if field in statistics]
    if not pages:
        return not bounds
    index, _ = read_struct(pages)
    nulls = _NULLS in statistics and _PAGE_NULLS in index
    if nulls and _value(statistics, _NULLS) != sum(_elements(index, _PAGE_NULLS)):
        return False
    are_null = _elements(index, _NULL_PAGES)
    return all(
        _value(statistics, field)
        in [
            bound
            for bound, is_null in zip(_elements(index, of_pages), are_null, strict=True)
            if is_null != _IS_TRUE
        ]
        for field, of_pages in bounds
    )


def write_tail(
    write: Callable[[bytes], object],
    footer: Struct,
    groups: Sequence[tuple[StoredGroup, int]],
    at: int,
) -> None:
    """Write what follows the row groups in a file: page index and footer.

    Args:
        write: Writes bytes.
        footer: The footer without row groups.
        groups: The row groups, each with the place of its first byte in the new file.
        at: The place behind the last of them.
    """
    places: list[list[int]] = [[], []]
    for part, found in enumerate(places):
        for group, start in groups:
            for parts in group.index:
                data = parts[part]
                if part and data:
                    data = _moved_pages(data, start - group.start)
                found += [at, len(data)]
                write(data)
                at += len(data)
    bounds, pages = map(iter, places)
    moved = [
        _moved_group(group, start - group.start, number, (bounds, pages))
        for number, (group, start) in enumerate(groups)
    ]
    num_rows = sum(group.num_rows for group, _ in groups)
    data = write_struct({**footer, _NUM_ROWS: (I64, num_rows), _GROUPS: (LIST, (STRUCT, moved))})
    write(data + len(data).to_bytes(4, "little") + MAGIC)


def _stored_group(struct: Struct, footer: bytes) -> tuple[StoredGroup, _Places]:
    chunks = _elements(struct, _CHUNKS)
    spans = tuple(map(_span, chunks))
    ends = [start + size for start, size in spans]
    if [start for start, _ in spans[1:]] != ends[:-1]:
        raise ValueError("the columns of a row group do not follow each other")
    codecs = tuple(_value(_value(chunk, _CHUNK_META), _CODEC) for chunk in chunks)
    places = tuple(
        (
            _place(chunk, _BOUNDS_PLACE, _BOUNDS_LENGTH),
            _place(chunk, _OFFSETS_PLACE, _OFFSETS_LENGTH),
        )
        for chunk in chunks
    )
    return StoredGroup(footer, _value(struct, _GROUP_ROWS), codecs, spans), places


def _place(chunk: Struct, place: int, length: int) -> tuple[int, int]:
    return (_value(chunk, place), _value(chunk, length)) if place in chunk else (0, 0)


def _moved_group(
    group: StoredGroup, shift: int, number: int, places: tuple[Iterator[int], Iterator[int]]
) -> bytes:
    """Return what a footer says of a row group, with other places."""
    struct, _ = read_struct(group.footer)
    bounds, pages = places
    for chunk in _elements(struct, _CHUNKS):
        meta = _value(chunk, _CHUNK_META)
        _move(meta, _DATA_PLACE, shift)
        _move(meta, _DICTIONARY_PLACE, shift)
        _move(chunk, _CHUNK_PLACE, shift)
        for found, place, length in (
            (bounds, _BOUNDS_PLACE, _BOUNDS_LENGTH),
            (pages, _OFFSETS_PLACE, _OFFSETS_LENGTH),
        ):
            start, size = next(found), next(found)
            if size:
                chunk[place], chunk[length] = (I64, start), (I32, size)
    _move(struct, _GROUP_PLACE, shift)
    if _GROUP_NUMBER in struct:
        struct[_GROUP_NUMBER] = I16, number
    return write_struct(struct)


def _moved_pages(data: bytes, shift: int) -> bytes:
    offsets, _ = read_struct(data)
    for page in _elements(offsets, _PAGES):
        _move(page, _PAGE_PLACE, shift)
    return write_struct(offsets)


def _move(struct: Struct, field: int, shift: int) -> None:
    kind, place = struct.get(field, (I64, 0))
    if place:  # 0 is for unknown
        struct[field] = kind, place + shift


def _span(chunk: Struct) -> tuple[int, int]:
    """Return the place of a column's first byte in a row group, and the number of its bytes."""
    meta = _value(chunk, _CHUNK_META)
    if not _OF_CHUNKS.issuperset(chunk) or not _NOT_OF_META.isdisjoint(meta):
        raise ValueError("a column is in another file, encrypted, or has a Bloom filter")
    places = [_value(meta, field) for field in (_DATA_PLACE, _DICTIONARY_PLACE) if field in meta]
    return min(place for place in places if place), _value(meta, _NUM_BYTES)


def _elements(struct: Struct, field: int) -> list[Any]:
    found: list[Any] = _value(struct, field)[1]
    return found


def _value(struct: Struct, field: int) -> Any:
    return struct[field][1]
