"""`Member`: one transaction of a group, from its place in the queue to its outcome."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
from optimist.core.protocol.actions import (
    AddFile,
    DomainMetadata,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.protocol.domains import ROW_TRACKING_DOMAIN
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.commit_loop import Rebased, rebase_past
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.row_ids import ROWS_PRESERVED
from optimist.core.transaction.prepare import ensure_consistent_files
from optimist.core.transaction.result import CommitResult

__all__ = ["Member", "may_join"]


def may_join(ours: Ours) -> bool:
    """Return whether a transaction may share a version with others: only a blind append may.

    It adds files with new rows to a table that exists, and may record its application's progress.
    It has neither read files nor set tags. The engine itself sets row ids and their tags.
    """
    files = ours.of_type(AddFile)
    return (
        ours.read_version >= 0
        and ours.is_blind_append
        and set(ours.commit_info.tags or ()) <= {ROWS_PRESERVED}
        and bool(files)
        and all(item.data_change for item in files)
        and all(_is_of_an_append(action) for action in ours.actions)
    )


def _is_of_an_append(action: object) -> bool:
    if isinstance(action, DomainMetadata):
        return action.domain == ROW_TRACKING_DOMAIN
    return isinstance(action, AddFile | SetTransaction)


class Member:
    """One transaction of a group.

    Attributes:
        ours: The transaction, past the winners checked so far.
        base: The version that it started from.
        winners: The commits that it was checked against.
        outcome: How it ended, the result or an error; None while that is open.
        has_left: Whether its thread was interrupted and no longer waits. From then on no further
            put may hold it: who asks what became of it is told of the last one.
        thread: The thread that waits for it.
    """

    def __init__(self, ours: Ours, base: Snapshot) -> None:
        self.ours = ours
        self.base = base
        self.winners: tuple[Theirs, ...] = ()
        self.outcome: CommitResult | OptimistError | None = None
        self.has_left = False
        self.thread = threading.get_ident()
        self.size_bytes = len(actions_to_bytes(ours.actions))
        self._applications = {item.app_id for item in ours.of_type(SetTransaction)}
        self._files = {item.path for item in ours.of_type(AddFile)}

    @property
    def txn_id(self) -> str:
        """The id of its transaction."""
        return self.ours.commit_info.txn_id or ""

    def goes_with(self, others: Sequence[Member]) -> bool:
        """Return whether it may share a version with all of these.

        They must have read one log, and the commit's commitInfo must be true of each of them. Two
        that touch the same application or file are committed one after the other, so that the later
        one is checked against the earlier one like against any winner.
        """
        touched = self._applications | self.ours.reads.app_ids
        return all(
            self.ours.known_log is other.ours.known_log
            and self._says_the_same_as(other)
            and touched.isdisjoint(other._applications)
            and self._files.isdisjoint(other._files)
            for other in others
        )

    def pass_winners(self, winners: Sequence[Theirs], table: TableRef) -> Rebased | None:
        """Check it against commits that landed since, and move past them.

        Returns:
            It past the winners; None if one of them stands in its way, which is its outcome then.
            If one of them holds it, it stays where it was tried, and so is found there again.
        """
        later = tuple(each for each in winners if each.version >= self.ours.attempt_version)
        try:
            rebased = rebase_past(self.ours, later, table.clock)
            ensure_consistent_files(rebased.ours.actions, table.options)
        except OptimistError as error:
            self.outcome = error
            return None
        self.winners += rebased.winners
        if rebased.has_landed:
            self.ours = replace(self.ours, attempt_version=rebased.ours.attempt_version)
        else:
            self.ours = rebased.ours
        return rebased

    def _says_the_same_as(self, other: Member) -> bool:
        mine, its = self.ours.commit_info, other.ours.commit_info
        return (
            mine.operation == its.operation
            and mine.operation_parameters == its.operation_parameters
            and mine.user_metadata == its.user_metadata
            and mine.isolation_level == its.isolation_level
        )
