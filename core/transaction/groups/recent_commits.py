"""The commits that a process has just seen land, so that the next group need not read them."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.data.table_ref import TableRef
from optimist.core.log.known_log import KnownLog
from optimist.core.runtime.clock import Clock
from optimist.core.transaction.commit_loop import Landed
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.winners import read_winners

__all__ = ["RecentCommits"]

_MOST = 16


class RecentCommits:
    """The newest commits of one log that a table's handle knows, without a gap, for one thread."""

    def __init__(self) -> None:
        self._log: KnownLog | None = None
        self._known: tuple[Theirs, ...] = ()

    def note(self, landed: Landed, clock: Clock) -> None:
        """Remember a commit that has landed, and the winners before it."""
        version = landed.ours.attempt_version
        seen = (*landed.winners, Theirs(version, clock.now_ms(), landed.lines))
        known = self._of_log(landed.ours.known_log)
        follows = bool(known) and known[-1].version + 1 == seen[0].version
        self._log = landed.ours.known_log
        self._known = (*(known if follows else ()), *seen)[-_MOST:]

    def since(self, ours: Ours, newest: int, table: TableRef) -> Sequence[Theirs]:
        """Return the commits from the version that `ours` tries on, up to `newest` at least.

        That one is not there yet. Only what is not known is read from the log.

        Raises:
            StorageError: As `read_winners`.
        """
        oldest = ours.attempt_version
        known = [each for each in self._of_log(ours.known_log) if each.version >= oldest]
        if oldest == newest and not known:
            return ()
        reaches = bool(known) and known[0].version == oldest and known[-1].version + 1 >= newest
        return known if reaches else read_winners(table, ours)

    def _of_log(self, log: KnownLog) -> tuple[Theirs, ...]:
        return self._known if self._log is log else ()
