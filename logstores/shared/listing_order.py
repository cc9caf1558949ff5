"""A check that a listing is in order.

A table's listing ends at its newest version. If a name comes too late, or before the start of the
listing, another version looks newest, and its number would be assigned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from optimist.core.errors import StorageError

__all__ = ["in_order"]

_Found = TypeVar("_Found")


def in_order(
    found: Iterable[_Found],
    name_of: Callable[[_Found], str],
    *,
    path: str,
    endpoint: str,
    remedy: str,
) -> Iterator[_Found]:
    """Yield a store's listing, as long as its names are in the order of their characters.

    Args:
        found: Objects as the store lists them, page after page.
        name_of: Returns an object's name.
        path: The listed path, for the message.
        endpoint: The store's endpoint.
        remedy: The advice if the listing is out of order.

    Raises:
        StorageError: A name comes after a larger one (kind `OPTIMIST_UNSORTED_LISTING`).
    """
    last = ""
    for each in found:
        name = name_of(each)
        if name < last:
            raise StorageError(
                f"Cannot list {path}: the store at {endpoint} does not list in the order of "
                f"names. {remedy}",
                kind="OPTIMIST_UNSORTED_LISTING",
                path=path,
                endpoint=endpoint,
                retryable=False,
            )
        last = name
        yield each
