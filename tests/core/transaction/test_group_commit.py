"""Appends of several threads as one version: what lands, and what each of them is told."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from grouped_appends import APPEND, GROUPED, GroupTable, committing, wait_until
from optimist.core import CommitState
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentTransactionException,
    MetadataChangedException,
    StorageError,
)
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.protocol.group_tags import transactions_of
from optimist.core.testing import Fault, Pause, When
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.groups.combined import combine
from optimist.core.transaction.groups.members import Member
from optimist.core.transaction.groups.recent_commits import RecentCommits
from prepared_commits import prepared

IN_COMMIT_TIMESTAMPS = Protocol(1, 7, writer_features=("inCommitTimestamp",))
GROUP_FILE = commit_path("", 2)[1:]
OTHER_SCHEMA = (
    '{"type":"struct","fields":[{"name":"p","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"y","type":"long","nullable":true,"metadata":{}}]}'
)
ROW_TRACKING = Protocol(1, 7, writer_features=("domainMetadata", "rowTracking"))


@pytest.fixture
def group(make_table):
    return GroupTable(make_table)


def commit_at(group, version):
    return read_commit(group.log.store, commit_path(group.log.log_path, version))


def info_at(group, version):
    return next(a for a in commit_at(group, version) if isinstance(a, CommitInfo))


def file_names(group, version):
    return [a.path for a in commit_at(group, version) if isinstance(a, AddFile)]


def test_appends_that_wait_go_out_as_one_version(group):
    begun = [group.begin(f"f{n}", txn=(f"app{n}", n)) for n in range(5)]
    outcomes = group.together([committing(each) for each in begun])
    assert {each.version for each in outcomes} == {2}
    assert group.log.snapshot().version == 2
    assert file_names(group, 2) == [f"f{n}" for n in range(5)]
    assert group.table.live() == [*(f"f{n}" for n in range(5)), "plug"]
    recorded = {a.app_id: a.version for a in commit_at(group, 2) if isinstance(a, SetTransaction)}
    assert recorded == {f"app{n}": n for n in range(5)}
    assert {app: found.version for app, found in group.log.snapshot().set_transactions.items()} == (
        recorded
    )


def test_the_history_tells_of_one_append_with_the_sums_of_all(group):
    begun = [group.begin(f"f{n}") for n in range(3)]
    outcomes = group.together([committing(each) for each in begun])
    info = info_at(group, 2)
    assert (info.operation, info.is_blind_append, info.read_version) == ("WRITE", True, 0)
    assert info.operation_metrics == {"numFiles": "3", "numOutputRows": "30"}
    assert info.tags["optimist.group.size"] == "3"
    assert {each.txn_id for each in outcomes} == {info.txn_id}
    assert transactions_of(info) == {info.txn_id, *(txn.txn_id for txn, _ in begun)}
    for txn, _ in begun:  # whoever knows only the id of its own transaction is answered, too
        assert group.log.resolve_commit(txn.txn_id, 2).state is CommitState.LANDED
        assert group.table.handle().resolve_commit(txn.txn_id).version == 2


def test_a_group_makes_one_request_even_if_its_members_began_at_different_versions(group):
    old = group.begin("old", txn=("app", 1))
    for name in ("x", "y"):
        committing(group.begin(name))()
    before = len(group.store.calls)
    outcomes = group.together([committing(old), committing(group.begin("new"))])
    assert [each.version for each in outcomes] == [4, 4]
    made = [(what, name.rpartition("/")[2]) for what, name in group.store.calls[before:]]
    for version in (3, 4):
        assert made.count(("put_if_absent", commit_path("", version)[1:])) == 1
    # One listing for each `begin`, and one for each group, which sees that the log goes on; what
    # landed meanwhile is known without asking.
    assert [what for what, _ in made].count("list_from") == 4
    assert "read_bytes" not in [what for what, _ in made]


def test_a_winner_that_no_listing_shows_yet_is_checked_all_the_same(group, monkeypatch):
    old = group.begin("old", txn=("app", 1))
    group.table.poke(1, (CommitInfo(txn_id="foreign"), SetTransaction("app", 5)))
    new = group.begin("new")
    members = [Member(prepared(txn, actions, APPEND), txn.snapshot) for txn, actions in (new, old)]
    monkeypatch.setattr(RecentCommits, "since", lambda *arguments: ())
    group.queue._lead(members)
    assert members[0].outcome.version == 2
    assert isinstance(members[1].outcome, ConcurrentTransactionException)


def test_commits_between_two_groups_are_not_forgotten(group):
    old = group.begin("old", txn=("app", 1))
    committing(group.begin("x"))()
    group.table.poke(2, (CommitInfo(txn_id="foreign"), SetTransaction("app", 5)))
    committing(group.begin("y"))()
    with pytest.raises(ConcurrentTransactionException) as found:
        committing(old)()
    assert found.value.conflict.winning_version == 2


def test_a_thread_that_is_alone_commits_as_without_groups(group):
    result = committing(group.begin("f"))()
    info = info_at(group, result.version)
    assert info.tags is None
    assert info.txn_id == result.txn_id


def test_a_metric_that_one_of_them_lacks_is_left_out(group):
    other = Operation.write("Append").with_metrics({"numFiles": 2, "speed": "1.5"})
    group.together([committing(group.begin("f")), committing(group.begin("g"), other)])
    assert info_at(group, 2).operation_metrics == {"numFiles": "3"}


def test_of_two_runs_of_one_application_the_second_fails_alone(group):
    begun = [
        group.begin("f0", txn=("app", 1)),
        group.begin("f1", txn=("app", 1)),
        group.begin("f2"),
    ]
    landed, failed, other = group.together([committing(each) for each in begun])
    assert isinstance(failed, ConcurrentTransactionException)
    assert failed.conflict.winning_version == landed.version == other.version
    assert "f1" not in group.table.live()


def test_applications_that_were_not_looked_up_go_one_after_the_other(group):
    begun = [group.begin(f"f{n}", txn=("app", n), looks_up=False) for n in (1, 2)]
    outcomes = group.together([committing(each) for each in begun])
    assert [each.version for each in outcomes] == [2, 3]
    assert group.log.snapshot().set_transactions["app"].version == 2


def test_a_member_that_conflicts_with_a_foreign_winner_takes_no_other_with_it(group):
    begun = [group.begin(f"f{n}", txn=(f"app{n}", 1)) for n in range(3)]
    foreign = (CommitInfo(txn_id="foreign"), SetTransaction("app1", 7), group.table.add("x"))
    outcomes = group.together(
        [committing(each) for each in begun],
        before_release=lambda: group.table.poke(1, foreign),
    )
    assert isinstance(outcomes[1], ConcurrentTransactionException)
    assert outcomes[0].version == outcomes[2].version
    assert group.table.live() == ["f0", "f2", "plug", "x"]
    refused, _ = begun[1]
    answer = group.log.resolve_commit(refused.txn_id, outcomes[0].version)
    assert answer.state is CommitState.NOT_LANDED


def test_a_change_of_the_table_that_appends_cannot_adopt_fails_them_all(group):
    changed = replace(group.table.metadata, schema_string=OTHER_SCHEMA)
    outcomes = group.together(
        [committing(group.begin(f"f{n}")) for n in range(2)],
        # The winner comes between the one in front and the group.
        before_release=lambda: group.store.plan(foreign_commit_before(2, group, changed)),
    )
    assert [type(each) for each in outcomes] == [MetadataChangedException] * 2
    assert outcomes[0] is not outcomes[1]
    assert list(group.store.inner.list_from(commit_path(group.log.log_path, 3))) == []


def foreign_commit_before(version, group, *actions):
    data = actions_to_bytes((CommitInfo(txn_id="foreign"), *actions))
    name = commit_path("", version)[1:]
    put = group.store.inner.put_if_absent
    return Pause("put_if_absent", When.BEFORE, lambda path: put(path, data), name=name)


def test_texts_for_the_history_that_differ_are_not_mixed(group):
    named = Operation.write("Append", user_metadata="nightly")
    begun = [group.begin(f"f{n}") for n in range(4)]
    operations = [APPEND, named, APPEND, named]
    outcomes = group.together(
        [committing(each, what) for each, what in zip(begun, operations, strict=True)]
    )
    assert [each.version for each in outcomes] == [2, 3, 2, 3]
    assert [info_at(group, n).user_metadata for n in (2, 3)] == [None, "nightly"]


@pytest.mark.parametrize("bound", [{"maxActions": "2"}, {"maxBytes": "500"}])
def test_a_group_is_bounded(make_table, bound):
    options = {f"spark.optimist.commit.group.{name}": value for name, value in bound.items()}
    group = GroupTable(make_table, options)
    outcomes = group.together([committing(group.begin(f"f{n}")) for n in range(5)])
    versions = [each.version for each in outcomes]
    assert versions == [2, 2, 3, 3, 4]


def test_one_that_is_larger_than_a_group_may_be_goes_alone(make_table):
    group = GroupTable(make_table, {"spark.optimist.commit.group.maxActions": "1"})
    txn, actions = group.begin("f")
    big = (txn, [*actions, group.table.add("g")])
    outcomes = group.together([committing(big), committing(group.begin("h"))])
    assert [each.version for each in outcomes] == [2, 3]


def test_in_commit_timestamps_grow_with_the_groups(make_table):
    configuration = {"delta.enableInCommitTimestamps": "true"}
    group = GroupTable(make_table, configuration=configuration, protocol=IN_COMMIT_TIMESTAMPS)
    for turn in (0, 1):
        group.together([committing(group.begin(f"f{turn}{n}")) for n in range(3)])
    times = [info_at(group, version).in_commit_timestamp for version in (1, 2, 3, 4)]
    assert times == sorted(set(times))


def test_rows_get_ids_of_their_own_in_a_group(make_table):
    group = GroupTable(
        make_table,
        configuration={"delta.enableRowTracking": "true"},
        protocol=ROW_TRACKING,
    )
    group.together([committing(group.begin(f"f{n}")) for n in range(3)])
    assert info_at(group, 2).tags["delta.rowTracking.preserved"] == "true"
    adds = [a for a in commit_at(group, 2) if isinstance(a, AddFile)]
    assert [a.base_row_id for a in adds] == [10, 20, 30]
    assert {a.default_row_commit_version for a in adds} == {2}
    domains = [a for a in commit_at(group, 2) if isinstance(a, DomainMetadata)]
    assert [a.configuration for a in domains] == ['{"rowIdHighWaterMark":39}']


def test_a_group_says_that_rows_kept_their_ids_only_if_all_of_them_did(make_table):
    tracked = {"delta.enableRowTracking": "true"}
    group = GroupTable(make_table, protocol=ROW_TRACKING)
    before = group.begin("before")
    group.table.poke(
        1, (CommitInfo(txn_id="foreign"), replace(group.table.metadata, configuration=tracked))
    )
    after = group.begin("after")
    members = [
        Member(prepared(txn, actions, APPEND), txn.snapshot) for txn, actions in (after, before)
    ]
    group.queue._lead(members)
    assert file_names(group, 2) == ["after", "before"]
    assert info_at(group, 2).tags["delta.rowTracking.preserved"] == "false"


# Unclear answers, interrupts


def test_all_members_are_told_of_an_unknown_outcome_with_one_id(group):
    begun = [group.begin(f"f{n}") for n in range(3)]

    def harm():
        group.store.plan(
            Fault("put_if_absent", When.AFTER, name=GROUP_FILE),
            Fault("read_bytes", When.BEFORE, name=GROUP_FILE, times=1000),
        )

    outcomes = group.together([committing(each) for each in begun], before_release=harm)
    assert {type(each) for each in outcomes} == {CommitOutcomeUnknownError}
    assert len({each.txn_id for each in outcomes}) == 1
    assert {each.version for each in outcomes} == {2}
    assert len({id(each) for each in outcomes}) == 3
    group.store.clear()
    for txn_id in (outcomes[0].txn_id, begun[1][0].txn_id):
        answer = group.table.handle().resolve_commit(txn_id, 2)
        assert answer.state is CommitState.LANDED


def test_an_unknown_outcome_that_can_be_settled_is_told_to_nobody(group):
    outcomes = group.together(
        [committing(group.begin(f"f{n}")) for n in range(3)],
        before_release=lambda: group.store.plan(
            Fault("put_if_absent", When.AFTER, name=GROUP_FILE)
        ),
    )
    assert [each.version for each in outcomes] == [2, 2, 2]


def test_a_group_that_met_its_own_first_try_has_landed_though_no_listing_shows_it(
    group, monkeypatch
):
    """The client of the store puts the group twice, and then the log can't be listed."""
    put, begun = group.store.inner.put_if_absent, [group.begin(f"f{n}") for n in range(3)]

    def put_twice(path, data):
        if path.endswith(GROUP_FILE):
            put(path, data)
            group.store.plan(Fault("list_from", When.BEFORE))
        return put(path, data)

    monkeypatch.setattr(group.store.inner, "put_if_absent", put_twice)
    outcomes = group.together([committing(each) for each in begun])
    assert [each.version for each in outcomes] == [2, 2, 2]
    assert group.log.snapshot().num_files == 4
    assert group.table.live() == ["f0", "f1", "f2", "plug"]


