"""The attempt loop on its own: counting, versions, budget, our own commit among the winners."""

from __future__ import annotations

import pytest

from optimist.core.errors import MaxCommitAttemptsExceededError
from optimist.core.logstore import PutOutcome
from optimist.core.options import EngineOptions, RetryPolicy
from optimist.core.protocol.actions import CommitInfo
from optimist.core.testing import ManualClock
from optimist.core.transaction.backoff import pause_s
from optimist.core.transaction.commit_loop import Rebased, next_attempt_version, run_attempts
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import Theirs

POLICY = RetryPolicy(
    max_attempts=2, max_non_conflict_attempts=3, base_s=0.1, cap_s=1.0, budget_s=1000.0
)
WRITE = Operation.write("Append")


def draft(table):
    return table.log.start_transaction()._draft([table.add("ours")], WRITE, None)


def run(ours, outcomes, policy=POLICY, check=None, clock=None):
    asked = []

    def do_commit(attempted):
        asked.append(attempted.attempt_version)
        return outcomes.pop(0)

    landed = run_attempts(
        ours,
        do_commit=do_commit,
        check_and_retry=check or (lambda pending, attempt: Rebased(pending, ())),
        policy=policy,
        clock=clock or ManualClock(),
    )
    return landed, asked


def test_max_attempts_of_two_makes_three_writes_and_says_three(make_table):
    ours = draft(make_table().create())
    outcomes = [PutOutcome.EXISTS] * 5
    with pytest.raises(MaxCommitAttemptsExceededError, match="tried 3 times") as raised:
        run(ours, outcomes)
    assert len(outcomes) == 2
    assert raised.value.kind == "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
    fields = raised.value.fields
    assert (fields["attempts"], fields["start_version"], fields["failed_version"]) == (3, 1, 1)
    assert fields["num_actions"] == 1
    assert fields["elapsed_ms"] == 0


def test_a_stale_listing_tries_the_same_version_again(make_table):
    landed, asked = run(draft(make_table().create()), [PutOutcome.EXISTS, PutOutcome.CREATED])
    assert asked == [1, 1]
    assert landed.attempts == 2


def test_next_version_is_after_the_last_winner(make_table):
    ours = draft(make_table().create())
    winners = tuple(Theirs(version, 0, ()) for version in (1, 2, 3, 4))
    assert next_attempt_version(ours, winners) == 5
    assert next_attempt_version(ours, ()) == 1


def test_the_time_budget_ends_the_loop(make_table):
    clock = ManualClock()
    policy = RetryPolicy(10_000, 3, 0.1, 1.0, budget_s=10.0)

    def slow_check(pending, attempt):
        clock.sleep(4.0)
        return Rebased(pending, ())

    with pytest.raises(MaxCommitAttemptsExceededError) as raised:
        run(draft(make_table().create()), [PutOutcome.EXISTS] * 9, policy, slow_check, clock)
    assert raised.value.fields["attempts"] == 4
    assert raised.value.fields["elapsed_ms"] == 12_000


def test_our_own_commit_among_the_winners_ends_the_loop(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    ours = txn._draft([table.add("ours")], WRITE, None)
    info = CommitInfo(txn_id=txn.txn_id, operation="WRITE")
    table.poke(1, [CommitInfo(txn_id="other", is_blind_append=True), table.add("a")])
    table.poke(2, [info, *ours.actions])
    rebased = txn.check_for_conflicts(ours)
    assert rebased.has_landed
    assert rebased.ours.attempt_version == 2
    assert [winner.version for winner in rebased.winners] == [1]


def test_pauses_grow_to_the_cap_and_stay_within_their_bound():
    clock = ManualClock()
    for retry, bound in ((1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (500, 1.0)):
        pauses = [pause_s(retry, POLICY, clock) for _ in range(50)]
        assert all(0 <= pause <= bound for pause in pauses)
        assert max(pauses) > bound / 2


def test_the_engine_defaults_are_deltas():
    policy = EngineOptions().retry_policy
    assert (policy.max_attempts, policy.max_non_conflict_attempts) == (10_000_000, 10)
