"""Partition values that are too long for a directory's name, on every plane (spec 10.2)."""

from __future__ import annotations

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown

__all__ = ["ensure_nameable", "too_long_name"]

_MOST_BYTES = 255
"""The longest name of a file or directory on disks and on HDFS."""


def ensure_nameable(path: str) -> None:
    """Refuse a path with a name that no file system of a disk can have.

    Raises:
        StorageError: The path has one (kind `OPTIMIST_INVALID_PATH`).
    """
    found = too_long_name(path)
    if found is not None:
        raise found


def too_long_name(path: str) -> StorageError | None:
    """Return the error for a path with too long a name, or None."""
    name = max(path.split("/"), key=_size)
    if _size(name) <= _MOST_BYTES:
        return None
    column, _, _ = name.partition("=")
    return StorageError(
        f"A value of the partition column {shown(column)} is too long: its directory {shown(name)} "
        f"would have a name of {_size(name)} bytes, and file systems allow {_MOST_BYTES}. Nothing "
        "was committed. Shorten the value, or partition by another column, such as a generated one "
        "with the first characters.",
        kind="OPTIMIST_INVALID_PATH",
        column=column,
        retryable=False,
    )


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))
