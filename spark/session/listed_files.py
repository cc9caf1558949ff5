"""The files that Spark reads because the log of one of our tables names them.

It is used only after a read has failed: Spark's error gives a path, but not whose file it is.
"""

from __future__ import annotations

import weakref
from typing import Protocol
from urllib.parse import unquote

from optimist.core.errors import OptimistError
from optimist.core.forking import ForkSafeLock

__all__ = ["ListsFiles", "is_listed", "remember_listing"]

_LOCK = ForkSafeLock()
_LISTINGS: weakref.WeakSet[ListsFiles] = weakref.WeakSet()


class ListsFiles(Protocol):
    """An object that gives Spark the files of a scan."""

    def names(self, path: str) -> bool:
        """Check whether a path belongs to one of its files."""
        ...


def remember_listing(listing: ListsFiles) -> None:
    """Ask this listing, too, as long as it is in use."""
    with _LOCK:
        _LISTINGS.add(listing)


def is_listed(path: str) -> bool:
    """Check whether one of our scans that is still in use reads the file.

    Args:
        path: The path in Spark's error, plain or percent-encoded.
    """
    with _LOCK:
        listings = list(_LISTINGS)
    return any(
        _is_named_by(listing, text) for text in {path, unquote(path)} for listing in listings
    )


def _is_named_by(listing: ListsFiles, path: str) -> bool:
    try:
        return listing.names(path)
    except OptimistError:
        return False  # unknown: Spark's own error is true in any case
