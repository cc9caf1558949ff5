"""A guard against endless listings, whose pages name a token that was followed already.

If a store, or a cache before it, repeated a page with its token, the listing would never end.
"""

from __future__ import annotations

from collections.abc import Iterable

from optimist.core.errors import StorageError

__all__ = ["PageTokens"]


class PageTokens:
    """The tokens of one listing.

    Args:
        path: The listed path, for the message.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._followed: set[str] = set()

    def follow(self, token: object) -> str:
        """Return the token of the next page, which must exist.

        Raises:
            StorageError: The token is missing, or leads back (kind `OPTIMIST_BROKEN_LISTING`).
        """
        if not isinstance(token, str) or not token:
            raise self._broken_listing("says that there is more, and not where")
        if token in self._followed:
            raise self._broken_listing("leads back to a page that was read already")
        self._followed.add(token)
        return token

    def ensure_below(self, prefix: str, names: Iterable[str]) -> None:
        """Refuse a page of another listing.

        Raises:
            StorageError: The page has an object of another prefix (kind `OPTIMIST_BROKEN_LISTING`).
        """
        if not all(name.startswith(prefix) for name in names):
            raise self._broken_listing("names objects of another listing")

    def _broken_listing(self, how: str) -> StorageError:
        return StorageError(
            f"Cannot list {self._path}: a page of the store's listing {how}. Run the operation "
            "again; if it stays so, the server, or a cache before it, is at fault.",
            kind="OPTIMIST_BROKEN_LISTING",
            path=self._path,
            retryable=True,
        )
