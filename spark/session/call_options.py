"""The options of a call as Spark takes them: names in any case, values as text or typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from optimist.core.errors import ConfigError
from optimist.core.secrets import Options

__all__ = ["FILESYSTEM_PREFIXES", "PROPERTY_PREFIX", "CallOptions"]

_Value = TypeVar("_Value")

FILESYSTEM_PREFIXES = ("fs.", "dfs.")
PROPERTY_PREFIX = "delta."


@dataclass(frozen=True, slots=True)
class CallOptions(Generic[_Value]):
    """The options of one call, sorted by their purpose.

    Attributes:
        named: Options that the call knows, in the call's spelling. Those given as None are left
            out.
        filesystem: Keys that start with `fs.` or `dfs.`.
        properties: Keys that start with `delta.`: properties for a table that the call makes.
    """

    named: Mapping[str, _Value]
    filesystem: Options
    properties: Mapping[str, str]

    @classmethod
    def sort(
        cls, given: Mapping[str, _Value], known: Sequence[str], *, takes_properties: bool
    ) -> CallOptions[_Value]:
        """Sort the options that a caller gave.

        Args:
            given: The options.
            known: The names of the call's own options.
            takes_properties: True if table properties may be among them.

        Raises:
            ConfigError: An unknown option (kind `OPTIMIST_UNKNOWN_OPTION`), or one in two spellings
                that differ (kind `OPTIMIST_CONTRADICTING_OPTIONS`).
        """
        by_folded = {name.lower(): name for name in known}
        prefixes = (*FILESYSTEM_PREFIXES, *([PROPERTY_PREFIX] if takes_properties else []))
        named: dict[str, _Value] = {}
        others: dict[str, str] = {}
        for key, value in given.items():
            name = by_folded.get(key.lower())
            if name is None and not key.startswith(prefixes):
                raise _unknown_option(key, known, prefixes)
            if value is None:
                continue
            if name is None:
                others[key] = _text(value)
            elif named.setdefault(name, value) != value:
                raise ConfigError(
                    f"The option {name} is given twice, with two values (upper and lower case are "
                    "the same). Nothing was written. Keep one of them.",
                    kind="OPTIMIST_CONTRADICTING_OPTIONS",
                    key=name,
                )
        return cls(
            named,
            Options({k: text for k, text in others.items() if k.startswith(FILESYSTEM_PREFIXES)}),
            {key: text for key, text in others.items() if key.startswith(PROPERTY_PREFIX)},
        )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown_option(key: str, known: Sequence[str], prefixes: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"The option {key} is unknown. Nothing was written. The known options are: "
        f"{', '.join(known)}, and keys that start with {' or '.join(prefixes)}.",
        kind="OPTIMIST_UNKNOWN_OPTION",
        key=key,
        known=tuple(known),
    )