def test_what_has_landed_of_a_group_is_what_its_file_says(group):
    known = group.log.snapshot()
    begun = [group.begin("f0"), group.begin("f1")]
    members = [Member(prepared(txn, actions, APPEND), known) for txn, actions in begun]
    loop = group.queue._loop_of(members)
    put = loop.file_of(combine([member.ours for member in members], loop._txn_id)).data
    loop.members = members[:1]  # the other has left since
    landed = loop.as_put(combine([members[0].ours], loop._txn_id), put)
    assert [add.path for add in landed.actions] == ["f0", "f1"]
    assert loop.members == members[:1]


def test_a_store_that_refuses_is_told_to_all_and_nothing_is_there(group):
    error = StorageError("no", kind="OPTIMIST_ACCESS_DENIED", retryable=False)
    outcomes = group.together(
        [committing(group.begin(f"f{n}")) for n in range(2)],
        before_release=lambda: group.store.plan(
            Fault("put_if_absent", When.BEFORE, error, name=GROUP_FILE)
        ),
    )
    assert [each.kind for each in outcomes] == ["OPTIMIST_ACCESS_DENIED"] * 2
    assert group.table.live() == ["plug"]


class Interrupt(BaseException):
    """Like Ctrl-C, or a scheduler that kills the thread."""


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
def test_an_interrupt_of_the_leaders_request_leaves_the_others_unsure_and_says_so(group, when):
    begun = [group.begin(f"f{n}") for n in range(3)]
    outcomes = group.together(
        [committing(each) for each in begun],
        before_release=lambda: group.store.plan(
            Fault("put_if_absent", when, Interrupt(), name=GROUP_FILE)
        ),
    )
    kinds = sorted(type(each).__name__ for each in outcomes)
    assert kinds == ["CommitOutcomeUnknownError", "CommitOutcomeUnknownError", "Interrupt"]
    unknown = next(each for each in outcomes if isinstance(each, CommitOutcomeUnknownError))
    expected = CommitState.LANDED if when is When.AFTER else CommitState.PENDING
    assert group.table.handle().resolve_commit(unknown.txn_id, 2).state is expected


