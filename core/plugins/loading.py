"""Classes that a conf names: by short name or Python path, imported on demand, built once checked.

Stores, arbiters and leases are all found here, so that one set of rules and messages holds for
them: a short name is an entry point, a class of the user's own is `package.module:Class`, and a
missing SDK becomes the `pip install` line that mends it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optimist.core.errors import ConfigError, OptimistError

__all__ = [
    "STORE_OPTION_PREFIXES",
    "ClassChoice",
    "PluginKind",
    "build",
    "choose_by_name",
    "entry_point",
    "from_entry_point",
    "known_names",
    "options_under",
    "relevant_options",
]

STORE_OPTION_PREFIXES = (
    "delta.logStore.",
    "delta.enableFastS3AListFrom",
    "dfs.",
    "fs.",
    "hadoop.",
    "io.delta.storage.",
    "optimist.store.",
)
"""Options that stores, arbiters and leases see, each with or without `spark.` before it; two paths
whose options differ elsewhere share them."""

_PYTHON_PATH = re.compile(r"(?P<module>\w+(?:\.\w+)*)[:.](?P<name>\w+(?:\.\w+)*)")


@dataclass(frozen=True, slots=True)
class ClassChoice:
    """Which class serves, and why.

    Attributes:
        class_path: `package.module:Class`.
        reason: Why this one: the conf key and its value, or the default that applied.
        requirement: What pip installs for it (`optimist[s3]`), where its entry point says so.
    """

    class_path: str
    reason: str
    requirement: str | None = None


@dataclass(frozen=True, slots=True)
class PluginKind:
    """One plug point: its contract, where its short names live, and the kinds of its errors.

    Attributes:
        noun: What the contract is called in messages, `LogStore`.
        contract: The class that every plug-in subclasses.
        group: The entry-point group of its short names.
        ambiguous: Kind: several packages claim one name.
        unknown: Kind: a value names nothing.
        not_a: Kind: the class is not of the contract, or leaves parts of it out.
        not_built: Kind: the constructor raised.
        not_imported: Kind: the class could not be imported.
    """

    noun: str
    contract: type[Any]
    group: str
    ambiguous: str
    unknown: str
    not_a: str
    not_built: str
    not_imported: str


def relevant_options(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The options that plug-ins see, sorted, so that equal ones are equal keys of a cache."""
    return tuple(
        sorted(
            (key, value)
            for key, value in options.items()
            if key.removeprefix("spark.").startswith(STORE_OPTION_PREFIXES)
        )
    )


