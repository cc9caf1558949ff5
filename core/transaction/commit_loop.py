"""The commit loop: put. After a lost race wait, read the winners, rebase, put again.

`CommitLoop.do_commit_retry_iteratively` is the loop, and the methods below it are its steps, in the
order in which they are taken (spec 1.12, 1.13):

1. Put. The first attempt goes to the version after the one read, with no conflict check, if the log
   goes on from there (`winners`). `CREATED` means committed.
2. `EXISTS` means that another writer has the version, or that our put was sent twice and met
   itself. After `max_attempts` retries, or when the time budget is used up, give up.
3. Wait a little.
4. Read the winners. If one of them turns out to be our own commit, we are done. If several
   attempts lose to a winner that can't be listed or read, raise an error. Nobody is told that
   nothing was committed before the winner was seen (`look_at_winner`).
5. Rebase: check each winner in order, and move past it. A conflict ends the loop.
6. Put again, at the version after the last winner.

An interrupt may strike between any two of these steps, and somebody must be told afterwards what
became of the commit. So the loop notes the evidence as it comes:

- `landed`: the store has said that the commit is there, or a winner turned out to be it.
- `unanswered`: a put is about to be made, or was made and not answered. It may be in the table.
- Neither of them: nothing of it is in the table, and nothing of it can get there any more.

The methods are named after the same steps of Delta's `OptimisticTransactionImpl`.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import (
    NOTHING_COMMITTED,
    LogFileNotFoundError,
    MaxCommitAttemptsExceededError,
    StorageError,
    TableError,
)
from optimist.core.errors.foreign_text import shown
from optimist.core.log.many_files import split_at_files
from optimist.core.log.names import commit_path
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import Action, CommitInfo, actions_to_bytes
from optimist.core.runtime.begun_changes import note_change_begun
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import pause_s
from optimist.core.transaction.commit_lock import NO_LOCK, CommitGuard, lock_commit_if_enabled
from optimist.core.transaction.conflicts.closer_look import CloserLook
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.table import pass_winner
from optimist.core.transaction.outcome import VersionFile, create_version_file
from optimist.core.transaction.prepare import ensure_consistent_files
from optimist.core.transaction.winners import ensure_log_goes_on, read_winners

__all__ = ["CommitLoop", "Landed", "Rebased", "as_written", "rebase_past"]

_LOG = logging.getLogger(__name__)
_ABSENT_AFTER = 3
"""How many attempts in a row may lose to a file that is not there, before that is an error.

A store whose reads merely lag behind shows the file by then.
"""
_NEVER_LISTED_AFTER = 30
"""How many may lose to a file that no listing shows, before the listing is taken for one that will
never show it: half a minute."""


@dataclass(frozen=True, slots=True)
class Rebased:
    """Our transaction after it was checked against the winners and moved past them.

    Attributes:
        ours: Our transaction past all winners; `attempt_version` is the version to try next.
        winners: The winners that were found, in order of version.
        has_landed: Whether we found that our own commit is in the log already. Then `winners` ends
            before it, and `ours` is what that commit wrote, at its version.
    """

    ours: Ours
    winners: tuple[Theirs, ...]
    has_landed: bool = False


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit that is in the table.

    Attributes:
        ours: The transaction as it was written, at `ours.attempt_version`.
        winners: The commits that landed between the version read and ours.
        attempts: How many times a version was tried; 1 without contention.
        elapsed_ms: The time from the first attempt to the end of the last.
    """

    ours: Ours
    winners: tuple[Theirs, ...]
    attempts: int
    elapsed_ms: int

    @property
    def lines(self) -> tuple[Action, ...]:
        """The actions in the commit's file but `ours.files`, commitInfo first if there is one."""
        return _actions_to_write(self.ours)


