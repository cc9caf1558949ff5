"""Tells a table from an earlier one at its path, over all handles of this process.

Spark's cache outlives handles, and it is looked up by this text alone, since what is cached of a
table serves queries over all of its versions. So a table that was dropped and made anew, or
restored from a copy, has another identity, and what is cached of the one before is given back. The
same holds for one with other columns: a name may stand for another column by now.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
from optimist.core.forking import ForkSafeLock
from optimist.core.log.known_log import KnownLog
from optimist.core.log.segment import commit_version, commits_of_same_log, is_listed
from optimist.core.plugins.logstore import FileStatus
from optimist.core.plugins.table_place import place_of
from optimist.core.snapshot import Snapshot
from optimist.spark.drop_in.compiler import dropin
from optimist.spark.rows.same_columns import stored_types
from optimist.spark.session.jvm import Jvm

__all__ = ["note_version", "table_identity"]

_MAX_KEPT = 10_000
_LOCK = ForkSafeLock()
_KNOWN: OrderedDict[str, _Known] = OrderedDict()
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class _Known:
    """The log that was last seen at a place, its number, and what handles know it as."""

    number: int
    columns: str
    logs: weakref.WeakSet[KnownLog]
    last_seen: FileStatus | None


def note_version(jvm: Jvm, table: TableRef, snapshot: Snapshot) -> None:
    """Drop the cache of a table that was read, if another table is there by now."""
    if place_of(table.table_path, table.store) in _KNOWN:
        table_identity(jvm, table, snapshot)


def table_identity(jvm: Jvm, table: TableRef, snapshot: Snapshot) -> str:
    """Return the place of a table, `#`, and a number (`java/DeltaTable.java`).

    Args:
        jvm: A session's handles.
        table: The table.
        snapshot: A version of it that has just been looked at.
    """
    place = place_of(table.table_path, table.store)
    columns = _columns(snapshot)
    with _LOCK:
        before = _KNOWN.get(place)
        has_same_columns = before is not None and before.columns == columns
        if before is None or (has_same_columns and snapshot.known_log in before.logs):
            return _keep(place, snapshot, before, columns)
    is_same = has_same_columns and _is_same_log(table, before, snapshot)
    with _LOCK:
        identity = _keep(place, snapshot, before if is_same else None, columns)
    if not is_same:
        dropin(jvm).CachedTables.forget(jvm.session, place)
    return identity


def _columns(snapshot: Snapshot) -> str:
    """Return the columns, with their names and types in files, as one text."""
    nullable = [item.name for item in snapshot.schema if item.nullable]
    return f"{stored_types(snapshot.schema)} {nullable}"


def _keep(place: str, snapshot: Snapshot, before: _Known | None, columns: str) -> str:
    number = next(_NUMBERS) if before is None else before.number
    logs: weakref.WeakSet[KnownLog] = weakref.WeakSet() if before is None else before.logs
    logs.add(snapshot.known_log)
    last_seen = snapshot.segment.last_seen if snapshot.segment else None
    _KNOWN[place] = _Known(number, columns, logs, last_seen)
    _KNOWN.move_to_end(place)
    while len(_KNOWN) > _MAX_KEPT:
        _KNOWN.popitem(last=False)
    return f"{place}#{number}"


def _is_same_log(table: TableRef, before: _Known, snapshot: Snapshot) -> bool:
    """Return whether a log that was opened or loaded again is the same one."""
    if before.last_seen is None or snapshot.segment is None:
        return False
    version = commit_version(before.last_seen)
    for status in snapshot.segment.commits:
        if commit_version(status) == version and is_listed(status):
            return status.is_same_file(before.last_seen)
    try:
        return bool(commits_of_same_log(table.store, table.log_path, before.last_seen, version))
    except OptimistError:
        return False
