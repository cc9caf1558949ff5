"""The attempt loop on its own: counting, versions, budget, our own commit among the winners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import MaxCommitAttemptsExceededError, StorageError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import CommitInfo
from optimist.core.runtime.retry import RetryPolicy, pause_s
from optimist.core.testing import ManualClock
from optimist.core.transaction.commit_loop import CommitLoop, Rebased, get_next_attempt_version
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import Theirs
from optimist.logstores import MemoryLogStore
from prepared_commits import loop_of, prepared

POLICY = RetryPolicy(
    max_attempts=2, max_non_conflict_attempts=3, base_s=0.1, cap_s=1.0, budget_s=1000.0
)
WRITE = Operation.write("Append")


def draft(table):
    ours = prepared(table.log.start_transaction(), [table.add("ours")], WRITE, None)
    return replace(ours, last_seen=None)  # the store of these loops holds no log


class Scripted(CommitLoop):
    """The loop over steps that a test writes down."""

    def __init__(self, outcomes, policy, check, clock, look):
        options = EngineOptions(
            max_commit_attempts=policy.max_attempts,
            max_non_conflict_commit_attempts=policy.max_non_conflict_attempts,
            retry_base_s=policy.base_s,
            retry_cap_s=policy.cap_s,
            retry_budget_s=policy.budget_s,
        )
        table = TableRef.of("memory://loop/t", MemoryLogStore({}), options, clock)
        super().__init__(table, "ours", lambda txn_id, version: None, None)
        self.asked, self.outcomes, self.check, self.look = [], outcomes, check, look

    def do_commit(self, ours):
        self.asked.append(ours.attempt_version)
        return self.outcomes.pop(0)

    def check_and_retry(self, ours, attempt):
        return self.check(ours, attempt) if self.check else Rebased(ours, ())

    def look_at_winner(self, ours):
        self.look(ours)
        return PutOutcome.EXISTS, ours


def run(ours, outcomes, policy=POLICY, check=None, clock=None, look=lambda ours: None):
    loop = Scripted(outcomes, policy, check, clock or ManualClock(), look)
    return loop.do_commit_retry_iteratively(ours), loop.asked


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


def test_a_winner_that_a_listing_does_not_show_is_looked_at_before_each_put(make_table):
    looked = []
    outcomes = [PutOutcome.EXISTS] * 7 + [PutOutcome.CREATED]
    policy = RetryPolicy(100, 3, 0.1, 1.0, budget_s=1000.0)
    ours = draft(make_table().create())
    landed, asked = run(ours, outcomes, policy, look=lambda ours: looked.append(ours))
    assert landed.attempts == len(asked) == 8
    assert len(looked) == 7


class TakesNames(MemoryLogStore):
    """Says of one name that it exists, and has nothing under it: as if it were a directory."""

    name = "00000000000000000001.json"

    def put_if_absent(self, path, data):
        if path.endswith(self.name):
            return PutOutcome.EXISTS
        return super().put_if_absent(path, data)


def test_a_name_that_exists_and_can_be_neither_listed_nor_read_ends_the_loop(make_table):
    table = make_table(store=TakesNames({})).create()
    with pytest.raises(StorageError) as caught:
        table.log.start_transaction().commit([table.add("ours")], WRITE)
    assert caught.value.kind == "OPTIMIST_NOT_A_FILE"
    assert TakesNames.name in str(caught.value)
    assert not caught.value.retryable
    assert len(table.clock.sleeps) < 10


COMMIT_OF_ANOTHER = b'{"commitInfo":{"txnId":"another","operation":"WRITE"}}\n'


class ListsNotAll(MemoryLogStore):
    """Has one file, and does not list it, as servers do that misread a name."""

    hidden = "00000000000000000001.json"

    def list_from(self, path):
        return (each for each in super().list_from(path) if each.name != self.hidden)


def test_a_commit_that_is_there_and_is_not_listed_ends_the_loop(make_table):
    table = make_table(store=ListsNotAll({})).create()
    table.log.store.put_if_absent(f"{table.log.log_path}/{ListsNotAll.hidden}", COMMIT_OF_ANOTHER)
    with pytest.raises(StorageError) as caught:
        table.log.start_transaction().commit([table.add("ours")], WRITE)
    assert caught.value.kind == "OPTIMIST_BROKEN_LISTING"
    assert "its listing does not show it" in str(caught.value)
    assert len(table.clock.sleeps) < 40


def test_next_version_is_after_the_last_winner(make_table):
    ours = draft(make_table().create())
    winners = tuple(Theirs(version, 0, ()) for version in (1, 2, 3, 4))
    assert get_next_attempt_version(ours, winners) == 5
    assert get_next_attempt_version(ours, ()) == 1


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
    ours = prepared(txn, [table.add("ours")], WRITE, None)
    info = CommitInfo(txn_id=txn.txn_id, operation="WRITE")
    table.poke(1, [CommitInfo(txn_id="other", is_blind_append=True), table.add("a")])
    table.poke(2, [info, *ours.actions])
    rebased = loop_of(txn).check_for_conflicts(ours)
    assert rebased.has_landed
    assert rebased.ours.attempt_version == 2
    assert [winner.version for winner in rebased.winners] == [1]


def test_a_commit_that_has_landed_keeps_the_bytes_of_its_file_no_longer(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    loop = loop_of(txn)
    loop.do_commit_retry_iteratively(prepared(txn, [table.add("ours")], WRITE, None))
    assert loop.unanswered is None
    assert loop.may_be_in_table


def test_pauses_grow_to_the_cap_and_stay_within_their_bound():
    clock = ManualClock()
    for retry, bound in ((1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (500, 1.0)):
        pauses = [pause_s(retry, POLICY, clock) for _ in range(50)]
        assert all(0 <= pause <= bound for pause in pauses)
        assert max(pauses) > bound / 2


def test_the_engine_defaults_are_deltas():
    policy = EngineOptions().retry_policy
    assert (policy.max_attempts, policy.max_non_conflict_attempts) == (10_000_000, 10)
