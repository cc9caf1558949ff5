"""Paths of tables and of files in them: URLs or plain local paths, always as text with `/`.

A path is kept as the user wrote it, less trailing slashes; what it means is the store's business.
Names of log files need no escaping. `add.path` is a URI reference relative to the table (spec
10.2);
`resolve_data_path` turns it into a path.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = [
    "join",
    "name_of",
    "normalize",
    "parent_of",
    "resolve_data_path",
    "scheme_of",
    "strip_file_scheme",
]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(?=/|[^/\\]*://)")


def scheme_of(path: str) -> str:
    """The URL scheme in lower case, or `""` for a plain path."""
    match = _SCHEME.match(path)
    return match.group(1).lower() if match else ""


def normalize(path: str) -> str:
    """The path without trailing slashes (a bare root keeps its slash)."""
    stripped = path.rstrip("/")
    return stripped if stripped and not stripped.endswith(":") else path


def join(parent: str, *names: str) -> str:
    """`parent/name/name...`, whatever slashes `parent` ends in."""
    return "/".join((parent.rstrip("/"), *names))


def name_of(path: str) -> str:
    """The final component."""
    return path.rstrip("/").rpartition("/")[2]


def parent_of(path: str) -> str:
    """Everything before the final component."""
    return path.rstrip("/").rpartition("/")[0]


def strip_file_scheme(path: str) -> str:
    """`file:/a`, `file:///a` and `/a` all mean `/a`; other paths come back as they are."""
    if scheme_of(path) != "file":
        return path
    return "/" + path.split(":", 1)[1].lstrip("/")


def resolve_data_path(table_path: str, reference: str) -> str:
    """The path of a data file from `add.path`: percent-decoded once, absolute URIs as they are."""
    decoded = unquote(reference)
    if scheme_of(decoded) or decoded.startswith("/"):
        return decoded
    return join(table_path, decoded)
