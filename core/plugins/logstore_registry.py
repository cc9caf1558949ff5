"""The search for the LogStore that serves a path, by conf keys and entry points (spec 3.2).

1. `spark.delta.logStore.class` names one store for every path, `spark.delta.logStore.<scheme>.impl`
   one for one URL scheme, each with or without `spark.`. Both kinds together are an error, and so
   are two spellings of one key that differ. The former is checked first.
2. Without a key that applies, the entry-point group `optimist.logstores.schemes` gives the scheme's
   default. A path without a scheme is a `file` path.
3. A scheme without a default goes to the store named `fsspec`, which reports what the scheme lacks.

A value is a short name (group `optimist.logstores`), a Python path (`package.module:Class` or
`package.module.Class`), or the name of Delta's Java class (group `optimist.logstores.java`).

A store gets the options that concern stores (`STORE_OPTION_PREFIXES`), and all callers with the
same such options share it.
"""

from __future__ import annotations

import importlib.util
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from optimist.core.errors import ConfigError
from optimist.core.forking import ForkSafeLock
from optimist.core.paths import scheme_of
from optimist.core.plugins.loading import (
    STORE_OPTION_PREFIXES,
    PluginKind,
    build,
    choose_by_name,
    entry_point,
    from_entry_point,
    known_names,
    relevant_options,
)
from optimist.core.plugins.loading import ClassChoice as StoreChoice
from optimist.core.plugins.logstore import LogStore
from optimist.core.secrets import Options, Secret

__all__ = ["STORE_OPTION_PREFIXES", "StoreChoice", "choose_store", "find_store"]

_NAMES = "optimist.logstores"
_SCHEMES = "optimist.logstores.schemes"
_JAVA = "optimist.logstores.java"
_JAVA_PACKAGE = "io.delta.storage."
_OLD_JAVA_PACKAGE = "org.apache.spark.sql.delta.storage."
_FALLBACK = "fsspec"

_JAVA_CLASS = re.compile(r"\w+(?:\.\w+){2,}")
"""A name of three parts or more, such as `io.delta.X`. A Python class may have such a name, too."""
_CLASS_KEY = "delta.logStore.class"
_SCHEME_KEY = re.compile(r"delta\.logStore\.(?P<scheme>.+)\.impl")

_MAX_STORES = 64

_KIND = PluginKind(
    noun="LogStore",
    contract=LogStore,
    group=_NAMES,
    ambiguous="OPTIMIST_AMBIGUOUS_LOGSTORE",
    unknown="OPTIMIST_UNKNOWN_LOGSTORE",
    not_a="OPTIMIST_NOT_A_LOGSTORE",
    not_built="OPTIMIST_LOGSTORE_NOT_BUILT",
    not_imported="OPTIMIST_LOGSTORE_NOT_IMPORTED",
)


def find_store(path: str, options: Mapping[str, str] = MappingProxyType({})) -> LogStore:
    """Return the store that serves a path under these options.

    Threads may call this together. Callers with the same path scheme and the same store options get
    the same instance.

    Raises:
        ConfigError: See `choose_store`; or the class cannot be imported, is not a LogStore, or
            cannot be built.
    """
    options = relevant_options(options)  # rebound, so that no crash report shows what was given
    return _STORES.get(scheme_of(path), path, options)


def choose_store(path: str, options: Mapping[str, str] = MappingProxyType({})) -> StoreChoice:
    """Return the store class that serves a path, without importing it.

    Raises:
        ConfigError: A class key and a scheme key are both set (kind
            `DELTA_INVALID_LOGSTORE_CONF`); two spellings of a key differ
            (`DELTA_INCONSISTENT_LOGSTORE_CONFS`); a value names no store
            (`OPTIMIST_UNKNOWN_LOGSTORE`), or a Delta class without a counterpart here
            (`OPTIMIST_UNSUPPORTED_LOGSTORE`).
    """
    keys = _StoreKeys.from_options(options)
    scheme = scheme_of(path) or "file"
    named = keys.for_class or keys.by_scheme.get(scheme)
    if named is not None:
        key, value = named
        return _named_store(key, value)
    default = entry_point(_KIND, _SCHEMES, scheme)
    if default is not None:
        return from_entry_point(default, f"the default for scheme {scheme}")
    fallback = entry_point(_KIND, _NAMES, _FALLBACK)
    if fallback is not None:
        return from_entry_point(fallback, f"scheme {scheme} has no default, so fsspec is asked")
    raise ConfigError(
        f"No store is known for {scheme}: paths. Nothing was read or written. Name one with "
        f"spark.delta.logStore.{scheme}.impl.",
        kind="OPTIMIST_UNKNOWN_SCHEME",
        scheme=scheme,
    )


