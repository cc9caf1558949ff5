"""Refuses a listing that is out of order.

The newest version of a table is where its listing ends. A name that comes too late, or too early to
be asked for, would make another version the newest one, and its number would be given out again.
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
    """What a store lists, as long as its names come in the order of their characters.

    Args:
        found: Objects as the store lists them, page after page.
        name_of: Their names.
        path: What is listed, for the message.
        endpoint: Who lists it.
        remedy: What to do where it comes in no order.

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
