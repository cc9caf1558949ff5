"""The identity of an open file, by which a file that has replaced it is recognised.

Writers of classic checkpoints replace each other's files. A size does not show it: the same rows in
another order may take as many bytes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Hashable
from typing import BinaryIO

__all__ = ["identity_of"]

_TAIL_BYTES = 8
"""The length of a Parquet file's footer, and the mark, at the end of the file."""


def identity_of(source: BinaryIO) -> Hashable:
    """Return a value that is equal whenever one file of a checkpoint is opened, and no other.

    It is what the store says of the file (see `LogStore.open_read`), or the bytes of a file in
    memory. Otherwise it is the file's footer.
    """
    told = getattr(getattr(source, "raw", source), "identity", "")
    if isinstance(told, str) and told:
        return told
    if isinstance(source, io.BytesIO):
        return hash(source.getvalue())
    size_bytes = source.seek(0, os.SEEK_END)
    source.seek(max(size_bytes - _TAIL_BYTES, 0))
    length = int.from_bytes(source.read(4), "little")
    source.seek(max(size_bytes - _TAIL_BYTES - length, 0))
    return size_bytes, hash(source.read())
