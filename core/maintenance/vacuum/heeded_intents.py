"""The files that VACUUM keeps for writers, before any version names them (spec 10.12).

The order of steps makes this safe, whatever the retention. A writer makes its intent, then its
files, then its commit, and only then ends the intent. VACUUM finds candidates, then lists intents,
then reads the newest version, and then deletes. So a file that VACUUM found had an intent before.
If VACUUM does not see that intent, the commit came first, and the newest version has the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.intents.intents import hours_of, intents_directory
from optimist.core.data.intents.local_intents import is_held, remove_unless_held
from optimist.core.data.intents.stored_intents import forget_ended
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import files_below, remove_files
from optimist.core.data.table_ref import TableRef
from optimist.core.maintenance.vacuum.kept_paths import (
    read_streamed,
    relative_paths,
    relative_vector_paths,
)
from optimist.core.paths import name_of, strip_file_scheme
from optimist.core.plugins.logstore import FileStatus
from optimist.core.snapshot import Snapshot

__all__ = ["HeededIntents", "RecordedRemovals"]

_HOUR_MS = 60 * 60 * 1000
_MARGIN_MS = 5 * 60 * 1000
"""Servers of one store may have different clocks, so a file may seem older than its intent."""


@dataclass(frozen=True, slots=True)
class HeededIntents:
    """The intents of writers at one moment.

    Attributes:
        num_live: The number of intents that may still protect files.
        since_ms: The time from which files may belong to them; None if there are no intents.
        stale: The intents that protect nothing any more, each with its name and the evidence.
    """

    num_live: int
    since_ms: int | None
    stale: tuple[str, ...]

    @classmethod
    def find(cls, table: TableRef, *, removes_stale: bool) -> HeededIntents:
        """List the intents, after the candidates were found.

        Args:
            table: The table.
            removes_stale: Whether to remove stale intents.

        Raises:
            StorageError: The store or the file system failed.
        """
        on_disk = is_on_disk(table.table_path)
        ended = frozenset() if on_disk else forget_ended(table, removes=removes_stale)
        found = [
            status
            for status in files_below(intents_directory(table), table.data_access())
            if hours_of(name_of(status.path)) and status.path not in ended
        ]
        judged = _judge_local if on_disk else _judge_by_age
        why = [judged(table, status, removes_stale) for status in found]
        live = [status for status, reason in zip(found, why, strict=True) if reason is None]
        stale = [
            f"{name_of(status.path)}: {reason}"
            for status, reason in zip(found, why, strict=True)
            if reason is not None
        ]
        since_ms = min((status.modified_ms for status in live), default=None)
        if since_ms is not None:
            since_ms -= _MARGIN_MS
        return cls(len(live), since_ms, tuple(stale))


class RecordedRemovals:
    """The files that a version records as removed, which no writer can still be about to commit.

    Args:
        snapshot: A version.
        since_ms: Files that were removed earlier are left out.
    """

    def __init__(self, snapshot: Snapshot, since_ms: int) -> None:
        self._chunks = read_streamed(snapshot, lambda: list(_paths_removed(snapshot, since_ms)))

    def are_named(self, paths: pa.Array) -> pa.Array:
        """Tell which of these relative paths the version records as removed."""
        named = pa.array([False] * len(paths), pa.bool_())
        for chunk in self._chunks:
            named = pc.or_(named, pc.is_in(paths, value_set=chunk.drop_null()))
        return named


def _paths_removed(snapshot: Snapshot, since_ms: int) -> Iterator[pa.Array]:
    removed_ms = pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0))
    for batch in snapshot.iter_tombstones(1 << 20):
        recent = batch.filter(pc.greater_equal(removed_ms, since_ms))
        rows = pa.Table.from_batches([recent])
        yield relative_paths(recent.column("path"), snapshot.data_paths)
        yield relative_vector_paths(rows, snapshot.data_paths)


def _judge_local(table: TableRef, status: FileStatus, removes_stale: bool) -> str | None:
    table.data_paths.ensure_not_led_out(status.path)
    check_lock: Callable[[str], bool | None] = remove_unless_held if removes_stale else is_held
    held = check_lock(strip_file_scheme(status.path))
    if held is None:
        return _judge_by_age(table, status, removes_stale)
    return None if held else "no process holds its lock"


def _judge_by_age(table: TableRef, status: FileStatus, removes_stale: bool) -> str | None:
    hours = hours_of(name_of(status.path)) or 0
    age_ms = table.clock.now_ms() - status.modified_ms
    if not status.modified_ms or age_ms <= hours * _HOUR_MS:
        return None
    if removes_stale:
        remove_files([status.path], table.data_access())
    return f"it is more than {hours} hours old"
