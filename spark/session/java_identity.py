"""Objects of ours that the JVM holds: each equals only itself."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

__all__ = ["JavaIdentity"]

_NUMBERS = itertools.count(1)


class JavaIdentity:
    """The methods of Java's `Object`, which a proxy has to bring along."""

    def __init__(self) -> None:
        self._token = f"optimist-object-{next(_NUMBERS)}"

    def toString(self) -> str:
        """The object's name, which no other has; by it Python finds the object again."""
        return self._token

    def hashCode(self) -> int:
        """One object, one hash."""
        return zlib.crc32(self._token.encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Whether the other is this object; it arrives as a Java object, never as ours."""
        return other is not None and str(other.toString()) == self._token
