"""Finding, importing, checking and building of the classes that a conf names.

This module loads stores, arbiters and leases, so that the same rules and messages hold for all. A
conf names an entry point by its short name, and a user's own class as `package.module:Class`. The
error for a missing SDK gives the `pip install` line that fixes it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimist.core.errors import ConfigError, OptimistError
from optimist.core.secrets import Options, Secret

__all__ = [
    "STORE_OPTION_PREFIXES",
    "ClassChoice",
    "PluginKind",
    "build",
    "choose_by_name",
    "entry_point",
    "from_entry_point",
    "known_names",
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
"""The prefixes of the options that stores, arbiters and leases see, with or without `spark.`. Two
paths share one store even if their other options differ."""

_OF_AN_EXTRA = re.compile(r"(?P<package>[^;\s]+)\s*;\s*extra == ['\"](?P<extra>[^'\"]+)['\"]")
"""A requirement of an extra, in a package's metadata: `boto3>=1.36; extra == "s3"`."""
_PYTHON_PATH = re.compile(r"(?P<module>\w+(?:\.\w+)*)[:.](?P<name>\w+(?:\.\w+)*)")


@dataclass(frozen=True, slots=True)
class ClassChoice:
    """The chosen class, and the reason for the choice.

    Attributes:
        class_path: The class, as `package.module:Class`.
        reason: The conf key and its value, or the default that applied.
        requirement: The packages that pip must install for it (`'boto3>=1.36'`), if its entry point
            has extras.
    """

    class_path: str
    reason: str
    requirement: str | None = None


@dataclass(frozen=True, slots=True)
class PluginKind:
    """One plug point: its contract, the group of its short names, and the kinds of its errors.

    Attributes:
        noun: The contract's name in messages, for example `LogStore`.
        contract: The class that every plug-in subclasses.
        group: The entry-point group of its short names.
        ambiguous: The error kind when several packages claim one name.
        unknown: The error kind when a value names no class.
        not_a: The error kind when the class does not implement the whole contract.
        not_built: The error kind when the constructor raised.
        not_imported: The error kind when the class could not be imported.
    """

    noun: str
    contract: type[Any]
    group: str
    ambiguous: str
    unknown: str
    not_a: str
    not_built: str
    not_imported: str


def relevant_options(options: Mapping[str, str]) -> Options:
    """Return the options that plug-ins see, as a hashable value for cache keys."""
    return Options(
        {
            key: value
            for key, value in options.items()
            if key.removeprefix("spark.").startswith(STORE_OPTION_PREFIXES)
        }
    )


def choose_by_name(kind: PluginKind, key: str, value: Secret[str]) -> ClassChoice:
    """Return the class that a conf value names: short name, `package.module:Class` or dotted.

    If the value has none of these forms, the error does not quote it: it may be a secret that was
    meant for another key.

    Raises:
        ConfigError: The value names no class, or several packages claim the name.
    """
    choice = _choose_by_value(kind, key, value.reveal())
    if choice is None:
        raise ConfigError(
            f"The value of {key} does not name a known {kind.noun}. Known short names: "
            f"{known_names(kind.group)}. A class of your own is named package.module:Class.",
            kind=kind.unknown,
            key=key,
        )
    return choice


def _choose_by_value(kind: PluginKind, key: str, value: str) -> ClassChoice | None:
    reason = f"conf key {key}={value}"
    short = None if ":" in value else entry_point(kind, kind.group, value)
    if short is not None:
        return from_entry_point(short, reason)
    python_path = _PYTHON_PATH.fullmatch(value)
    if python_path is None:
        return None
    return ClassChoice(f"{python_path['module']}:{python_path['name']}", reason)


def known_names(group: str) -> str:
    """Return the names of an entry-point group, for messages."""
    return ", ".join(sorted({entry.name for entry in importlib.metadata.entry_points(group=group)}))


def entry_point(kind: PluginKind, group: str, name: str) -> importlib.metadata.EntryPoint | None:
    """Return the entry point of a name, or None.

    Raises:
        ConfigError: Several installed packages claim the name for different classes.
    """
    found = list(importlib.metadata.entry_points(group=group, name=name))
    if len({entry.value for entry in found}) > 1:
        targets = ", ".join(sorted({entry.value for entry in found}))
        raise ConfigError(
            f"The {kind.noun} {name!r} is claimed by several installed packages: {targets}. "
            "Uninstall all but one, or name the class itself, as package.module:Class, in the "
            "conf.",
            kind=kind.ambiguous,
            name=name,
        )
    return found[0] if found else None


def from_entry_point(entry: importlib.metadata.EntryPoint, reason: str) -> ClassChoice:
    """Choose an entry point's class. Its extras name the packages that it needs."""
    requirement = _pip_requirement(entry) if entry.extras else None
    return ClassChoice(f"{entry.module}:{entry.attr}", reason, requirement)


def _pip_requirement(entry: importlib.metadata.EntryPoint) -> str:
    """Return the packages of an entry point's extras, as arguments of `pip install`.

    The arguments name the packages and not the extra, because pip may not find the package that has
    the extras.
    """
    lines = (entry.dist.requires if entry.dist is not None else None) or []
    matches = (_OF_AN_EXTRA.fullmatch(line) for line in lines)
    packages = [match["package"] for match in matches if match and match["extra"] in entry.extras]
    if packages:
        return " ".join(f"'{package}'" for package in dict.fromkeys(packages))
    name = entry.dist.name if entry.dist is not None else "optimist"
    return f"'{name}[{','.join(entry.extras)}]'"


def build(kind: PluginKind, choice: ClassChoice, options: Mapping[str, str]) -> Any:
    """Import the class and call it with the options.

    Returns:
        An instance of `kind.contract`.

    Raises:
        ConfigError: The class can't be imported, does not implement the contract, or can't be
            built.
    """
    plugin_class = _import_class(kind, choice)
    try:
        return plugin_class(options)
    except OptimistError:
        raise  # the error already says what is wrong
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
            f"could not be imported on {_this_process()}: {type(error).__name__}: {error}",
            error_kind=kind.not_imported,
        ) from error
    if found is None:
        raise _cannot_use(
            kind,
            choice,
            f"could not be imported on {_this_process()}: module {module_name} has no {name}",
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
            f"needs a package that is not installed on {_this_process()}: {error.name}. "
            f"Run: pip install {choice.requirement}",
            error_kind="OPTIMIST_MISSING_PACKAGE",
        )
    # Either the class's own module is missing, or a module that it imports.
    own = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
    remedy = "Put it on that process's Python path." if own else "Install it there."
    return _cannot_use(
        kind,
        choice,
        f"could not be imported on {_this_process()}: the module {error.name} does not "
        f"exist there. {remedy}",
        error_kind=kind.not_imported,
    )


def _this_process() -> str:
    """Name this machine and process: Spark's Python workers import plug-ins, too."""
    return f"machine {platform.node()}, in process {os.getpid()} ({Path(sys.argv[0]).name})"


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
