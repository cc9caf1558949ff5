"""Which version of which table a scan reads, and an alias that says so where nothing else does.

A server of Spark Connect explains the plan behind a view by names alone: an alias on each scan is
all that a client can read there. One data source serves all versions of all tables, since what is
registered with a session stays in the server's memory until the session ends.
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
"""The tables that were read, by the name that aliases have for each."""


@dataclass(frozen=True, slots=True)
class ScannedTable:
    """One scan inside a query.

    Attributes:
        path: The table's path.
        table_id: The table's id.
        version: The version it reads.
        is_time_travel: The version was asked for by name or time.
        is_assumed: Nobody could tell what the query reads, so it is taken to read this as well.
    """

    path: str
    table_id: str
    version: int
    is_time_travel: bool
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class _ReadTable:
    """A table, and the versions between which those lie that views may read."""

    path: str
    table_id: str
    oldest: int | None = None
    newest: int | None = None

    def read_at(self, version: int) -> _ReadTable:
        """The same table after one of its versions was read."""
        known = [version, *(at for at in (self.oldest, self.newest) if at is not None)]
        return replace(self, oldest=min(known), newest=max(known))


def remember_table(path: str, table_id: str) -> str:
    """The name that aliases have for a table; this process then knows what it means.

    Another client of the same server may have made a view over the table.
    """
    named = hashlib.sha256(f"{path}\0{table_id}".encode()).hexdigest()[:16]
    with _LOCK:
        _TABLES.setdefault(named, _ReadTable(path, table_id))
    return named


def scan_alias(source: ScannedTable) -> str:
    """The alias of a scan, an identifier; this process knows what it means."""
    table = remember_table(source.path, source.table_id)
    if not source.is_time_travel:
        with _LOCK:
            _TABLES[table] = _TABLES[table].read_at(source.version)
    how = "asked" if source.is_time_travel else "newest"
    return f"{_PREFIX}{table}_{source.version}_{how}"


def end_alias() -> str:
    """An alias like those of scans, of no table: what stands before it in a text is all there."""
    return f"{_PREFIX}{uuid.uuid4().hex[:16]}_0_asked"


def is_scan_alias(name: str) -> bool:
    """Whether a name is the alias of a scan."""
    return _ALIAS.fullmatch(name) is not None


def sources_of_aliases(text: str) -> tuple[ScannedTable, ...]:
    """The scans whose aliases stand in a plan's text, each once."""
    with _LOCK:
        known = dict(_TABLES)
    return _sorted(
        ScannedTable(table.path, table.table_id, int(match["version"]), match["how"] == "asked")
        for match in _ALIAS.finditer(text)
        if (table := known.get(match["table"])) is not None
    )


def sources_of_unknown_query() -> tuple[ScannedTable, ...]:
    """What a query may read of which nothing is known: all that views of this process may.

    Of each table the oldest and the newest version are there, since a view can have either.
    """
    with _LOCK:
        known = tuple(_TABLES.values())
    return _sorted(
        ScannedTable(table.path, table.table_id, version, is_time_travel=False, is_assumed=True)
        for table in known
        for version in (table.oldest, table.newest)
        if version is not None
    )


def _sorted(found: Iterable[ScannedTable]) -> tuple[ScannedTable, ...]:
    return tuple(sorted(set(found), key=lambda source: (source.path, source.version)))
