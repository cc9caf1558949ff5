"""Objects of ours that the JVM holds and compares; a proxy must bring along the methods for it."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

__all__ = ["JavaIdentity"]

_NUMBERS = itertools.count(1)


class JavaIdentity:
    """The methods of Java's `Object`. Two proxies are equal to Java if their keys are.

    Args:
        key: What the object is to Java; by default something that no other object has.
    """

    def __init__(self, key: str | None = None) -> None:
        self._java_key = f"optimist-object-{next(_NUMBERS)}" if key is None else key

    def toString(self) -> str:
        """The key; by it Python finds an object again."""
        return self._java_key

    def hashCode(self) -> int:
        """Equal keys, equal hashes."""
        return zlib.crc32(self._java_key.encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Whether the keys are equal; `other` arrives as a Java object, never as ours."""
        return other is not None and str(other.toString()) == self._java_key
