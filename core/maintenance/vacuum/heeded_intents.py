"""What VACUUM spares for writers whose files no version names yet (spec 10.12).

Order makes it safe, whatever the retention. A writer makes its intent, then its files, then its
commit, and only then ends the intent. VACUUM finds candidates, then looks for intents, then at the
newest version, and then deletes. So of a file that VACUUM found, the intent was there before; if
VACUUM does not see it, the commit came before, and the newest version has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.intents.intents import hours_of, intents_directory
from optimist.core.data.intents.local_intents import is_held, remove_unless_held
from optimist.core.data.intents.stored_intents import forget_ended
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import files_below, remove_files
from optimist.core.data.table_ref import TableRef
from optimist.core.maintenance.vacuum.kept_paths import relative_paths, relative_vector_paths
from optimist.core.paths import name_of, strip_file_scheme
from optimist.core.plugins.logstore import FileStatus
from optimist.core.snapshot import Snapshot

__all__ = ["HeededIntents", "Named"]

_HOUR_MS = 60 * 60 * 1000
_MARGIN_MS = 5 * 60 * 1000
"""Servers of one store may differ in their clocks: a file may seem older than its intent."""


@dataclass(frozen=True, slots=True)
class HeededIntents:
    """The intents at one moment.

    Attributes:
        num_live: How many may still guard files.
        since_ms: Files from this time on may be theirs; None without any.
        stale: Those that guard nothing any more, each as its name and how that is known.
    """

    num_live: int
    since_ms: int | None
    stale: tuple[str, ...]

    @classmethod
    def find(cls, table: TableRef, *, removes_stale: bool) -> HeededIntents:
        """Look for intents; candidates were found before.

        Args:
            table: The table.
            removes_stale: Whether stale intents are removed.

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


class Named:
    """Which files a version names as removed, so that no writer's commit is yet to name them.

    Args:
        snapshot: A version.
        since_ms: Only files that were removed from this time on are wanted.
    """

    def __init__(self, snapshot: Snapshot, since_ms: int) -> None:
        self._chunks: list[pa.Array] = []
        removed_ms = pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0))
        for batch in snapshot.iter_tombstones(1 << 20):
            recent = batch.filter(pc.greater_equal(removed_ms, since_ms))
            rows = pa.Table.from_batches([recent])
            self._chunks.append(relative_paths(recent.column("path"), snapshot.data_paths))
            self._chunks.append(relative_vector_paths(rows, snapshot.data_paths))

    def are_named(self, paths: pa.Array) -> pa.Array:
        """Which of these relative paths are."""
        named = pa.array([False] * len(paths), pa.bool_())
        for chunk in self._chunks:
            named = pc.or_(named, pc.is_in(paths, value_set=chunk.drop_null()))
        return named


def _judge_local(table: TableRef, status: FileStatus, removes_stale: bool) -> str | None:
    table.data_paths.ensure_not_led_out(status.path)
    ask: Callable[[str], bool | None] = remove_unless_held if removes_stale else is_held
    held = ask(strip_file_scheme(status.path))
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
