"""The name `delta` for scripts that cannot be changed, and sessions that serve it.

`install` puts modules `delta`, `delta.tables`, `delta.exceptions` and `delta.pip_utils` into
`sys.modules`; they hold Optimist's own classes. From then on, each session that a builder makes is
enabled. `remove` undoes it. `install` refuses where the real package is: nobody must take one
engine for the other. `python -m optimist.spark script.py` does it for one run of a script.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from optimist import spark
from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import shown
from optimist.core.forking import ForkSafeLock
from optimist.core.imports import own_version
from optimist.spark import exceptions
from optimist.spark.drop_in.builder import serve_all_builders, serve_builders_no_more

__all__ = ["install", "remove"]

_ROOT = "delta"
_LOCK = ForkSafeLock()
_OURS: dict[str, ModuleType] = {}


def install() -> None:
    """Let `import delta` find Optimist, and enable sessions from builders (idempotent).

    A session that exists already is enabled when a builder returns it again.

    Raises:
        ConfigError: There is another package `delta`, such as delta-spark (kind
            `OPTIMIST_DELTA_PACKAGE_PRESENT`, field `place`). Nothing was changed.
    """
    with _LOCK:
        if sys.modules.get(_ROOT) is _OURS.get(_ROOT, _ROOT):
            return
        _ensure_free()
        for name, contents in _contents_of_modules().items():
            _OURS[name] = sys.modules[name] = _module(name, contents)
        for name, module in _OURS.items():
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(_OURS[parent], child, module)
        serve_all_builders()


def remove() -> None:
    """Undo `install`, if it was called.

    Scripts keep what they have imported or made.
    """
    with _LOCK:
        for name, module in _OURS.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        _OURS.clear()
        serve_builders_no_more()


def _ensure_free() -> None:
    loaded = sys.modules.get(_ROOT)
    spec = importlib.util.find_spec(_ROOT) if loaded is None else loaded.__spec__
    origin_path = getattr(loaded, "__file__", None) if spec is None else spec.origin
    if loaded is None and origin_path is None:
        return  # nothing, or a folder of that name without a package in it
    raise ConfigError(
        f"A package delta is installed already ({shown(origin_path or 'without a file')}). Nothing "
        "was changed: scripts that import delta still get that one. Uninstall it (delta-spark), "
        "or import from optimist.spark instead.",
        kind="OPTIMIST_DELTA_PACKAGE_PRESENT",
        place=origin_path,
    )


def _contents_of_modules() -> Mapping[str, Mapping[str, Any]]:
    """Return the modules and their contents."""
    conflicts = {name: getattr(exceptions, name) for name in exceptions.__all__}
    tables = {
        "DeltaTable": spark.DeltaTable,
        "DeltaMergeBuilder": spark.DeltaMergeBuilder,
        "DeltaOptimizeBuilder": spark.DeltaOptimizeBuilder,
        "DeltaTableBuilder": spark.DeltaTableBuilder,
        "IdentityGenerator": spark.IdentityGenerator,
    }
    configure = {"configure_spark_with_delta_pip": spark.configure_spark_with_delta_pip}
    whole = {"DeltaTable": spark.DeltaTable, **configure, "__version__": own_version()}
    return {
        _ROOT: whole,
        f"{_ROOT}.tables": tables,
        f"{_ROOT}.exceptions": conflicts,
        f"{_ROOT}.pip_utils": configure,
        f"{_ROOT}.connect": {"DeltaTable": spark.DeltaTable},
        f"{_ROOT}.connect.tables": tables,
        f"{_ROOT}.connect.exceptions": conflicts,
    }


def _module(name: str, contents: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, f"Optimist by the name of `{name}`; see `optimist.spark.compat`.")
    is_package = name in (_ROOT, f"{_ROOT}.connect")
    module.__spec__ = ModuleSpec(name, None, origin=__file__, is_package=is_package)
    if is_package:
        module.__path__ = []  # an unknown submodule is a ModuleNotFoundError
    vars(module).update(contents, __all__=sorted(contents))
    return module
