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

import importlib
import importlib.metadata
import inspect
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from optimist.core.errors import ConfigError, OptimistError
from optimist.core.logstore import LogStore
from optimist.core.paths import scheme_of

__all__ = ["STORE_OPTION_PREFIXES", "StoreChoice", "choose_store", "find_store"]

STORE_OPTION_PREFIXES = (
    "delta.logStore.",
    "delta.enableFastS3AListFrom",
    "dfs.",
    "fs.",
    "hadoop.",
    "io.delta.storage.",
    "optimist.store.",
)
"""Options that stores see, each with or without `spark.` before it; two paths whose options differ
elsewhere share a store."""

_NAMES = "optimist.logstores"
_SCHEMES = "optimist.logstores.schemes"
_JAVA = "optimist.logstores.java"
_JAVA_PACKAGE = "io.delta.storage."
_OLD_JAVA_PACKAGE = "org.apache.spark.sql.delta.storage."
_FALLBACK = "fsspec"

_CLASS_KEY = "delta.logStore.class"
_SCHEME_KEY = re.compile(r"delta\.logStore\.(?P<scheme>.+)\.impl")
_PYTHON_PATH = re.compile(r"(?P<module>\w+(?:\.\w+)*)[:.](?P<name>\w+(?:\.\w+)*)")

_MAX_STORES = 64


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """Which class serves a path, and why.

    Attributes:
        class_path: `package.module:Class`.
        reason: Why this one: the conf key and its value, or the default that applied.
        requirement: What pip installs for it (`optimist[s3]`), where its entry point says so.
    """

    class_path: str
    reason: str
    requirement: str | None = None


def find_store(path: str, options: Mapping[str, str] = MappingProxyType({})) -> LogStore:
    """The store that serves a path under these options.

    Threads may call this together; all who give the same path scheme and the same store options
    get the same instance.

    Raises:
        ConfigError: See `choose_store`; or the class cannot be imported, is no LogStore, or cannot
            be built.
    """
    relevant = _relevant(options)
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
    default = _entry_point(_SCHEMES, scheme)
    if default is not None:
        return _from_entry_point(default, f"the default for scheme {scheme}")
    fallback = _entry_point(_NAMES, _FALLBACK)
    if fallback is not None:
        return _from_entry_point(fallback, f"scheme {scheme} has no default, so fsspec is asked")
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
    reason = f"conf key {key}={value}"
    python_path = _PYTHON_PATH.fullmatch(value)
    if ":" not in value:
        short = _entry_point(_NAMES, value)
        if short is not None:
            return _from_entry_point(short, reason)
        java_name = value.replace(_OLD_JAVA_PACKAGE, _JAVA_PACKAGE)
        java = _entry_point(_JAVA, java_name)
        if java is not None:
            return _from_entry_point(java, reason)
        if java_name.startswith(_JAVA_PACKAGE):
            raise _no_counterpart(key, value)
    if python_path is None:
        raise ConfigError(
            f"{key}={value} names no store. Known short names: {_known(_NAMES)}. "
            "A class of your own is named package.module:Class.",
            kind="OPTIMIST_UNKNOWN_LOGSTORE",
            key=key,
            value=value,
        )
    return StoreChoice(f"{python_path['module']}:{python_path['name']}", reason)


def _no_counterpart(key: str, value: str) -> ConfigError:
    return ConfigError(
        f"{key}={value} is a Java class that has no counterpart here. Those that have one: "
        f"{_known(_JAVA)}. Short names: {_known(_NAMES)}.",
        kind="OPTIMIST_UNSUPPORTED_LOGSTORE",
        key=key,
        value=value,
    )


def _known(group: str) -> str:
    return ", ".join(sorted({entry.name for entry in importlib.metadata.entry_points(group=group)}))