def options_under(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The options whose key starts with a prefix, with or without `spark.`; the prefix is cut off.

    Raises:
        ConfigError: The two spellings of an option differ.
    """
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


def choose_by_name(kind: PluginKind, key: str, value: str) -> ClassChoice:
    """The class that a conf value names: a short name, `package.module:Class`, or with a dot.

    Raises:
        ConfigError: It names nothing, or several packages claim the name.
    """
    reason = f"conf key {key}={value}"
    short = None if ":" in value else entry_point(kind, kind.group, value)
    if short is not None:
        return from_entry_point(short, reason)
    python_path = _PYTHON_PATH.fullmatch(value)
    if python_path is None:
        raise ConfigError(
            f"{key}={value} names no {kind.noun}. Known short names: {known_names(kind.group)}. "
            "A class of your own is named package.module:Class.",
            kind=kind.unknown,
            key=key,
            value=value,
        )
    return ClassChoice(f"{python_path['module']}:{python_path['name']}", reason)


def known_names(group: str) -> str:
    """The names of an entry-point group, for messages."""
    return ", ".join(sorted({entry.name for entry in importlib.metadata.entry_points(group=group)}))


def entry_point(kind: PluginKind, group: str, name: str) -> importlib.metadata.EntryPoint | None:
    """The entry point of a name, or None.

    Raises:
        ConfigError: Several installed packages claim it for different classes.
    """
    found = list(importlib.metadata.entry_points(group=group, name=name))
    if len({entry.value for entry in found}) > 1:
        targets = ", ".join(sorted({entry.value for entry in found}))
        raise ConfigError(
            f"Several installed packages claim the {kind.noun} {name!r}: {targets}. "
            "Uninstall one, or name the class itself, as package.module:Class, in the conf.",
            kind=kind.ambiguous,
            name=name,
        )
    return found[0] if found else None


def from_entry_point(entry: importlib.metadata.EntryPoint, reason: str) -> ClassChoice:
    """The choice that an entry point stands for; its extras say what it needs installed."""
    requirement = None
    if entry.extras:
        package = entry.dist.name if entry.dist is not None else "optimist"
        requirement = f"{package}[{','.join(entry.extras)}]"
    return ClassChoice(f"{entry.module}:{entry.attr}", reason, requirement)


def build(kind: PluginKind, choice: ClassChoice, options: Mapping[str, str]) -> Any:
    """Import the class and call it with the options.

    Returns:
        An instance of `kind.contract`.

    Raises:
        ConfigError: It can't be imported, is not of the contract, or can't be built.
    """
    plugin_class = _import_class(kind, choice)
    try:
        return plugin_class(options)
    except OptimistError:
        raise  # it says already what is wrong, and in its own words
    except Exception as error:  # a class of the user's own may raise anything
        raise _cannot_use(
            kind,
            choice,
            f"could not be built: its constructor raised {type(error).__name__}. "
            "It is called with one argument, the options",
            error_kind=kind.not_built,
        ) from error


def _import_class(kind: PluginKind, choice: ClassChoice) -> type[Any]:
    module_name, _, name = choice.class_path.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part, None)
    except ModuleNotFoundError as error:
        raise _not_installed(kind, choice, module_name, error) from error
    except Exception as error:  # a module of the user's own may raise anything
        raise _cannot_use(
            kind,
            choice,
            f"could not be imported: {type(error).__name__}: {error}",
            error_kind=kind.not_imported,
        ) from error
    if found is None:
        raise _cannot_use(
            kind,
            choice,
            f"could not be imported: module {module_name} has no {name}",
            error_kind=kind.not_imported,
        )
    return _ensure_of_contract(kind, choice, found)


def _ensure_of_contract(kind: PluginKind, choice: ClassChoice, found: object) -> type[Any]:
    if not isinstance(found, type) or not issubclass(found, kind.contract):
        contract = f"{kind.contract.__module__}.{kind.contract.__qualname__}"
        raise _cannot_use(kind, choice, f"is not a subclass of {contract}", error_kind=kind.not_a)
    plugin_class: type[Any] = found
    if inspect.isabstract(plugin_class):
        missing = ", ".join(sorted(plugin_class.__abstractmethods__))
        raise _cannot_use(kind, choice, f"does not implement {missing}", error_kind=kind.not_a)
    return plugin_class


def _not_installed(
    kind: PluginKind, choice: ClassChoice, module_name: str, error: ModuleNotFoundError
) -> ConfigError:
    if choice.requirement is not None:
        return _cannot_use(
            kind,
            choice,
            f"needs a package that is not installed ({error.name}). "
            f"Run: pip install '{choice.requirement}'",
            error_kind="OPTIMIST_MISSING_PACKAGE",
        )
    # Its own module is missing, or one that it imports.
    own = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
    remedy = "Is it on the Python path of the driver?" if own else "Install it."
    return _cannot_use(
        kind,
        choice,
        f"could not be imported: there is no module {error.name}. {remedy}",
        error_kind=kind.not_imported,
    )


def _cannot_use(
    kind: PluginKind, choice: ClassChoice, problem: str, *, error_kind: str
) -> ConfigError:
    stop = "" if problem.endswith(("?", ".", "'")) else "."
    return ConfigError(
        f"The {kind.noun} {choice.class_path} ({choice.reason}) {problem}{stop}",
        kind=error_kind,
        class_path=choice.class_path,
        reason=choice.reason,
    )
