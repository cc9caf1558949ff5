"""The search for the arbiter and the lease that a conf names (docs/locks.md).

The keys are `spark.optimist.store.arbiter` and `spark.optimist.store.lease`, each with or without
`spark.`. The value is a short name (entry-point groups `optimist.arbiters` and `optimist.leases`)
or the Python path of a user's own class (`package.module:Class`). Without the key there is no
arbiter or lease.

An instance gets the options that concern stores, and all callers with the same such options share
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from optimist.core.errors import ConfigError
from optimist.core.forking import ForkSafeLock
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import keys_by_name
from optimist.core.plugins.arbiter import Arbiter
from optimist.core.plugins.lease import Lease
from optimist.core.plugins.loading import (
    ClassChoice,
    PluginKind,
    build,
    choose_by_name,
    relevant_options,
)
from optimist.core.secrets import Options, Secret

__all__ = [
    "ARBITER_KEY",
    "LEASE_KEY",
    "choose_lock",
    "find_arbiter",
    "find_lease",
    "needed_arbiter",
]

ARBITER_KEY = STORE_PREFIX + "arbiter"
LEASE_KEY = STORE_PREFIX + "lease"

_MAX_INSTANCES = 64


def _lock_kind(noun: str, contract: type[Any], group: str) -> PluginKind:
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
    ARBITER_KEY: _lock_kind("Arbiter", Arbiter, "optimist.arbiters"),
    LEASE_KEY: _lock_kind("Lease", Lease, "optimist.leases"),
}
# Reentrant, because the constructor of an arbiter may look for another that it wraps.
_BUILDING = ForkSafeLock()


def find_arbiter(
    options: Mapping[str, str] = MappingProxyType({}), *, default: str | None = None
) -> Arbiter | None:
    """Return the arbiter that `optimist.store.arbiter` names.

    Args:
        options: A plain mapping. Every option that concerns stores reaches the arbiter.
        default: The short name or Python path to use if the key is absent.

    Returns:
        The one instance for these options, or None without a key and a default.

    Raises:
        ConfigError: See `choose_lock`; or the class can't be imported, is not an Arbiter, or can't
            be built.
    """
    options = relevant_options(options)  # rebound, so that no crash report shows what was given
    found: Arbiter | None = _find(ARBITER_KEY, options, default)
    return found


def needed_arbiter(options: Mapping[str, str], *, only: str | None = None) -> Arbiter:
    """Return the arbiter of a store that needs one.

    Args:
        options: See `find_arbiter`.
        only: The short name of the arbiter, if the store's class works with just one. The function
            then ignores the key, which may be set for stores of other schemes.

    Raises:
        ConfigError: See `find_arbiter`; or no arbiter is named (kind `OPTIMIST_NO_ARBITER`).
    """
    options = relevant_options(options)  # as in `find_arbiter`
    if only is not None:
        keys = (ARBITER_KEY, f"spark.{ARBITER_KEY}")
        options = Options({key: options[key] for key in options if key not in keys})
    found = find_arbiter(options, default=only)
    if found is None:
        raise ConfigError(
            "The store needs an arbiter, and none is named. Nothing was written. Set "
            f"spark.{ARBITER_KEY} to dynamodb, redis, sql, or a class of your own as "
            "package.module:Class.",
            kind="OPTIMIST_NO_ARBITER",
            key=ARBITER_KEY,
        )
    return found


def find_lease(options: Mapping[str, str] = MappingProxyType({})) -> Lease | None:
    """Return the lease that `optimist.store.lease` names, or None without the key.

    Raises:
        ConfigError: See `choose_lock`; or the class can't be imported, is not a Lease, or can't be
            built.
    """
    options = relevant_options(options)  # as in `find_arbiter`
    found: Lease | None = _find(LEASE_KEY, options, None)
    return found


def choose_lock(
    key: str, options: Mapping[str, str], *, default: str | None = None
) -> ClassChoice | None:
    """Return the class that `ARBITER_KEY` or `LEASE_KEY` names, without importing it.

    Raises:
        ConfigError: Two spellings of the key differ (kind `OPTIMIST_CONTRADICTING_OPTIONS`), a
            value names no class (`OPTIMIST_UNKNOWN_LOCK`), or several packages claim it
            (`OPTIMIST_AMBIGUOUS_LOCK`).
    """
    spellings = {key: key, f"spark.{key}": key}
    given = keys_by_name(options, spellings.get).get(key)
    if given is not None:
        return choose_by_name(_KINDS[key], given, Secret(options[given].strip()))
    return choose_by_name(_KINDS[key], key, Secret(default)) if default is not None else None


def _find(key: str, options: Options, default: str | None) -> Any:
    choice = choose_lock(key, options, default=default)
    if choice is None:
        return None
    with _BUILDING:
        return _instance(key, choice, options)


@lru_cache(maxsize=_MAX_INSTANCES)
def _instance(key: str, choice: ClassChoice, relevant: Options) -> Any:
    return build(_KINDS[key], choice, relevant)
