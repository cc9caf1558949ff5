"""Which version of which table a scan reads, and an alias that says so where nothing else does.

A server of Spark Connect explains the plan behind a view by names alone: an alias on each scan is
all that a client can read there. One data source serves all versions of all tables, since what is
registered with a session stays in the server's memory until the session ends.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from optimist.core.forking import ForkSafeLock

__all__ = ["ScannedTable", "is_scan_alias", "scan_alias", "sources_of_aliases"]

_PREFIX = "optimist_scan_"
_ALIAS = re.compile(
    rf"\b{_PREFIX}(?P<table>[0-9a-f]{{16}})_(?P<version>\d+)_(?P<how>asked|newest)\b"
)
_LOCK = ForkSafeLock()
_TABLES: dict[str, tuple[str, str]] = {}
"""Path and id of each table that was read, by the name that aliases have for it."""


@dataclass(frozen=True, slots=True)
class ScannedTable:
    """One scan inside a query.

    Attributes:
        path: The table's path.
        table_id: The table's id.
        version: The version it reads.
        is_time_travel: The version was asked for by name or time.
    """

    path: str
    table_id: str
    version: int
    is_time_travel: bool


def scan_alias(source: ScannedTable) -> str:
    """The alias of a scan, an identifier; this process knows what it means."""
    named = f"{source.path}\0{source.table_id}".encode()
    table = hashlib.sha256(named).hexdigest()[:16]
    with _LOCK:
        _TABLES[table] = (source.path, source.table_id)
    how = "asked" if source.is_time_travel else "newest"
    return f"{_PREFIX}{table}_{source.version}_{how}"


def is_scan_alias(name: str) -> bool:
    """Whether a name is the alias of a scan."""
    return _ALIAS.fullmatch(name) is not None


def sources_of_aliases(text: str) -> tuple[ScannedTable, ...]:
    """The scans whose aliases stand in a plan's text, each once."""
    with _LOCK:
        found = {
            ScannedTable(*_TABLES[match["table"]], int(match["version"]), match["how"] == "asked")
            for match in _ALIAS.finditer(text)
            if match["table"] in _TABLES
        }
    return tuple(sorted(found, key=lambda source: (source.path, source.version)))
