"""Which files Spark reads because the log of one of our tables names them.

Asked only after a read has failed: an error of Spark's tells a path, and not whose file it is.
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
    """What gives Spark the files of a scan."""

    def names(self, path: str) -> bool:
        """Whether a path is that of one of its files."""
        ...


def remember_listing(listing: ListsFiles) -> None:
    """Ask this listing, too, as long as it is in use."""
    with _LOCK:
        _LISTINGS.add(listing)


def is_listed(path: str) -> bool:
    """Whether a scan of ours that is still in use reads the file.

    Args:
        path: As Spark's error tells it, plain or percent-encoded.
    """
    with _LOCK:
        listings = list(_LISTINGS)
    return any(_names(listing, text) for text in {path, unquote(path)} for listing in listings)


def _names(listing: ListsFiles, path: str) -> bool:
    try:
        return listing.names(path)
    except OptimistError:
        return False  # it can't be told, and Spark's own error is true in any case
