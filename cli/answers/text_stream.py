"""Writes columns of text to a stream of bytes, without a Python object for each row."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["bytes_of_texts", "write_lines"]

_TEXT = pa.large_string()


def write_lines(stream: BinaryIO, texts: pa.Array) -> None:
    """Write each text and a line end."""
    stream.write(bytes_of_texts(texts, "", "\n"))


def bytes_of_texts(texts: Any, before: str, after: str) -> memoryview:
    """Return all texts as one run of bytes, each between two fixed texts."""
    framed = pc.binary_join_element_wise(
        pa.scalar(before, _TEXT), texts, pa.scalar(after, _TEXT), pa.scalar("", _TEXT)
    )
    framed = framed.combine_chunks() if isinstance(framed, pa.ChunkedArray) else framed
    _, offsets, data = framed.buffers()
    if not len(framed) or data is None:
        return memoryview(b"")
    ends = pa.Array.from_buffers(pa.int64(), framed.offset + len(framed) + 1, [None, offsets])
    return memoryview(data)[ends[framed.offset].as_py() : ends[-1].as_py()]