class CommitLoop:
    """The attempts of one commit. Single use, and for one thread.

    Args:
        table: The table.
        txn_id: The transaction's id.
        note_attempt: Called before each put with the transaction's id and the version; see
            `CommitListener`.
        look: Reads what the actions of a winner do not tell.

    Attributes:
        landed: The commit, as soon as it is known to be in the table; else None.
        unanswered: The file of a put whose outcome is not known, or not yet; else None.
    """

    def __init__(
        self,
        table: TableRef,
        txn_id: str,
        note_attempt: Callable[[str, int], None],
        look: CloserLook,
    ) -> None:
        self._table = table
        self._txn_id = txn_id
        self._note_attempt = note_attempt
        self._look = look
        self._guard: CommitGuard = NO_LOCK
        self.landed: Landed | None = None
        self.unanswered: VersionFile | None = None
        self._is_winner_unseen = False

    @property
    def may_be_in_table(self) -> bool:
        """Whether the commit is in the table or may get there, as far as is known for certain.

        A winner that was not read yet may be the commit itself: the store's client may have tried
        again by itself, and met its own first try.
        """
        is_open = self.unanswered is not None or self._is_winner_unseen
        return is_open or self.landed is not None

    def do_commit_retry_iteratively(self, ours: Ours) -> Landed:
        """Try until the commit lands, meets a conflict, or runs out of attempts or time.

        Raises:
            DeltaConcurrentModificationException: A winner stands in the way.
            MaxCommitAttemptsExceededError: Other writers kept winning.
            CommitOutcomeUnknownError: The store gave no answer to a put, and reading back did not
                settle whether it landed.
            StorageError: Something that is not a file has the version's name, other writers held
                the commit lock for all of the retry budget, or the log is another one by now than
                the transaction read. Nothing was committed.
        """
        note_change_begun()
        with self._ready_for(ours):
            return self._attempt_until_landed(ours)

    @contextmanager
    def _ready_for(self, ours: Ours) -> Iterator[None]:
        """Create the log directory of a new table, and hold the commit lock if it is enabled."""
        if ours.read_version < 0:
            self._table.ensure_log_directory()
        with lock_commit_if_enabled(self._table) as self._guard:
            yield

    def _attempt_until_landed(self, ours: Ours) -> Landed:
        policy, clock = self._table.options.retry_policy, self._table.clock
        start_s, start_version = clock.monotonic_s(), ours.attempt_version
        winners: tuple[Theirs, ...] = ()
        attempt = lost_to_nobody = 0
        while True:
            attempt += 1
            # Put. Whoever creates the file of the version has committed it.
            ours = self.announce(ours)
            if self.do_commit(ours) is PutOutcome.CREATED:
                return self._note_landed(ours, winners, attempt, start_s)
            # Lost. Looking at the clock only now gives every commit at least one attempt.
            is_late = clock.monotonic_s() - start_s > policy.budget_s
            if attempt > policy.max_attempts or is_late:
                own = self._own_winner(ours)
                if own is not None:
                    return self._note_landed(own, winners, attempt, start_s)
                raise _attempts_exceeded(ours, start_version, attempt, _elapsed_ms(start_s, clock))
            # Wait, read the winners, rebase past them.
            rebased = self._pass_winners(ours, attempt)
            ours, winners = rebased.ours, winners + rebased.winners
            if rebased.has_landed:  # an earlier put arrived after all, and one winner is ourselves
                return self._note_landed(ours, winners, attempt, start_s)
            # A listing may lag behind a put, so to lose without a listed winner is not an error at
            # once. But nothing is put again before the winner was seen, and one that can't be
            # listed or read will never be rebased past.
            lost_to_nobody = 0 if rebased.winners else lost_to_nobody + 1
            if lost_to_nobody:
                winner, own = self.look_at_winner(ours)
                if winner is PutOutcome.CREATED:
                    return self._note_landed(own, winners, attempt, start_s)
                if winner is None and lost_to_nobody >= _ABSENT_AFTER:
                    raise self._not_a_file(ours)
                if lost_to_nobody == _NEVER_LISTED_AFTER:
                    raise self._not_listed(ours)
            # Again, at the version after the last winner.

    def _note_landed(
        self, ours: Ours, winners: tuple[Theirs, ...], attempts: int, start_s: float
    ) -> Landed:
        elapsed_ms = _elapsed_ms(start_s, self._table.clock)
        self.landed = Landed(ours, winners, attempts, elapsed_ms)
        self.unanswered = None  # only now; a large file would fill the memory during the hooks
        return self.landed

    def announce(self, ours: Ours) -> Ours:
        """Note which version is about to be tried, and return the transaction as it is put.

        This comes before the put, because an interrupt or an unknown outcome may end the put
        without an answer.
        """
        self._note_attempt(self._txn_id, ours.attempt_version)
        return ours

    def do_commit(self, ours: Ours) -> PutOutcome:
        """Make one attempt at one version and settle how it ended; see `outcome`.

        Returns:
            `CREATED` or `EXISTS`.
        """
        _LOG.debug(
            "Attempting to commit version %d with %d actions with %s isolation level",
            ours.attempt_version,
            _num_actions(ours),
            ours.isolation_level.value,
        )
        file = self.file_of(ours)
        # The lease is renewed for this attempt, and checked once more right before the put: between
        # the two the process may sleep for longer than the lease lasts.
        self._guard.renew()
        self.unanswered = file  # until an answer is here, nobody may say what became of it
        try:
            outcome = create_version_file(
                self._table.store,
                file,
                self._table.options.retry_policy,
                self._table.clock,
                ensure_may_write=partial(self._ensure_may_put, ours),
            )
        except NOTHING_COMMITTED:
            self.unanswered = None
            raise
        if outcome is PutOutcome.EXISTS:
            self._is_winner_unseen = not file.doubts_exists
            self.unanswered = None
        return outcome

    def _ensure_may_put(self, ours: Ours) -> None:
        """Check that the log still continues what we read, then that the lock still holds.

        This runs before each put, since a put without an answer may be repeated much later.
        """
        ensure_log_goes_on(self._table, ours)
        self._guard.ensure_held()

    def file_of(self, ours: Ours) -> VersionFile:
        """Return the file that an attempt puts."""
        return VersionFile(
            self._commit_path(ours),
            _bytes_to_write(ours),
            version=ours.attempt_version,
            txn_id=self._txn_id,
            has_commit_info=_has_commit_info(ours),
        )

    def _pass_winners(self, ours: Ours, attempt: int) -> Rebased:
        """Move past the winners. If none of them can be read, look at the file of our version.

        Raises:
            OptimistError: Nothing was committed, because the winner is another's.
            CommitOutcomeUnknownError: That can't be told: the winner can't be read at all.
        """
        try:
            return self.check_and_retry(ours, attempt)
        except NOTHING_COMMITTED:
            own = self._own_winner(ours)
            if own is not None:
                return Rebased(own, (), has_landed=True)
            raise

    def _own_winner(self, ours: Ours) -> Ours | None:
        """Return what has landed if the last put was lost to our own commit, which was sent twice.

        Before anybody is told that nothing was committed, the winner must have been seen.
        """
        if not self._is_winner_unseen:
            return None
        winner, own = self.look_at_winner(ours)
        return own if winner is PutOutcome.CREATED else None

    def look_at_winner(self, ours: Ours) -> tuple[PutOutcome | None, Ours]:
        """Read the file that the last put was lost to, by its name.

        Returns:
            `CREATED` if it is our own commit, `EXISTS` if it is another's, None if there is none;
            and our transaction, as it is in the file if that is ours.

        Raises:
            CommitOutcomeUnknownError: It can't be read.
        """
        file = self.file_of(ours)
        found: PutOutcome | None = PutOutcome.EXISTS
        data = b""
        try:
            data = self._table.store.read_bytes(file.path)
            if file.is_same(data):
                found = PutOutcome.CREATED
        except LogFileNotFoundError:
            found = None
        except TableError:  # it is damaged, and ours would not be
            pass
        except Exception as error:  # a store may raise anything
            raise file.unknown(
                "the version exists, and can't be read to tell whose it is"
            ) from error
        self._is_winner_unseen = found is PutOutcome.CREATED
        return found, self.as_put(ours, data) if found is PutOutcome.CREATED else ours

    def as_put(self, ours: Ours, data: bytes) -> Ours:  # noqa: ARG002 - for overriding
        """Return our transaction as it is in the commit's file, given the bytes of that."""
        return ours

    def read_winners(self, ours: Ours) -> tuple[Theirs, ...]:
        """Read the commits that landed since the last check; see `winners.read_winners`."""
        winners = read_winners(self._table, ours)
        if winners and not any(winner.holds(self._txn_id) for winner in winners):
            self._is_winner_unseen = False
        return winners

    def check_and_retry(self, ours: Ours, attempt: int) -> Rebased:
        """Wait a little after a lost race, then read the winners and rebase past them.

        The name is Delta's; the retry itself is the next put of the loop. The wait comes before the
        reading, so that the winners are as fresh as possible at that put. The first retry does not
        wait, because it usually wins.
        """
        if attempt > 1:
            policy, clock = self._table.options.retry_policy, self._table.clock
            clock.sleep(pause_s(attempt - 1, policy, clock))
        return self.check_for_conflicts(ours)

    def check_for_conflicts(self, ours: Ours) -> Rebased:
        """Read the commits that landed since the last check, and move past each of them.

        Raises:
            DeltaConcurrentModificationException: One of them stands in the way.
        """
        winners = self.read_winners(ours)
        if winners:  # only now does a file that is removed need a value of its own
            ours = ours.without_columns()
        rebased = rebase_past(ours, winners, self._table.clock, self._look.at)
        if winners and not rebased.has_landed:
            rebased = replace(rebased, ours=self._look.settled(ours, rebased.ours, winners))
            # A rebase rewrites actions, so what was checked before the first attempt may not hold.
            ensure_consistent_files(rebased.ours.actions, self._table.options)
        return rebased

    def _not_a_file(self, ours: Ours) -> StorageError:
        path = self._commit_path(ours)
        return StorageError(
            f"The store says that {shown(path)} exists, but can neither list nor read such a "
            "file. Probably a directory has that name, or something else that no Delta writer "
            "makes. Nothing was committed. Find out who made it, and remove it or move it "
            "away.",
            kind="OPTIMIST_NOT_A_FILE",
            path=path,
            retryable=False,
        )

    def _not_listed(self, ours: Ours) -> StorageError:
        path = self._commit_path(ours)
        return StorageError(
            f"The store has {shown(path)} and gives it to readers, but its listing does not show "
            "it, so no commit can follow. Nothing was committed. The server, or a cache before it, "
            "lists some names wrongly, or too late: move the table to a path without characters "
            "such as + and %, or to another server.",
            kind="OPTIMIST_BROKEN_LISTING",
            path=path,
            retryable=True,
        )

    def _commit_path(self, ours: Ours) -> str:
        return commit_path(self._table.log_path, ours.attempt_version)


