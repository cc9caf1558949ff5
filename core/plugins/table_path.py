"""The path of a table's directory, resolved once, when the table's handle is made.

A path on this machine becomes its absolute real path, and from then on the engine uses only that. A
later `chdir`, or a symbolic link that then points elsewhere, must not send half of a table to
another directory. Symbolic links and `..` are followed as the operating system does. `~` is an
ordinary character, as it is to Spark. Other URLs lose their `.` and `..` and otherwise stay the
same: the store knows their meaning, and `table_place` has one name for all spellings.
"""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.core.paths import scheme_of
from optimist.core.plugins.logstore import LogStore
from optimist.core.plugins.table_place import place_of, unambiguous
from optimist.core.values.unicode_text import ensure_unicode

__all__ = ["TablePath", "path_text", "resolve_table_path"]

TablePath: TypeAlias = "str | os.PathLike[str]"

_NOTHING_BEHIND_A_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//)?")
_RELATIVE_FILE_URL = re.compile(r"file:(?!/)", re.IGNORECASE)


def path_text(path: object, name: str = "path") -> str:
    """Return a path as text.

    Args:
        path: Text or a `pathlib.Path`.
        name: The name of the caller's argument, for the error.

    Raises:
        ArgumentTypeError: The path is neither.
        UsageError: The path holds half a character (kind `OPTIMIST_INVALID_TEXT`).
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"The argument {name} must be text or a pathlib.Path, found to be {type(path)}.",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument=name,
        )
    ensure_unicode(text)
    return text


def resolve_table_path(path: str, store: LogStore) -> str:
    """Return the path by which the engine opens all files of a table.

    Args:
        path: The path as the user wrote it.
        store: The store that serves it. It knows whether the path is local.

    Raises:
        UsageError: The path is empty, or can't be a table's (kind `OPTIMIST_NO_TABLE_PATH`).
        ConfigError: The store does not serve the path.
    """
    problem = _problem_of(path)
    if problem:
        raise UsageError(
            f"The path {path!r} can't be a table's: {problem}. Nothing was read or written. Give "
            "the table's directory, as a local path or as a URL.",
            kind="OPTIMIST_NO_TABLE_PATH",
            path=path,
        )
    given = unambiguous(path)
    place = place_of(given, store)
    return given if scheme_of(place) else place


def _problem_of(path: str) -> str:
    bare = path.strip()
    if not bare or _NOTHING_BEHIND_A_SCHEME.fullmatch(bare):
        return "it is empty"
    if "\0" in path:
        return "it has a character in it that no path may have"
    if _RELATIVE_FILE_URL.match(bare):
        return "a file: URL must have a slash after the colon"
    return ""
