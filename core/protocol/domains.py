"""Whose a metadata domain is: the names of the system's have a prefix (spec 6.3)."""

from __future__ import annotations

__all__ = ["is_of_the_system"]

_PREFIX = "delta."


def is_of_the_system(domain: str) -> bool:
    """Whether the domain belongs to a feature, so that users may neither set nor remove it."""
    return domain.lower().startswith(_PREFIX)
