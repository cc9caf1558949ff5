"""One name for each table's place, however its path is spelled.

Handles, leases and the entries of an arbiter are kept by the place of a table, so each place must
have one name. Two spellings under two names are two tables, both of which can win one version. So
all callers ask this module.

This module resolves `.` and `..` as text, as Hadoop does. If they stayed in a URL, they would mean
one thing to a store, another to Hadoop, and a third to an HTTP client, which resolves them in the
complete URL, with the container's name.
"""

from __future__ import annotations

import os

from optimist.core.errors import UsageError
from optimist.core.paths import normalize, scheme_of, split_url, strip_file_scheme, without_dots
from optimist.core.plugins.logstore import LogStore

__all__ = ["ensure_possible", "other_spellings", "place_of", "unambiguous"]

_CHAIN = "::"
_DOTS = (".", "..")


def place_of(path: str, store: LogStore) -> str:
    """Return the one name of the place that a path means. The store can open it, too.

    Args:
        path: A path in any spelling.
        store: The store that serves it.

    Raises:
        UsageError: The path names no table's place (kind `OPTIMIST_NO_TABLE_PATH`).
        ConfigError: The store does not serve the path.
    """
    resolved = store.resolve_path(unambiguous(path))
    if scheme_of(resolved) in ("", "file"):
        # Once more, because a store of the user's own may return paths unchanged.
        return os.path.realpath(strip_file_scheme(resolved))
    if _CHAIN in resolved:
        return resolved
    return store.data_origin(resolved).url_of(resolved) or resolved


def other_spellings(path: str, store: LogStore, *, name: str) -> tuple[str, ...]:
    """Return the other names of a path's place, for callers that do not ask `place_of`.

    Args:
        path: The path as the user wrote it. It may be one of the names.
        store: The store that serves it.
        name: The right name, which the result leaves out.
    """
    given = normalize(path)
    known = () if _CHAIN in given else store.data_origin(given).spellings_of(given)
    return tuple(each for each in dict.fromkeys((*known, given)) if each != name)


def unambiguous(path: str) -> str:
    """Return the path without trailing slashes, and a URL without `.` and `..` as well.

    On this machine the operating system resolves dots, because it follows links before them.

    Raises:
        UsageError: See `ensure_possible`.
    """
    ensure_possible(path)
    given = normalize(path)
    if not _has_dots(given):
        return given
    return without_dots(given) or given


def ensure_possible(path: str) -> None:
    """Refuse a URL that different engines take for different places.

    Raises:
        UsageError: The URL names a host of local files, its dots lead out of the store, or dots
            stand for a bucket (kind `OPTIMIST_NO_TABLE_PATH`).
    """
    problem = _problem_of(path)
    if problem:
        raise UsageError(
            f"The path {path!r} can't be a table's: {problem}. Nothing was read or written. Give "
            "the table's directory, as a local path or as a URL.",
            kind="OPTIMIST_NO_TABLE_PATH",
            path=path,
        )


def _problem_of(path: str) -> str:
    scheme, authority, _ = split_url(path)
    if scheme == "file" and authority:
        return f"a file: URL has no host ({authority}); write file:///"
    if authority.partition("@")[0] in _DOTS:
        return "dots alone name no bucket, container or host"
    if _has_dots(path) and _CHAIN in path:
        return "a chain of drivers must not have . or .. in it"
    if _has_dots(path) and without_dots(path) is None:
        return "its .. lead out of the bucket, container or file system"
    return ""


def _has_dots(path: str) -> bool:
    scheme, _, rest = split_url(path)
    return scheme not in ("", "file") and any(part in _DOTS for part in rest.split("/"))
