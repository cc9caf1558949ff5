"""The options of Spark's readers and writers, as `read` and `write` take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optimist.core.errors import UsageError
from optimist.spark.commands.reading.change_feed import CHANGE_OPTIONS
from optimist.spark.commands.writing.write_options import WRITE_OPTIONS
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES, PROPERTY_PREFIX

__all__ = ["only_path", "read_options", "schema_given", "write_options"]

_READ = {name.lower() for name in ("versionAsOf", "timestampAsOf", *CHANGE_OPTIONS)}
_WRITE = {name.lower(): name for name in WRITE_OPTIONS}


def read_options(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that concern the version, the changes or the file system.

    Args:
        given: All options, in the user's spelling. Delta ignores those that it does not know.
    """
    return {
        key: value
        for key, value in given.items()
        if key.lower() in _READ or key.startswith(FILESYSTEM_PREFIXES)
    }


def write_options(given: Mapping[str, str]) -> dict[str, object]:
    """Return the options that `write` takes, in its spelling, without others.

    Delta knows a name `writePartitionColumns`, too, but the table decides that, not the writer.
    """
    options: dict[str, object] = {}
    for key, value in given.items():
        folded = key.lower()
        if folded in _WRITE:
            options[_WRITE[folded]] = value
        elif key.startswith((*FILESYSTEM_PREFIXES, PROPERTY_PREFIX)):
            options[key] = value
    return options


def only_path(paths: Sequence[str]) -> str:
    """Return the one path that a reader or a writer was given.

    Raises:
        UsageError: There is none, or there are several (kind `OPTIMIST_NO_TABLE_PATH`).
    """
    if len(paths) != 1:
        raise UsageError(
            f"The format delta takes one path, not {len(paths)}. Nothing was read or written. Give "
            "the table's directory to load(...) or save(...), and read several tables one by one.",
            kind="OPTIMIST_NO_TABLE_PATH",
            path=", ".join(paths),
        )
    return str(paths[0])


def schema_given() -> UsageError:
    """Return the error for a reader with a schema."""
    return UsageError(
        "A Delta table has its schema in its log, so a read can't be given a schema. Nothing was "
        "read. Leave out schema(...), and select or cast the columns that you want.",
        kind="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
    )