def _entry_point(group: str, name: str) -> importlib.metadata.EntryPoint | None:
    found = list(importlib.metadata.entry_points(group=group, name=name))
    if len({entry.value for entry in found}) > 1:
        targets = ", ".join(sorted({entry.value for entry in found}))
        raise ConfigError(
            f"Several installed packages claim the store {name!r}: {targets}. "
            "Uninstall one, or name the class itself in spark.delta.logStore.class or the scheme's "
            "key.",
            kind="OPTIMIST_AMBIGUOUS_LOGSTORE",
            name=name,
        )
    return found[0] if found else None


def _from_entry_point(entry: importlib.metadata.EntryPoint, reason: str) -> StoreChoice:
    requirement = None
    if entry.extras:
        package = entry.dist.name if entry.dist is not None else "optimist"
        requirement = f"{package}[{','.join(entry.extras)}]"
    return StoreChoice(f"{entry.module}:{entry.attr}", reason, requirement)


def _relevant(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted(
            (key, value)
            for key, value in options.items()
            if key.removeprefix("spark.").startswith(STORE_OPTION_PREFIXES)
        )
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
            store = _build(choice, MappingProxyType(dict(relevant)))
            self._stores[by_class] = store
        self._stores.move_to_end(by_class)
        return store


_STORES = _StoreCache()


def _build(choice: StoreChoice, options: Mapping[str, str]) -> LogStore:
    store_class = _import_store(choice)
    try:
        return store_class(options)
    except OptimistError:
        raise  # it says already what is wrong, and in the store's own words
    except Exception as error:  # a class of the user's own may raise anything
        raise _cannot_use(
            choice,
            f"could not be built: its constructor raised {type(error).__name__}. "
            "It is called with one argument, the options",
            kind="OPTIMIST_LOGSTORE_NOT_BUILT",
        ) from error


def _import_store(choice: StoreChoice) -> type[LogStore]:
    module_name, _, name = choice.class_path.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part, None)
    except ModuleNotFoundError as error:
        raise _not_installed(choice, module_name, error) from error
    except Exception as error:  # a module of the user's own may raise anything
        raise _cannot_use(
            choice,
            f"could not be imported: {type(error).__name__}: {error}",
            kind="OPTIMIST_LOGSTORE_NOT_IMPORTED",
        ) from error
    if found is None:
        raise _cannot_use(
            choice,
            f"could not be imported: module {module_name} has no {name}",
            kind="OPTIMIST_LOGSTORE_NOT_IMPORTED",
        )
    return _ensure_store_class(choice, found)


def _ensure_store_class(choice: StoreChoice, found: object) -> type[LogStore]:
    if not isinstance(found, type) or not issubclass(found, LogStore):
        raise _cannot_use(
            choice,
            "is not a subclass of optimist.core.logstore.LogStore",
            kind="OPTIMIST_NOT_A_LOGSTORE",
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise _cannot_use(choice, f"does not implement {missing}", kind="OPTIMIST_NOT_A_LOGSTORE")
    return found


def _not_installed(
    choice: StoreChoice, module_name: str, error: ModuleNotFoundError
) -> ConfigError:
    if choice.requirement is not None:
        return _cannot_use(
            choice,
            f"needs a package that is not installed ({error.name}). "
            f"Run: pip install '{choice.requirement}'",
            kind="OPTIMIST_MISSING_PACKAGE",
        )
    # Its own module is missing, or one that it imports.
    own = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
    remedy = "Is it on the Python path of the driver?" if own else "Install it."
    return _cannot_use(
        choice,
        f"could not be imported: there is no module {error.name}. {remedy}",
        kind="OPTIMIST_LOGSTORE_NOT_IMPORTED",
    )


def _cannot_use(choice: StoreChoice, problem: str, *, kind: str) -> ConfigError:
    stop = "" if problem.endswith(("?", ".", "'")) else "."
    return ConfigError(
        f"The LogStore {choice.class_path} ({choice.reason}) {problem}{stop}",
        kind=kind,
        class_path=choice.class_path,
        reason=choice.reason,
    )
