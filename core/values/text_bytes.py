"""The bytes of an Arrow column of texts, for much faster searches than one per text."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["buffer_of", "bytes_of"]


def bytes_of(texts: pa.StringArray) -> bytes:
    """Return the bytes of the texts, one after the other.

    A null gives no bytes, or arbitrary ones.
    """
    return bytes(buffer_of(texts))


def buffer_of(texts: pa.StringArray) -> pa.Buffer:
    """Return the same bytes without a copy."""
    _, offsets, data = texts.buffers()
    if data is None or len(texts) == 0:
        return pa.py_buffer(b"")
    ends = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, offsets], offset=texts.offset)
    start, end = ends[0].as_py(), ends[-1].as_py()
    return data.slice(start, end - start)