_Named: TypeAlias = "tuple[str, Secret[str]]"


@dataclass(frozen=True, slots=True)
class _StoreKeys:
    """The conf keys that choose a store, each as (key as given, value)."""

    for_class: _Named | None
    by_scheme: Mapping[str, _Named]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> _StoreKeys:
        class_keys = [
            (key, Secret(options[key].strip()))
            for key in options
            if key.removeprefix("spark.") == _CLASS_KEY
        ]
        scheme_keys = [
            (match["scheme"].lower(), (key, Secret(options[key].strip())))
            for key in options
            if (match := _SCHEME_KEY.fullmatch(key.removeprefix("spark.")))
        ]
        # The order of the two checks is Delta's.
        _refuse_conflict(class_keys, scheme_keys)
        by_scheme: dict[str, _Named] = {}
        for scheme, entry in scheme_keys:
            _refuse_inconsistent(by_scheme.setdefault(scheme, entry), entry)
        for entry in class_keys:
            _refuse_inconsistent(class_keys[0], entry)
        return cls(class_keys[0] if class_keys else None, by_scheme)


def _refuse_conflict(class_keys: list[_Named], scheme_keys: list[tuple[str, _Named]]) -> None:
    if not class_keys or not scheme_keys:
        return
    schemes = sorted(key for _, (key, _) in scheme_keys)
    raise ConfigError(
        f"The conf key {class_keys[0][0]} names one store for every path, but {', '.join(schemes)} "
        "names one for a single scheme. Remove one of them.",
        kind="DELTA_INVALID_LOGSTORE_CONF",
        class_keys=tuple(key for key, _ in class_keys),
        scheme_keys=tuple(schemes),
    )


def _refuse_inconsistent(first: _Named, second: _Named) -> None:
    if first[1] == second[1]:
        return
    raise ConfigError(
        f"The conf keys {first[0]} and {second[0]} are two spellings of one key and have different "
        "values. Set only one of them, or both to the same value.",
        kind="DELTA_INCONSISTENT_LOGSTORE_CONFS",
        keys=(first[0], second[0]),
    )


def _named_store(key: str, value: Secret[str]) -> StoreChoice:
    return _java_store(key, value.reveal()) or choose_by_name(_KIND, key, value)


def _java_store(key: str, value: str) -> StoreChoice | None:
    if ":" in value:
        return None
    java = entry_point(_KIND, _JAVA, value.replace(_OLD_JAVA_PACKAGE, _JAVA_PACKAGE))
    if java is not None:
        return from_entry_point(java, f"conf key {key}={value}")
    if _JAVA_CLASS.fullmatch(value) and not _is_in_a_package(value):
        raise _no_counterpart(key, value)
    return None


def _is_in_a_package(value: str) -> bool:
    """Return whether the first part is an importable Python package, not a module such as `io`."""
    try:
        spec = importlib.util.find_spec(value.partition(".")[0])
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.submodule_search_locations is not None


def _no_counterpart(key: str, value: str) -> ConfigError:
    return ConfigError(
        f"The conf {key}={value} names neither a class on the driver's Python path nor a Java "
        "class that has a counterpart here. Java classes with a counterpart: "
        f"{known_names(_JAVA)}. Short names: {known_names(_NAMES)}. A Python class of your own is "
        "named package.module:Class.",
        kind="OPTIMIST_UNSUPPORTED_LOGSTORE",
        key=key,
        value=value,
    )


class _StoreCache:
    """An LRU cache of stores, by options and by scheme or class (schemes of one class share)."""

    def __init__(self) -> None:
        # Reentrant, because the constructor of a store may look for another that it wraps.
        self._lock = ForkSafeLock()
        self._stores: OrderedDict[tuple[object, ...], LogStore] = OrderedDict()

    def get(self, scheme: str, path: str, relevant: Options) -> LogStore:
        by_scheme = ("scheme", scheme, relevant)
        with self._lock:
            store = self._stores.get(by_scheme)
            if store is None:
                store = self._store_of_class(choose_store(path, relevant), relevant)
                self._stores[by_scheme] = store
            self._stores.move_to_end(by_scheme)
            while len(self._stores) > _MAX_STORES:
                self._stores.popitem(last=False)
            return store

    def _store_of_class(self, choice: StoreChoice, relevant: Options) -> LogStore:
        by_class = ("class", choice.class_path, relevant)
        store = self._stores.get(by_class)
        if store is None:
            store = build(_KIND, choice, relevant)
            self._stores[by_class] = store
        if choice.reason not in store.chosen_because:
            store.chosen_because += (choice.reason,)
        self._stores.move_to_end(by_class)
        return store


_STORES = _StoreCache()
