"""Hadoop's `FileStatus` of many files in wire form, encoded by column for Spark.

A `FileStatus` per file over py4j costs a third of a millisecond each. Hadoop's `ArrayWritable`
reads any number of them from one buffer: a count, then per file a length and a `FileStatusProto`.
Varints may be padded to a fixed width, so Arrow computes each number's bytes for all files
together.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.spark.session.jvm import Jvm

__all__ = ["encode_statuses", "file_statuses"]

_FILE = b"\x08\x02"
_SIZE, _MTIME, _PATH = b"\x18", b"\x38", b"\x12"
_REST = (
    b"\x22\x03\x08\xa4\x03"  # permission rw-r--r--
    b"\x2a\x00\x32\x00"  # owner and group: nobody asks
    b"\x40\x00\x50\x01"  # access time, replication
    b"\x58\x80\x80\x80\x40"  # block size: 128 MiB
)
_VARINT_WIDTH = 8  # 56 bits: enough for any size and any time in milliseconds


def file_statuses(jvm: Jvm, paths: pa.Array, sizes: pa.Array, mtimes_ms: pa.Array) -> Any:
    """Return the files as a Scala `Seq[FileStatusWithMetadata]`, in order.

    Args:
        jvm: The session's handles.
        paths: Full paths as Hadoop's `Path` takes them, not percent-encoded.
        sizes: Bytes.
        mtimes_ms: Modification times in epoch milliseconds.
    """
    array = jvm.root.org.apache.hadoop.io.ArrayWritable(
        jvm.java_class("org.apache.hadoop.fs.FileStatus")
    )
    data = encode_statuses(paths, sizes, mtimes_ms)
    stream = jvm.root.java.io.ByteArrayInputStream(data)
    array.readFields(jvm.root.java.io.DataInputStream(stream))
    pairs = jvm.array_seq(array.get()).zipAll(jvm.nil, None, jvm.empty_map)
    return pairs.map(jvm.sources.FileStatusWithMetadata.tupled())


def encode_statuses(paths: pa.Array, sizes: pa.Array, mtimes_ms: pa.Array) -> bytes:
    """Return the buffer that `ArrayWritable.readFields` reads for these files."""
    texts = pc.cast(pc.cast(paths, pa.large_string()), pa.large_binary())
    lengths = pc.cast(pc.binary_length(texts), pa.uint64())
    numbers = 3 * _VARINT_WIDTH
    fixed = len(_FILE + _SIZE + _MTIME + _REST + _PATH) + numbers
    joined = pc.binary_join_element_wise(
        _encode_big_endian(pc.add(lengths, pa.scalar(fixed, pa.uint64()))),
        _binary_scalar(_FILE + _SIZE),
        _encode_varints(sizes),
        _binary_scalar(_MTIME),
        _encode_varints(mtimes_ms),
        _binary_scalar(_REST + _PATH),
        _encode_varints(lengths),
        texts,
        _binary_scalar(b""),  # the separator
    )
    return len(paths).to_bytes(4, "big") + _data_of(joined)


def _binary_scalar(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.large_binary())


def _byte_at(values: pa.Array, shift: int, mask: int) -> pa.Array:
    shifted = pc.shift_right(values, pa.scalar(shift, pa.uint64()))
    return pc.bit_wise_and(shifted, pa.scalar(mask, pa.uint64()))


def _from_bytes(parts: list[pa.Array], width: int) -> pa.Array:
    """Join byte k of every value, for each k, to binary values in little-endian order."""
    moved = [
        pc.shift_left(part, pa.scalar(8 * position, pa.uint64()))
        for position, part in enumerate(parts)
    ]
    words = reduce(pc.bit_wise_or, moved)
    words = words if width == _VARINT_WIDTH else pc.cast(words, pa.uint32())
    fixed = pa.Array.from_buffers(pa.binary(width), len(words), [None, words.buffers()[1]])
    return pc.cast(fixed, pa.large_binary())


def _encode_varints(values: pa.Array) -> pa.Array:
    """Return Protobuf varints, padded with continuation bits to one width."""
    unsigned = pc.cast(values, pa.uint64())
    groups = [_byte_at(unsigned, 7 * index, 0x7F) for index in range(_VARINT_WIDTH)]
    more = pa.scalar(0x80, pa.uint64())
    return _from_bytes([*(pc.bit_wise_or(group, more) for group in groups[:-1]), groups[-1]], 8)


def _encode_big_endian(values: pa.Array) -> pa.Array:
    return _from_bytes([_byte_at(values, shift, 0xFF) for shift in (24, 16, 8, 0)], 4)


def _data_of(array: pa.Array) -> bytes:
    if len(array) == 0:
        return b""
    offsets = memoryview(array.buffers()[1]).cast("q")
    start, end = offsets[array.offset], offsets[array.offset + len(array)]
    return bytes(array.buffers()[2].slice(start, end - start))
