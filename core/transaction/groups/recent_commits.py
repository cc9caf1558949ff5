"""The commits that a process has just seen land, so that the next group need not read them."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.clock import Clock
from optimist.core.data.table_ref import TableRef
from optimist.core.transaction.commit_loop import Landed, read_winners
from optimist.core.transaction.conflicts.ours_and_theirs import Theirs

__all__ = ["RecentCommits"]

_MOST = 16


class RecentCommits:
    """The newest commits of one table that its handle knows, without a gap; for one thread."""

    def __init__(self) -> None:
        self._known: tuple[Theirs, ...] = ()

    def note(self, landed: Landed, clock: Clock) -> None:
        """Remember a commit that has landed, and the winners before it."""
        version = landed.ours.attempt_version
        seen = (*landed.winners, Theirs(version, clock.now_ms(), landed.lines))
        follows = bool(self._known) and self._known[-1].version + 1 == seen[0].version
        self._known = (*(self._known if follows else ()), *seen)[-_MOST:]

    def since(self, oldest: int, newest: int, table: TableRef) -> Sequence[Theirs]:
        """The commits from version `oldest` on, up to `newest` at least, which is not there yet.

        Only what is not known is read from the log.
        """
        known = [each for each in self._known if each.version >= oldest]
        if oldest == newest and not known:
            return ()
        reaches = bool(known) and known[0].version == oldest and known[-1].version + 1 >= newest
        return known if reaches else read_winners(table.store, table.log_path, oldest - 1)
