"""The attempt loop: put; after a lost race check, rebase, wait, put again (spec 1.12, 1.13).

1. The first attempt goes to the version after the one read, with no conflict check.
2. `CREATED`: committed.
3. `EXISTS`: wait a little, read the winners, check and rebase past each; the next attempt goes to
   the version after the last winner. One of them may turn out to be ourselves; then it is done.
4. After `max_attempts` retries, or when the time budget is used up, give up; nothing was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from optimist.core.clock import Clock
from optimist.core.errors import MaxCommitAttemptsExceededError
from optimist.core.log.commits import read_commit
from optimist.core.log.segment import commit_version, list_commits_after
from optimist.core.logstore import LogStore, PutOutcome
from optimist.core.options import RetryPolicy
from optimist.core.transaction.backoff import pause_s
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.table import pass_winner

__all__ = [
    "Landed",
    "Rebased",
    "next_attempt_version",
    "read_winners",
    "rebase_past",
    "run_attempts",
]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rebased:
    """Where a check of the winners left us.

    Attributes:
        ours: Our transaction past all winners; `attempt_version` is the version to try next.
        winners: What was found, in order of version.
        has_landed: One of them is our own commit, and `ours.attempt_version` is its version.
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
        elapsed_ms: From the first attempt to the last.
    """

    ours: Ours
    winners: tuple[Theirs, ...]
    attempts: int
    elapsed_ms: int


def run_attempts(
    ours: Ours,
    *,
    do_commit: Callable[[Ours], PutOutcome],
    check_and_retry: Callable[[Ours, int], Rebased],
    policy: RetryPolicy,
    clock: Clock,
) -> Landed:
    """Try until the commit lands, meets a conflict, or runs out of attempts or time.

    Raises:
        DeltaConcurrentModificationException: A winner stands in the way.
        MaxCommitAttemptsExceededError: Other writers kept winning.
        CommitOutcomeUnknownError: The store gave no answer and could not be asked.
    """
    start_s = clock.monotonic_s()
    start_version = ours.attempt_version
    winners: list[Theirs] = []
    for attempt in range(policy.max_attempts + 1):
        if attempt:
            rebased = check_and_retry(ours, attempt)
            ours = rebased.ours
            winners += rebased.winners
            if rebased.has_landed:
                return Landed(ours, tuple(winners), attempt, _elapsed_ms(start_s, clock))
        if do_commit(ours) is PutOutcome.CREATED:
            return Landed(ours, tuple(winners), attempt + 1, _elapsed_ms(start_s, clock))
        if clock.monotonic_s() - start_s > policy.budget_s:
            break
    raise _exceeded(ours, start_version, attempt + 1, _elapsed_ms(start_s, clock))


def wait_before_retry(attempt: int, policy: RetryPolicy, clock: Clock) -> None:
    """Let the others finish; the first retry goes at once, for it usually wins."""
    if attempt > 1:
        clock.sleep(pause_s(attempt - 1, policy, clock))


def read_winners(store: LogStore, log_path: str, after_version: int) -> tuple[Theirs, ...]:
    """The commits newer than a version, in order; none where the listing does not show them yet."""
    return tuple(
        Theirs(commit_version(status), status.modified_ms, read_commit(store, status.path))
        for status in list_commits_after(store, log_path, after_version)
    )


def next_attempt_version(ours: Ours, winners: tuple[Theirs, ...]) -> int:
    """The attempted version moved up by the commits found; the same again where none was."""
    return ours.attempt_version + len(winners)


def rebase_past(ours: Ours, winners: tuple[Theirs, ...], clock: Clock) -> Rebased:
    """Check each winner in order and move past it.

    Raises:
        DeltaConcurrentModificationException: The first conflict found.
    """
    first = ours.attempt_version
    for position, winner in enumerate(winners):
        if winner.txn_id is not None and winner.txn_id == ours.commit_info.txn_id:
            return Rebased(
                replace(ours, attempt_version=winner.version), winners[:position], has_landed=True
            )
        start_s = clock.monotonic_s()
        ours = pass_winner(ours, winner)
        _LOG.info(
            "Completed checking for conflicts Version: %d Attempt: %d Time: %d ms",
            winner.version,
            position + 1,
            _elapsed_ms(start_s, clock),
        )
    end = first + len(winners)
    _LOG.info("No logical conflicts with deltas [%d, %d), retrying.", first, end)
    return Rebased(replace(ours, attempt_version=end), winners)


def _elapsed_ms(start_s: float, clock: Clock) -> int:
    return round((clock.monotonic_s() - start_s) * 1000)


def _exceeded(
    ours: Ours, start_version: int, attempts: int, elapsed_ms: int
) -> MaxCommitAttemptsExceededError:
    return MaxCommitAttemptsExceededError(
        f"This commit has failed as it has been tried {attempts} times but did not succeed. It "
        f"started at version {start_version}, failed at version {ours.attempt_version} attempting "
        f"to commit {len(ours.actions)} actions; {elapsed_ms} ms were spent. Nothing was "
        "committed: run it again when fewer writers are at work, or raise maxCommitAttempts or "
        "optimist.commit.retry.budgetSeconds.",
        kind="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        attempts=attempts,
        start_version=start_version,
        failed_version=ours.attempt_version,
        num_actions=len(ours.actions),
        elapsed_ms=elapsed_ms,
    )
