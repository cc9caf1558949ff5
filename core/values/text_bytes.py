"""The bytes of an Arrow column of texts, for searches that are much faster than one per text."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["bytes_of"]


def bytes_of(texts: pa.StringArray) -> bytes:
    """The texts one after the other; of a null nothing, or what happens to stand in its place."""
    _, offsets, data = texts.buffers()
    if data is None or len(texts) == 0:
        return b""
    ends = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, offsets], offset=texts.offset)
    start, end = ends[0].as_py(), ends[-1].as_py()
    return bytes(data.slice(start, end - start))
