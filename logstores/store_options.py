"""The options of one store: the keys `optimist.store.<name>.<option>`, with or without `spark.`."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.errors import ConfigError
from optimist.core.options import STORE_PREFIX

__all__ = ["ensure_no_options", "own_options"]


def own_options(options: Mapping[str, str], name: str) -> dict[str, str]:
    """The options given to the store of this short name, without their prefix.

    Raises:
        ConfigError: The two spellings of an option differ.
    """
    prefix = f"{STORE_PREFIX}{name}."
    found: dict[str, str] = {}
    for key, value in options.items():
        bare = key.removeprefix("spark.")
        if not bare.startswith(prefix):
            continue
        if found.setdefault(bare.removeprefix(prefix), value) != value:
            raise ConfigError(
                f"{bare} and spark.{bare} are two spellings of one option and differ. Keep one.",
                kind="OPTIMIST_CONTRADICTING_OPTIONS",
                keys=(bare, f"spark.{bare}"),
            )
    return found


def ensure_no_options(options: Mapping[str, str], name: str) -> None:
    """Refuse whatever was set for a store that has no options.

    Raises:
        ConfigError: There is such a key.
    """
    for option in own_options(options, name):
        raise ConfigError(
            f"Unknown option {STORE_PREFIX}{name}.{option}: this store has no options. Remove it.",
            kind="OPTIMIST_UNKNOWN_OPTION",
            key=f"{STORE_PREFIX}{name}.{option}",
        )