def test_an_interrupt_of_the_leader_before_any_request_strands_nobody(group, monkeypatch):
    begun = [group.begin(f"f{n}") for n in range(3)]
    move = type(group.queue)._move_to_one_version
    calls = []

    def interrupted_once(queue, members):
        calls.append(len(members))
        if len(calls) == 1:
            raise Interrupt
        return move(queue, members)

    outcomes = group.together(
        [committing(each) for each in begun],
        before_release=lambda: monkeypatch.setattr(
            type(group.queue), "_move_to_one_version", interrupted_once
        ),
    )
    versions = [getattr(each, "version", None) for each in outcomes]
    assert sorted(versions, key=str) == [2, 2, None]
    assert calls == [3, 2]
    lost = versions.index(None)
    assert isinstance(outcomes[lost], Interrupt)
    assert f"f{lost}" not in group.table.live()


def test_an_interrupt_right_after_the_leader_took_a_group_strands_nobody(group, monkeypatch):
    begun = [group.begin(f"f{n}") for n in range(3)]
    lead = type(group.queue)._lead
    calls = []

    def interrupted_once(queue, members):
        calls.append(len(members))
        if len(calls) == 1:
            raise Interrupt
        lead(queue, members)

    outcomes = group.together(
        [committing(each) for each in begun],
        before_release=lambda: monkeypatch.setattr(type(group.queue), "_lead", interrupted_once),
    )
    assert sorted(type(each).__name__ for each in outcomes) == [
        "CommitResult",
        "CommitResult",
        "Interrupt",
    ]
    assert calls == [3, 2]


