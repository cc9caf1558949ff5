"""The methods that the JVM needs to hold and compare our objects as proxies."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

__all__ = ["JavaIdentity"]

_NUMBERS = itertools.count(1)


class JavaIdentity:
    """The methods of Java's `Object`, by which proxies with equal keys are equal.

    Args:
        key: The object's identity for Java; by default a unique one.
    """

    def __init__(self, key: str | None = None) -> None:
        self._java_key = f"optimist-object-{next(_NUMBERS)}" if key is None else key

    def toString(self) -> str:
        """Return the key, by which Python finds an object again."""
        return self._java_key

    def hashCode(self) -> int:
        """Return the same hash for equal keys."""
        return zlib.crc32(self._java_key.encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Compare the keys, where `other` is always a Java object."""
        return other is not None and str(other.toString()) == self._java_key
