"""The options of a table's handle, as callers give them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from optimist.core.errors import ConfigError
from optimist.core.errors.argument_types import ensure_mapping, wrong_type
from optimist.core.errors.foreign_text import shown
from optimist.core.secrets import Options

__all__ = ["LAST_COMMIT_VERSION", "ensure_for_handle", "options_given"]

LAST_COMMIT_VERSION = "spark.databricks.delta.lastCommitVersionInSession"
"""The key under which a session is told the version of its last commit. It is no option."""

_OF_ONE_CALL = {
    "versionasof": "snapshot(version=...)",
    "timestampasof": "snapshot(timestamp=...)",
    "readchangefeed": "changes(...)",
    "readchangedata": "changes(...)",
    "startingversion": "changes(starting_version=...) or follow(starting_version=...)",
    "startingtimestamp": "changes(starting_timestamp=...) or follow(starting_timestamp=...)",
    "endingversion": "changes(ending_version=...)",
    "endingtimestamp": "changes(ending_timestamp=...)",
}
"""Options of one read on Spark, in lower case, with the methods of a handle that read so."""


def options_given(options: Mapping[str, str] | None) -> Options:
    """Return a caller's options, whose values no crash report shows.

    Raises:
        ArgumentTypeError: They are no mapping from texts (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if options is None:
        return Options()
    ensure_mapping(options, "options", "a dict of keys and values, both of them text")
    for key, value in options.items():
        if not isinstance(value, Hashable):
            raise wrong_type(f"options, key {shown(key)},", value, "text")
    return Options(options)


def ensure_for_handle(options: Options) -> None:
    """Refuse options that ask for one version or for changes.

    A handle reads the newest version, so to ignore them would give other rows than asked for.

    Raises:
        ConfigError: There is such an option (kind `OPTIMIST_UNKNOWN_OPTION`).
    """
    for key in options:
        method = _OF_ONE_CALL.get(key.lower())
        if method is not None:
            raise ConfigError(
                f"The option {shown(key)} belongs to one read, and a handle has no such option. "
                f"Nothing was read. Open the table without it, and call {method}.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=key,
            )