def test_an_interrupt_while_waiting_leaves_the_queue(group, monkeypatch):
    txn, actions = group.begin("f0")

    def interrupted():
        wait = group.queue._turn.wait

        def raise_once(timeout=None):
            monkeypatch.setattr(group.queue._turn, "wait", wait)
            raise Interrupt

        monkeypatch.setattr(group.queue._turn, "wait", raise_once)
        return txn.commit(actions, APPEND)

    outcomes = group.together([interrupted])
    assert isinstance(outcomes[0], Interrupt)
    assert group.queue.num_waiting == 0
    assert group.table.live() == ["plug"]


def test_whoever_waits_too_long_is_told_that_nothing_was_committed(make_table):
    group = GroupTable(make_table, {"spark.optimist.commit.retry.budgetSeconds": "0"})
    (late,) = group.together([committing(group.begin("f0"))])
    assert isinstance(late, StorageError)
    assert late.kind == "OPTIMIST_COMMIT_LOCK_BUSY"
    assert group.table.live() == ["plug"]
    assert committing(group.begin("f1"))().version == 2


def test_whoever_is_told_that_the_wait_was_too_long_is_in_no_group(make_table, monkeypatch):
    """Between the end of the wait and the error another thread may lead."""
    group = GroupTable(make_table, {"spark.optimist.commit.retry.budgetSeconds": "0"})
    leave = type(group.queue)._leave
    landed = []

    def leave_late(queue, member):
        monkeypatch.setattr(type(queue), "_leave", leave)
        queue._leader = 0
        landed.append(committing(group.begin("f1"))())
        leave(queue, member)

    monkeypatch.setattr(type(group.queue), "_leave", leave_late)
    group.queue._leader = -1  # some other thread
    with pytest.raises(StorageError) as raised:
        committing(group.begin("f0"))()
    assert raised.value.kind == "OPTIMIST_COMMIT_LOCK_BUSY"
    assert landed[0].version == 1
    assert group.table.live() == ["f1"]


