"""The options of Spark's writers as `write` takes them."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.spark.commands.write_options import WRITE_OPTIONS
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES, PROPERTY_PREFIX

__all__ = ["write_options"]

_KNOWN = {name.lower(): name for name in WRITE_OPTIONS}
_NOT_BUILT: Mapping[str, str | None] = {
    "replaceon": None,
    "replaceusing": None,
    "targetalias": None,
    "datachange": "true",
    "writepartitioncolumns": "false",
}
"""Options of Delta that would be ignored, and the value of each that asks for nothing."""


def write_options(given: Mapping[str, str]) -> dict[str, object]:
    """The options that `write` takes, in its spelling; Delta ignores others, and so do we.

    Raises:
        UsageError: An option of Delta is not built yet.
    """
    options: dict[str, object] = {}
    for key, value in given.items():
        folded = key.lower()
        if folded in _NOT_BUILT and value.lower() != _NOT_BUILT[folded]:
            raise not_built_yet(
                f"The option {key}",
                "Leave it out; rows can be replaced by replaceWhere and MERGE INTO.",
            )
        if folded in _KNOWN:
            options[_KNOWN[folded]] = value
        elif key.startswith((*FILESYSTEM_PREFIXES, PROPERTY_PREFIX)):
            options[key] = value
    return options
