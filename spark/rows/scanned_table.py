"""The version and table that a scan reads, and an alias that names them in Spark's plans.

A Spark Connect server explains the plan of a view only by names, so a client can read only an alias
on each scan. One data source serves all versions of all tables, since a source that is registered
with a session stays in the server's memory until the session ends.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from optimist.core.forking import ForkSafeLock

__all__ = [
    "ScannedTable",
    "end_alias",
    "is_scan_alias",
    "remember_table",
    "scan_alias",
    "sources_of_aliases",
    "sources_of_unknown_query",
]

_PREFIX = "optimist_scan_"
_ALIAS = re.compile(
    rf"\b{_PREFIX}(?P<table>[0-9a-f]{{16}})_(?P<version>\d+)_(?P<how>asked|newest)\b"
)
_LOCK = ForkSafeLock()
_TABLES: dict[str, _ReadTable] = {}
"""The tables that were read, by the names that their aliases have."""


@dataclass(frozen=True, slots=True)
class ScannedTable:
    """One scan inside a query.

    Attributes:
        path: The table's path.
        table_id: The table's id.
        version: The version it reads.
        is_time_travel: The user chose the version, by number or time.
        is_assumed: The query's reads are unknown, so it is assumed to read this scan, too.
    """

    path: str
    table_id: str
    version: int
    is_time_travel: bool
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class _ReadTable:
    """A table, and the oldest and newest version that views may read."""

    path: str
    table_id: str
    oldest: int | None = None
    newest: int | None = None

    def read_at(self, version: int) -> _ReadTable:
        """Return the table after one of its versions was read."""
        known = [version, *(at for at in (self.oldest, self.newest) if at is not None)]
        return replace(self, oldest=min(known), newest=max(known))


def remember_table(path: str, table_id: str) -> str:
    """Remember a table, and return its name in aliases.

    This process can then read aliases of the table in views that other clients of the server made.
    """
    name_in_aliases = hashlib.sha256(f"{path}\0{table_id}".encode()).hexdigest()[:16]
    with _LOCK:
        _TABLES.setdefault(name_in_aliases, _ReadTable(path, table_id))
    return name_in_aliases


def scan_alias(source: ScannedTable) -> str:
    """Return the alias of a scan, an identifier that this process can then read."""
    table = remember_table(source.path, source.table_id)
    if not source.is_time_travel:
        with _LOCK:
            _TABLES[table] = _TABLES[table].read_at(source.version)
    how = "asked" if source.is_time_travel else "newest"
    return f"{_PREFIX}{table}_{source.version}_{how}"


def end_alias() -> str:
    """Return a scan-like alias of no table, which proves that the text before it is whole."""
    return f"{_PREFIX}{uuid.uuid4().hex[:16]}_0_asked"


def is_scan_alias(name: str) -> bool:
    """Check whether a name is the alias of a scan."""
    return _ALIAS.fullmatch(name) is not None


def sources_of_aliases(text: str) -> tuple[ScannedTable, ...]:
    """Return the scans whose aliases are in a plan's text, each once."""
    with _LOCK:
        known = dict(_TABLES)
    return _sort_scans(
        ScannedTable(table.path, table.table_id, int(match["version"]), match["how"] == "asked")
        for match in _ALIAS.finditer(text)
        if (table := known.get(match["table"])) is not None
    )


def sources_of_unknown_query() -> tuple[ScannedTable, ...]:
    """Return the scans that a query of unknown tables may contain.

    These are the scans of all views of this process. The oldest and the newest version of each
    table are returned, since a view can read either.
    """
    with _LOCK:
        known = tuple(_TABLES.values())
    return _sort_scans(
        ScannedTable(table.path, table.table_id, version, is_time_travel=False, is_assumed=True)
        for table in known
        for version in (table.oldest, table.newest)
        if version is not None
    )


def _sort_scans(found: Iterable[ScannedTable]) -> tuple[ScannedTable, ...]:
    return tuple(sorted(set(found), key=lambda source: (source.path, source.version)))