def rebase_past(
    ours: Ours,
    winners: tuple[Theirs, ...],
    clock: Clock,
    look_closer: Callable[[Ours, Theirs], Theirs] = lambda _, theirs: theirs,
) -> Rebased:
    """Check each winner in order and move past it.

    Args:
        ours: Our transaction.
        winners: The commits that landed first.
        clock: Measures how long the checks take.
        look_closer: Finds out about a winner what its actions do not tell.

    Raises:
        DeltaConcurrentModificationException: The first conflict found.
    """
    first = ours.attempt_version
    for position, winner in enumerate(winners):
        # Asked before any check: if we took our own commit for another's, we would find a conflict
        # with ourselves, or commit twice.
        if winner.holds(ours.commit_info.txn_id):
            return Rebased(as_written(ours, winner), winners[:position], has_landed=True)
        start_s = clock.monotonic_s()
        ours = pass_winner(ours, look_closer(ours, winner))
        _LOG.info(
            "Completed checking for conflicts Version: %d Attempt: %d Time: %d ms",
            winner.version,
            position + 1,
            _elapsed_ms(start_s, clock),
        )
    end = get_next_attempt_version(ours, winners)
    _LOG.info("No logical conflicts with deltas [%d, %d), retrying.", first, end)
    last_seen = next((each.status for each in reversed(winners) if each.status), ours.last_seen)
    return Rebased(replace(ours, attempt_version=end, last_seen=last_seen), winners)


