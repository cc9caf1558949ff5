"""Ends a listing that goes in circles: a page that names a token which has been followed already.

A store, or a cache before it, that repeats a page with its token would be listed for ever, and a
wait without end is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from optimist.core.errors import StorageError

__all__ = ["PageTokens"]


class PageTokens:
    """The tokens of one listing.

    Args:
        path: What is listed, for the message.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._followed: set[str] = set()

    def follow(self, token: object) -> str:
        """The token of the next page, of which there must be one.

        Raises:
            StorageError: There is none, or it leads back (kind `OPTIMIST_BROKEN_LISTING`).
        """
        if not isinstance(token, str) or not token:
            raise self._broken("says that there is more, and not where")
        if token in self._followed:
            raise self._broken("leads back to a page that was read already")
        self._followed.add(token)
        return token

    def ensure_below(self, prefix: str, names: Iterable[str]) -> None:
        """Refuse a page of another listing.

        Raises:
            StorageError: It names an object elsewhere (kind `OPTIMIST_BROKEN_LISTING`).
        """
        if not all(name.startswith(prefix) for name in names):
            raise self._broken("names objects of another listing")

    def _broken(self, how: str) -> StorageError:
        return StorageError(
            f"Cannot list {self._path}: a page of the store's listing {how}. Run the operation "
            "again; if it stays so, the server, or a cache before it, is at fault.",
            kind="OPTIMIST_BROKEN_LISTING",
            path=self._path,
            retryable=True,
        )
