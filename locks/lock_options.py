"""The options of arbiters and leases, taken from a plain mapping and parsed one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping

from optimist.core.errors import ConfigError
from optimist.core.options import STORE_PREFIX, parse_bool
from optimist.core.plugins.loading import options_under

__all__ = ["OwnOptions", "invalid_option"]


class OwnOptions:
    """The keys `optimist.store.<room>.<option>`; each is taken once, what is left is an error.

    Args:
        options: Any mapping; keys of other prefixes are left alone.
        room: Which keys, for example `redis`.

    Raises:
        ConfigError: The two spellings of an option differ.
    """

    def __init__(self, options: Mapping[str, str], room: str) -> None:
        self._prefix = f"{STORE_PREFIX}{room}."
        self._left = options_under(options, self._prefix)
        self._known: list[str] = []

    def text(self, name: str) -> str | None:
        """The value without blanks around it; None where the key is absent."""
        self._known.append(name)
        value = self._left.pop(name, None)
        return None if value is None else value.strip()

    def flag(self, name: str, default: bool) -> bool:
        """`true` or `false`.

        Raises:
            ConfigError: It is neither.
        """
        text = self.text(name)
        if text is None:
            return default
        try:
            return parse_bool(text)
        except ValueError as error:
            raise invalid_option(self._prefix + name, text, str(error)) from None

    def seconds(self, name: str, default: float) -> float:
        """A number of seconds, not negative.

        Raises:
            ConfigError: It is no such number.
        """
        text = self.text(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            reason = "must be a number of seconds, not negative"
            raise invalid_option(self._prefix + name, text, reason)
        return value

    def ensure_all_taken(self) -> None:
        """Refuse what nobody asked for.

        Raises:
            ConfigError: There is a key that has no meaning.
        """
        for name in self._left:
            raise ConfigError(
                f"Unknown option {self._prefix}{name}. Known: {', '.join(sorted(self._known))}.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=self._prefix + name,
            )


def invalid_option(key: str, value: str, reason: str) -> ConfigError:
    """The error for a value that does not parse."""
    return ConfigError(
        f"The value {value!r} of {key} does not parse: {reason}.",
        kind="OPTIMIST_INVALID_OPTION",
        key=key,
    )
