"""Imports modules when they are first needed, so that `import optimist.core` stays light.

A child that is forked while another thread imports a module would wait for that import for ever:
the lock of the import is never released there. So whatever is imported later than at the start is
imported here, where a fork waits until the import has ended.

No module that is imported here may itself use such a name while it is imported, outside a function:
two threads that import both could then wait for each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from optimist.core.forking import NO_FORK_MEANWHILE

__all__ = ["import_by_need", "load_arrow", "names_by_need", "own_version"]


def import_by_need(module: str) -> ModuleType:
    """Import a module while no fork can happen."""
    with NO_FORK_MEANWHILE:
        return importlib.import_module(module)


def names_by_need(holder: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose names are imported on first use (PEP 562).

    Args:
        holder: The name of the module.
        modules: The names, each with the module that has it.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {holder!r} has no attribute {name!r}")
        return getattr(import_by_need(modules[name]), name)

    return find


@cache
def own_version() -> str:
    """Return the version of this package, or `unknown` if it is not installed."""
    metadata = import_by_need("importlib.metadata")
    try:
        return str(metadata.version("optimist"))
    except metadata.PackageNotFoundError:
        return "unknown"


def load_arrow() -> None:
    """Load what Arrow itself imports late: its execution engine for `group_by`, and pandas.

    Each handle of a table calls this when it is made, before any thread can work with it.
    """
    import_by_need("pyarrow.acero")