def as_written(ours: Ours, winner: Theirs) -> Ours:
    """Return our transaction with what its commit says, as it was read from the log.

    Several transactions of a group may be in one commit.
    """
    actions = tuple(each for each in winner.actions if not isinstance(each, CommitInfo))
    info = winner.commit_info or ours.commit_info
    return replace(
        ours, attempt_version=winner.version, actions=actions, commit_info=info, files=None
    )


def get_next_attempt_version(ours: Ours, winners: tuple[Theirs, ...]) -> int:
    """Return the version after the last winner, or the same version if no winner was found.

    Counting the winners is enough, for `list_commits_after` refuses a listing with a gap.
    """
    return ours.attempt_version + len(winners)


def _actions_to_write(ours: Ours) -> tuple[Action, ...]:
    info: tuple[CommitInfo, ...] = (ours.commit_info,) if _has_commit_info(ours) else ()
    return (*info, *ours.actions)


def _bytes_to_write(ours: Ours) -> bytes:
    """Encode the commit's file: a reader must know the schema before it meets files."""
    actions = _actions_to_write(ours)
    if ours.files is None:
        return actions_to_bytes(actions)
    first, rest = map(actions_to_bytes, split_at_files(actions))
    # Part by part, because the lines of many files fill the memory even once.
    file = io.BytesIO()
    file.write(first)
    for lines in ours.files.lines():
        file.write(lines)
    file.write(rest)
    return file.getvalue()


def _num_actions(ours: Ours) -> int:
    return len(ours.actions) + (0 if ours.files is None else len(ours.files))


def _has_commit_info(ours: Ours) -> bool:
    """Return whether to write commitInfo: as the option says, and always for timestamps.

    The timestamp stands in commitInfo, so a table that has such timestamps can't do without it.
    """
    return ours.options.commit_info_enabled or ours.commit_info.in_commit_timestamp is not None


def _elapsed_ms(start_s: float, clock: Clock) -> int:
    return round((clock.monotonic_s() - start_s) * 1000)


def _attempts_exceeded(
    ours: Ours, start_version: int, attempts: int, elapsed_ms: int
) -> MaxCommitAttemptsExceededError:
    return MaxCommitAttemptsExceededError(
        f"This commit has failed as it has been tried {attempts} times but did not succeed. It "
        f"started at version {start_version} of {ours.table_path}, and after {elapsed_ms} ms it "
        f"failed at version {ours.attempt_version} with {_num_actions(ours)} actions. Nothing was "
        "committed. Run the operation again when fewer writers are active, or raise "
        "spark.databricks.delta.maxCommitAttempts or optimist.commit.retry.budgetSeconds.",
        kind="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        attempts=attempts,
        start_version=start_version,
        failed_version=ours.attempt_version,
        num_actions=_num_actions(ours),
        elapsed_ms=elapsed_ms,
    )
