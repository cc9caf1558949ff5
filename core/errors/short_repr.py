"""The `repr` of values that users hold: what tells them apart, on a line or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from optimist.core.errors.foreign_text import quoted, shown

__all__ = ["REPR_LIMIT", "path_in_repr", "short_repr"]

REPR_LIMIT = 200
"""How many characters the `repr` of a value of ours has, at most."""

_FIELD_LIMIT = 80
_PATH_LIMIT = 120
_MANY = 3


def short_repr(value: Any) -> str:
    """Return the `repr` of a dataclass without what has its default, cut to `REPR_LIMIT`.

    Set it as `__repr__ = short_repr`. Texts are cut and have no secrets; a long list, a mapping or
    a table is shown as its length.
    """
    name = type(value).__name__
    facts: list[str] = []
    left = REPR_LIMIT - len(name) - len("(, ...)")
    for each in fields(value):
        held = getattr(value, each.name)
        if not each.repr or _is_default(held, each.default):
            continue
        fact = f"{each.name}={_shortened(held)}"
        left -= len(fact) + len(", ")
        if left < 0:
            facts.append("...")
            break
        facts.append(fact)
    return f"{name}({', '.join(facts)})"


def path_in_repr(path: str) -> str:
    """Return a table's path for a `repr`: in quotes, cut, and without passwords."""
    return quoted(path, _PATH_LIMIT)


def _is_default(held: object, default: object) -> bool:
    return default is not MISSING and type(held) is type(default) and held == default


def _shortened(held: object) -> str:
    if isinstance(held, str):
        return quoted(held, _FIELD_LIMIT)
    if hasattr(held, "num_rows"):
        return f"<{held.num_rows} rows>"
    if isinstance(held, Mapping | list | tuple) and len(held) > _MANY:
        return f"<{len(held)} items>"
    return shown(repr(held), _FIELD_LIMIT)
