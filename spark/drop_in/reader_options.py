"""The options of Spark's reader that a read of a Delta table knows; others are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimist.spark.commands.change_feed import CHANGE_OPTIONS
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES

__all__ = ["chosen_options"]

_KNOWN = [name.lower() for name in ("versionAsOf", "timestampAsOf", *CHANGE_OPTIONS)]


def chosen_options(given: Mapping[str, str]) -> dict[str, Any]:
    """The options that concern the version, the changes or the file system.

    Args:
        given: All options, in the user's spelling. Delta ignores those that it does not know.
    """
    return {
        key: value
        for key, value in given.items()
        if key.lower() in _KNOWN or key.startswith(FILESYSTEM_PREFIXES)
    }
