"""Options and texts that may hold secrets, kept so that no message or `repr` shows one.

Users put secrets under the right keys, and sometimes under wrong ones. So messages show only the
keys of options, never the values. A value that is known to be a secret is a `Secret` as soon as it
is read, and is revealed only in the call that needs it. Passwords and signatures are removed from
URLs before these get into an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

__all__ = ["Options", "Secret", "masked_repr", "revealed", "without_secrets"]

_Value = TypeVar("_Value")

_MASK = "***"
_PASSWORD = re.compile(r"(?<=://)([^\s/@:'\"]*):(?!\d{1,5}(?:[/?#,'\"]|\s|$))\S+(?=@)")
"""A password in a URL, up to the last @, but not a port.

Users write secrets that contain a slash or an @ without escapes.
"""
_LIKE_A_PORT = re.compile(r"\b((?:s3[an]?|https?)://[^\s/@:'\"]*):\d{1,5}/\S*(?=@(?!v?\d+\b))")
"""A secret that begins like a port and ends at an @ that is not followed by a table's version."""
_USER = re.compile(r"(?<=http://|ttps://)([^\s/@:'\"]+)(?=@)")
"""A token in the user's part of a URL. In other URLs that part is an Azure container."""
_SIGNED = re.compile(
    r"(?<![\w./-])(sig|signature|token|x-amz-[a-z-]+|x-goog-[a-z-]+)=[^&\s'\"]*", re.IGNORECASE
)
_HEADER = re.compile(r"\b(authorization:\s*\w+|bearer)\s+[^\s'\",;]{8,}", re.IGNORECASE)
_NAMED = re.compile(
    r"(?<![\w.-])(account_?key|shared_?access_?signature|access_?token|client_?secret"
    r"|secret_?(?:access_?)?key|password|pwd)=[^;&,\s'\"]+",
    re.IGNORECASE,
)
"""The secret parts of connection strings."""


class Secret(Generic[_Value]):
    """A value that is never shown: not by `repr`, `str` or `format`, nor as a local variable.

    Two secrets with the same value are equal. Pickling keeps the value, because executors need it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: _Value) -> None:
        self._value = value

    def reveal(self) -> _Value:
        """Return the value. Call this exactly where a driver takes it, without a variable."""
        return self._value

    def __repr__(self) -> str:
        return _MASK

    def __format__(self, format_spec: str) -> str:
        return _MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash(self._value)


class Options(Mapping[str, str]):
    """An immutable mapping of options whose `repr` shows the keys and no values.

    Args:
        values: The options; they are copied.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Options({', '.join(f'{key}={_MASK}' for key in sorted(self._values))})"


def revealed(secret: Secret[_Value] | None) -> _Value | None:
    """Return the value of a secret, or None if there is no secret."""
    return None if secret is None else secret.reveal()


def masked_repr(settings: Any) -> str:
    """Return the `repr` of a settings dataclass, with numbers and flags shown and texts masked.

    Even a region is masked: a user may have put a password there.
    """
    shown = (
        f"{each.name}={_shown_value(getattr(settings, each.name))}" for each in fields(settings)
    )
    return f"{type(settings).__qualname__}({', '.join(shown)})"


def without_secrets(text: str) -> str:
    """Mask passwords in URLs, signatures, tokens and headers of a text."""
    masked = _HEADER.sub(rf"\1 {_MASK}", text)
    if "://" not in text and "=" not in text:
        return masked
    masked = _PASSWORD.sub(rf"\1:{_MASK}", masked)
    masked = _LIKE_A_PORT.sub(rf"\1:{_MASK}", masked)
    masked = _USER.sub(_MASK, masked)
    for named in (_SIGNED, _NAMED):
        masked = named.sub(rf"\1={_MASK}", masked)
    return masked


def _shown_value(value: object) -> str:
    return repr(value) if value is None or isinstance(value, bool | int | float) else _MASK