def test_whoever_gives_up_while_others_commit_for_it_is_in_no_later_version(group, monkeypatch):
    """What `resolve_commit` says of the version that was lost stays true."""
    begun = [group.begin(f"f{n}") for n in range(3)]
    waits = type(group.queue)._await
    answers = []

    def interrupted(queue, member):
        if member.txn_id == begun[1][0].txn_id:
            assert held.wait(60)
            raise Interrupt
        return waits(queue, member)

    def give_up(path):
        held.set()
        wait_until(lambda: any(member.has_left for member in group.queue._taken))
        group.table.poke(2, (CommitInfo(txn_id="foreign", is_blind_append=True),))

    def ask(path):
        answers.append(group.log.resolve_commit(begun[1][0].txn_id))

    held = threading.Event()
    group.store.plan(Pause("put_if_absent", When.BEFORE, give_up, name=GROUP_FILE))
    group.store.plan(Pause("put_if_absent", When.BEFORE, ask, name=commit_path("", 3)[1:]))
    monkeypatch.setattr(type(group.queue), "_await", interrupted)
    outcomes = group.together([committing(each) for each in begun])
    assert isinstance(outcomes[1], Interrupt)
    assert [outcomes[n].version for n in (0, 2)] == [3, 3]
    assert [each.state for each in answers] == [CommitState.NOT_LANDED]
    assert group.table.live() == ["f0", "f2", "plug"]


def test_only_those_whom_a_winner_names_have_landed(group):
    """As after a leader that vanished: one finds its own commit, another has come since."""
    known = group.log.snapshot()
    begun = [group.begin("f0"), group.begin("f1")]
    members = [Member(prepared(txn, actions, APPEND), known) for txn, actions in begun]
    tags = {"optimist.group.size": "1", "optimist.group.txnIds": begun[0][0].txn_id}
    lone = CommitInfo(txn_id="gone", is_blind_append=True, tags=tags)
    group.table.poke(1, (lone, group.table.add("f0")))
    group.queue._waiting.extend(members)
    late = committing(group.begin("f2"))()
    assert members[0].outcome.version == 1
    assert members[1].outcome.version == late.version == 2
    assert group.table.live() == ["f0", "f1", "f2"]
    assert group.log.snapshot().version == 2


# Who does not join


def with_metadata(group, txn, actions):
    txn.update_metadata(group.log.metadata)
    return actions


def with_remove(group, txn, actions):
    return [*actions, group.table.remove("gone")]


def with_rearranged_files(group, txn, actions):
    return [group.table.add("f", data_change=False)]


def with_a_read(group, txn, actions):
    txn.filter_files("p = 1")
    return actions


def without_files(group, txn, actions):
    return []


@pytest.mark.parametrize(
    "change", [with_metadata, with_remove, with_rearranged_files, with_a_read, without_files]
)
def test_what_is_no_blind_append_goes_by_itself(group, change):
    txn, actions = group.begin("f")
    actions = change(group, txn, actions)
    ours = prepared(txn, actions, APPEND)
    assert not group.queue.accepts(ours)
    plain, plain_actions = group.begin("g")
    assert group.queue.accepts(prepared(plain, plain_actions, APPEND))


def test_a_thread_that_holds_the_commit_lock_commits_by_itself(make_table):
    group = GroupTable(make_table, {"spark.databricks.delta.commitLock.enabled": "true"})
    txn, actions = group.begin("f")
    with txn.lock_commit_if_enabled():
        assert not group.queue.accepts(prepared(txn, actions, APPEND))
        assert txn.commit(actions, APPEND).version == 1


def test_without_the_option_there_is_no_queue(make_table):
    assert make_table().log.commit_queue is None
    assert make_table(options=GROUPED).log.commit_queue is not None
