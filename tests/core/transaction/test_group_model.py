"""Groups of any transactions against a serial model: as if they had come one after the other."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grouped_appends import APPEND, GROUPED
from optimist.core.errors import ConcurrentTransactionException, OptimistError
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import AddFile, CommitInfo, Protocol, SetTransaction
from optimist.core.protocol.group_tags import transactions_of
from optimist.core.transaction.groups.members import Member
from prepared_commits import prepared

APPS = st.sampled_from(["a", "b", "c"])
PROTOCOL = Protocol(1, 7, writer_features=("domainMetadata", "inCommitTimestamp", "rowTracking"))
CONFIGURATION = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}


@dataclass(frozen=True)
class Wanted:
    """One transaction: which applications it looks up, which it records, which files it adds."""

    age: int
    looks_up: frozenset[str]
    records: dict[str, int]
    num_files: int
    text: str | None
    same_file: bool


@dataclass
class Begun:
    wanted: Wanted
    number: int
    read_version: int
    txn: object
    member: Member
    files: list[str] = field(default_factory=list)


WANTED = st.builds(
    Wanted,
    age=st.integers(0, 3),
    looks_up=st.frozensets(APPS, max_size=2),
    records=st.dictionaries(APPS, st.integers(1, 3), max_size=2),
    num_files=st.integers(1, 3),
    text=st.sampled_from([None, None, "x"]),
    same_file=st.integers(0, 9).map(lambda drawn: drawn == 0),
)
FOREIGN = st.lists(st.dictionaries(APPS, st.integers(4, 9), max_size=1), max_size=3)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rounds=st.lists(
        st.tuples(FOREIGN, st.lists(WANTED, min_size=1, max_size=5)), min_size=1, max_size=3
    ),
    bound=st.sampled_from([2, 4, 1000]),
)
def test_any_groups_end_as_if_their_members_had_come_one_by_one(make_table, rounds, bound):
    table = make_table(
        options={**GROUPED, "spark.optimist.commit.group.maxActions": str(bound)},
        configuration=CONFIGURATION,
        protocol=PROTOCOL,
    )
    table.poke(0, (CommitInfo(in_commit_timestamp=1), table.protocol, table.metadata))
    snapshots = [table.log.snapshot()]
    begun = []
    for foreign, batch in rounds:
        for apps in foreign:
            poke_foreign(table, snapshots[-1], apps)
            snapshots.append(table.log.snapshot())
        latest = [begin(table, len(begun) + n, each, snapshots) for n, each in enumerate(batch)]
        table.log.commit_queue._waiting.extend(each.member for each in latest)
        begun += latest
        while table.log.commit_queue.num_waiting:
            table.log.commit_queue._lead(table.log.commit_queue._take_group())
        snapshots.append(table.log.snapshot())
    ensure_serial(table, begun)


def poke_foreign(table, latest, apps):
    version = latest.version + 1
    actions = [SetTransaction(app, number) for app, number in apps.items()]
    info = CommitInfo(txn_id=f"foreign-{version}", in_commit_timestamp=latest.timestamp_ms + 1)
    table.poke(version, (info, *actions))


def begin(table, number, wanted, snapshots):
    snapshot = snapshots[max(0, len(snapshots) - 1 - wanted.age)]
    txn = table.log.start_transaction(snapshot)
    for app in sorted(wanted.looks_up):
        txn.txn_version(app)
    names = [f"f{number}-{n}" for n in range(wanted.num_files)]
    if wanted.same_file:
        names[0] = "the same"
    operation = APPEND if wanted.text is None else replace_text(wanted.text)
    actions = [table.add(name) for name in names]
    actions += [SetTransaction(app, version) for app, version in wanted.records.items()]
    ours = prepared(txn, actions, operation)
    assert table.log.commit_queue.accepts(ours)
    return Begun(wanted, number, snapshot.version, txn, Member(ours, snapshot), names)


def replace_text(text):
    return type(APPEND).write("Append", user_metadata=text).with_metrics({"numFiles": 1})


def ensure_serial(table, begun):
    by_id = {each.txn.txn_id: each for each in begun}
    latest = table.handle().snapshot()
    order, next_row_id, last_time = [], 0, 0
    recorded: dict[str, tuple[int, int]] = {}  # application: (version of its txn, at which commit)
    for version in range(1, latest.version + 1):
        actions = read_commit(table.log.store, commit_path(table.log.log_path, version))
        info = next(a for a in actions if isinstance(a, CommitInfo))
        assert info.in_commit_timestamp > last_time
        last_time = info.in_commit_timestamp
        inside = [each for each in begun if each.txn.txn_id in transactions_of(info)]
        inside.sort(key=lambda each: each.number)
        for each in inside:
            assert each.member.outcome.version == version
            assert info.txn_id == each.member.outcome.txn_id
            assert (info.user_metadata or None) == each.wanted.text
            # Nothing that it looked up was recorded between its start and its place in the order.
            for app in each.wanted.looks_up:
                assert recorded.get(app, (0, -1))[1] <= each.read_version
            order.append(each)
            recorded |= {app: (n, version) for app, n in each.wanted.records.items()}
        found = {a.app_id: a.version for a in actions if isinstance(a, SetTransaction)}
        if not inside:
            recorded |= {app: (n, version) for app, n in found.items()}
        else:
            assert found == {k: v for each in inside for k, v in each.wanted.records.items()}
            adds = [a for a in actions if isinstance(a, AddFile)]
            assert [a.path for a in adds] == [name for each in inside for name in each.files]
            for add in adds:
                assert (add.base_row_id, add.default_row_commit_version) == (next_row_id, version)
                next_row_id += json.loads(add.stats)["numRecords"]
    assert {app: item.version for app, item in latest.set_transactions.items()} == {
        app: n for app, (n, _) in recorded.items()
    }
    assert {id(each) for each in order} == {
        id(each) for each in by_id.values() if not isinstance(each.member.outcome, OptimistError)
    }
    for each in begun:
        if each in order:
            continue
        error = each.member.outcome
        assert isinstance(error, ConcurrentTransactionException)
        won = error.conflict.winning_version
        assert won > each.read_version
        taken = read_commit(table.log.store, commit_path(table.log.log_path, won))
        apps = {a.app_id for a in taken if isinstance(a, SetTransaction)}
        assert apps & each.wanted.looks_up
