"""Which arbiter and which lease a conf names (design section 4): found here, kept elsewhere.

`spark.optimist.store.arbiter` and `spark.optimist.store.lease`, each with or without `spark.`, hold
a short name (entry-point groups `optimist.arbiters` and `optimist.leases`) or the Python path of a
class of the user's own (`package.module:Class`). Without the key there is none.

An instance is built with the options that concern stores, and shared by all who come with the same
ones.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from optimist.core.arbiter import Arbiter
from optimist.core.errors import ConfigError
from optimist.core.lease import Lease
from optimist.core.options import STORE_PREFIX
from optimist.core.plugins.loading import (
    ClassChoice,
    PluginKind,
    build,
    choose_by_name,
    relevant_options,
)

__all__ = ["ARBITER_KEY", "LEASE_KEY", "choose_lock", "find_arbiter", "find_lease"]

ARBITER_KEY = STORE_PREFIX + "arbiter"
LEASE_KEY = STORE_PREFIX + "lease"

_MAX_INSTANCES = 64


def _kind_of(noun: str, contract: type[Any], group: str) -> PluginKind:
    return PluginKind(
        noun=noun,
        contract=contract,
        group=group,
        ambiguous="OPTIMIST_AMBIGUOUS_LOCK",
        unknown="OPTIMIST_UNKNOWN_LOCK",
        not_a="OPTIMIST_NOT_A_LOCK",
        not_built="OPTIMIST_LOCK_NOT_BUILT",
        not_imported="OPTIMIST_LOCK_NOT_IMPORTED",
    )


_KINDS: Mapping[str, PluginKind] = {
    ARBITER_KEY: _kind_of("Arbiter", Arbiter, "optimist.arbiters"),
    LEASE_KEY: _kind_of("Lease", Lease, "optimist.leases"),
}
# Reentrant: an arbiter may look for the one that it wraps.
_BUILDING = threading.RLock()


def find_arbiter(
    options: Mapping[str, str] = MappingProxyType({}), *, default: str | None = None
) -> Arbiter | None:
    """The arbiter that `optimist.store.arbiter` names.

    Args:
        options: A plain mapping; every option that concerns stores reaches the arbiter.
        default: The short name or Python path that holds where the key is absent.

    Returns:
        The one instance for these options, or None where neither key nor default is there.

    Raises:
        ConfigError: See `choose_lock`; or the class can't be imported, is no Arbiter, or can't be
            built.
    """
    found: Arbiter | None = _find(ARBITER_KEY, options, default)
    return found


def find_lease(options: Mapping[str, str] = MappingProxyType({})) -> Lease | None:
    """The lease that `optimist.store.lease` names, or None without the key.

    Raises:
        ConfigError: See `choose_lock`; or the class can't be imported, is no Lease, or can't be
            built.
    """
    found: Lease | None = _find(LEASE_KEY, options, None)
    return found


def choose_lock(
    key: str, options: Mapping[str, str], *, default: str | None = None
) -> ClassChoice | None:
    """Which class `ARBITER_KEY` or `LEASE_KEY` stands for, without importing it.

    Raises:
        ConfigError: Two spellings of the key differ (kind `OPTIMIST_CONTRADICTING_OPTIONS`), a
            value names nothing (`OPTIMIST_UNKNOWN_LOCK`), or several packages claim it
            (`OPTIMIST_AMBIGUOUS_LOCK`).
    """
    spellings = ("spark." + key, key)
    given = [(name, options[name].strip()) for name in spellings if name in options]
    if len({value for _, value in given}) > 1:
        raise ConfigError(
            f"{key} and spark.{key} are two spellings of one option and differ. Keep one.",
            kind="OPTIMIST_CONTRADICTING_OPTIONS",
            keys=(key, f"spark.{key}"),
        )
    if given:
        return choose_by_name(_KINDS[key], *given[0])
    return choose_by_name(_KINDS[key], key, default) if default is not None else None


def _find(key: str, options: Mapping[str, str], default: str | None) -> Any:
    choice = choose_lock(key, options, default=default)
    if choice is None:
        return None
    with _BUILDING:
        return _instance(key, choice, relevant_options(options))


@lru_cache(maxsize=_MAX_INSTANCES)
def _instance(key: str, choice: ClassChoice, relevant: tuple[tuple[str, str], ...]) -> Any:
    return build(_KINDS[key], choice, MappingProxyType(dict(relevant)))
