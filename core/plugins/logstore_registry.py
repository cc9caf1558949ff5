"""Which LogStore serves a path: conf keys, entry points, one instance each (spec 3.2).

1. `spark.delta.logStore.class` names one store for every path,
   `spark.delta.logStore.<scheme>.impl` one for one URL scheme, each with or without `spark.`. Both
   kinds together are an error, and so are two spellings of one key that differ; the former is
   checked first.
2. Without a key that applies, the entry-point group `optimist.logstores.schemes` gives the
   scheme's default; a path without a scheme is a `file` path.
3. A scheme without a default goes to the store named `fsspec`, which then says what it is missing.

A value is a short name (group `optimist.logstores`), a Python path (`package.module:Class` or
`package.module.Class`), or the name of Delta's Java class (group `optimist.logstores.java`).

A store is built with those options that concern stores, see `STORE_OPTION_PREFIXES`, and shared by
all who come with the same ones.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from optimist.core.errors import ConfigError
from optimist.core.logstore import LogStore
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

__all__ = ["STORE_OPTION_PREFIXES", "StoreChoice", "choose_store", "find_store"]

_NAMES = "optimist.logstores"
_SCHEMES = "optimist.logstores.schemes"
_JAVA = "optimist.logstores.java"
_JAVA_PACKAGE = "io.delta.storage."
_OLD_JAVA_PACKAGE = "org.apache.spark.sql.delta.storage."
_FALLBACK = "fsspec"

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
    """The store that serves a path under these options.

    Threads may call this together; all who give the same path scheme and the same store options
    get the same instance.

    Raises:
        ConfigError: See `choose_store`; or the class cannot be imported, is no LogStore, or cannot
            be built.
    """
    relevant = relevant_options(options)
    return _STORES.get(scheme_of(path), path, relevant)


def choose_store(path: str, options: Mapping[str, str] = MappingProxyType({})) -> StoreChoice:
    """Which store class serves a path, without importing it.

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
        f"There is no store for {scheme}: paths. Name one with spark.delta.logStore.{scheme}.impl.",
        kind="OPTIMIST_UNKNOWN_SCHEME",
        scheme=scheme,
    )


@dataclass(frozen=True, slots=True)
class _StoreKeys:
    """The keys that choose a store, each as (key as given, value)."""

    for_class: tuple[str, str] | None
    by_scheme: Mapping[str, tuple[str, str]]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> _StoreKeys:
        class_keys = [
            (key, value.strip())
            for key, value in options.items()
            if key.removeprefix("spark.") == _CLASS_KEY
        ]
        scheme_keys = [
            (match["scheme"].lower(), (key, value.strip()))
            for key, value in options.items()
            if (match := _SCHEME_KEY.fullmatch(key.removeprefix("spark.")))
        ]
        # The order of the two checks is Delta's.
        _refuse_conflict(class_keys, scheme_keys)
        by_scheme: dict[str, tuple[str, str]] = {}
        for scheme, entry in scheme_keys:
            _refuse_inconsistent(by_scheme.setdefault(scheme, entry), entry)
        for entry in class_keys:
            _refuse_inconsistent(class_keys[0], entry)
        return cls(class_keys[0] if class_keys else None, by_scheme)


def _refuse_conflict(
    class_keys: list[tuple[str, str]], scheme_keys: list[tuple[str, tuple[str, str]]]
) -> None:
    if not class_keys or not scheme_keys:
        return
    schemes = sorted(key for _, (key, _) in scheme_keys)
    raise ConfigError(
        f"{class_keys[0][0]} names one store for every path and {', '.join(schemes)} another for "
        "one scheme; they can't both be set. Remove the one or the other.",
        kind="DELTA_INVALID_LOGSTORE_CONF",
        class_keys=tuple(key for key, _ in class_keys),
        scheme_keys=tuple(schemes),
    )


def _refuse_inconsistent(first: tuple[str, str], second: tuple[str, str]) -> None:
    if first[1] == second[1]:
        return
    raise ConfigError(
        f"{first[0]}={first[1]} and {second[0]}={second[1]} are two spellings of one key "
        "and differ. Set one of them, or both to the same value.",
        kind="DELTA_INCONSISTENT_LOGSTORE_CONFS",
        keys=(first[0], second[0]),
    )


def _named_store(key: str, value: str) -> StoreChoice:
    java_name = value.replace(_OLD_JAVA_PACKAGE, _JAVA_PACKAGE)
    if java_name.startswith(_JAVA_PACKAGE) and ":" not in value:
        java = entry_point(_KIND, _JAVA, java_name)
        if java is None:
            raise _no_counterpart(key, value)
        return from_entry_point(java, f"conf key {key}={value}")
    return choose_by_name(_KIND, key, value)


def _no_counterpart(key: str, value: str) -> ConfigError:
    return ConfigError(
        f"{key}={value} is a Java class that has no counterpart here. Those that have one: "
        f"{known_names(_JAVA)}. Short names: {known_names(_NAMES)}.",
        kind="OPTIMIST_UNSUPPORTED_LOGSTORE",
        key=key,
        value=value,
    )


class _StoreCache:
    """Stores by scheme and by class, with their options; the longest unused is forgotten."""

    def __init__(self) -> None:
        # Reentrant: a store may look for the store that it wraps.
        self._lock = threading.RLock()
        self._stores: OrderedDict[tuple[object, ...], LogStore] = OrderedDict()

    def get(self, scheme: str, path: str, relevant: tuple[tuple[str, str], ...]) -> LogStore:
        by_scheme = ("scheme", scheme, relevant)
        with self._lock:
            store = self._stores.get(by_scheme)
            if store is None:
                store = self._of_class(choose_store(path, dict(relevant)), relevant)
                self._stores[by_scheme] = store
            self._stores.move_to_end(by_scheme)
            while len(self._stores) > _MAX_STORES:
                self._stores.popitem(last=False)
            return store

    def _of_class(self, choice: StoreChoice, relevant: tuple[tuple[str, str], ...]) -> LogStore:
        by_class = ("class", choice.class_path, relevant)
        store = self._stores.get(by_class)
        if store is None:
            store = build(_KIND, choice, MappingProxyType(dict(relevant)))
            self._stores[by_class] = store
        if choice.reason not in store.chosen_because:
            store.chosen_because += (choice.reason,)
        self._stores.move_to_end(by_class)
        return store


_STORES = _StoreCache()
