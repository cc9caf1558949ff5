"""Paths of tables and files: URLs or plain local paths, always as text with `/`.

A path is kept as it was written, without trailing slashes, and the store decides its meaning. (The
path of a local table is made absolute before that, see `table_path`.) Names of log files need no
escaping. `add.path` is a URI reference relative to the table (spec 10.2);
`optimist.core.data.storage.data_paths` turns it into a path, and decides which paths may be opened.
"""

from __future__ import annotations

import re

__all__ = [
    "LOG_DIRECTORY",
    "join",
    "name_of",
    "normalize",
    "parent_of",
    "scheme_of",
    "split_url",
    "strip_file_scheme",
    "with_authority",
    "with_file_scheme",
    "without_dots",
]

LOG_DIRECTORY = "_delta_log"
"""The name of the directory in a table that holds its log."""
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(?=/|[^/\\]*://)")


def scheme_of(path: str) -> str:
    """Return the URL scheme in lower case, or `""` for a plain path."""
    match = _SCHEME.match(path)
    return match.group(1).lower() if match else ""


def normalize(path: str) -> str:
    """Return the path without trailing slashes.

    A bare root keeps its slash.
    """
    stripped = path.rstrip("/")
    return stripped if stripped and not stripped.endswith(":") else path


def join(parent: str, *names: str) -> str:
    """Join a parent and names with single slashes."""
    return "/".join((parent.rstrip("/"), *names))


def name_of(path: str) -> str:
    """Return the last component of a path."""
    return path.rstrip("/").rpartition("/")[2]


def parent_of(path: str) -> str:
    """Return everything before the last component of a path."""
    return path.rstrip("/").rpartition("/")[0]


def strip_file_scheme(path: str) -> str:
    """Return `/a` for `file:/a`, `file:///a` and `/a`.

    Other paths come back unchanged.
    """
    if scheme_of(path) != "file":
        return path
    return "/" + path.split(":", 1)[1].lstrip("/")


def with_file_scheme(path: str) -> str:
    """Return `file:/a` for `/a`, as Hadoop spells it.

    Other paths come back unchanged.
    """
    return path if scheme_of(path) else f"file:{path}"


def split_url(path: str) -> tuple[str, str, str]:
    """Split into the scheme in lower case, the authority, and the rest.

    The authority is the text between `//` and the next slash. It is empty for `scheme:/path`. For a
    plain path the scheme is empty, too.
    """
    scheme = scheme_of(path)
    if not scheme:
        return "", "", path
    rest = path[len(scheme) + 1 :]
    if not rest.startswith("//"):
        return scheme, "", rest
    authority, slash, key = rest[2:].partition("/")
    return scheme, authority, slash + key


def with_authority(path: str) -> str:
    """Return `memory:///a` for `memory:/a`.

    Other paths come back unchanged.

    fsspec reads a URL without `//` as a local path, in a directory called `memory:`.
    """
    scheme, authority, rest = split_url(path)
    if not scheme or authority or not rest.startswith("/"):
        return path
    return f"{scheme}://{rest}"


def without_dots(path: str) -> str | None:
    """Resolve `.` and `..` in a path, or return None if it climbs above the root.

    Every reader opens this path. Dots left in it would mean one thing to a disk, another to Hadoop,
    and a third to an HTTP client.
    """
    scheme, _, rest = split_url(path)
    parts: list[str] = []
    for part in rest.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    head = path[: len(path) - len(rest)] if scheme else ""
    return head + "/" + "/".join(parts)
