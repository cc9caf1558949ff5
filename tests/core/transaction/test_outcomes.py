"""Answers lost at every step of a commit: none is doubled, none is lost, none misreported."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import CommitState, DeltaLog
from optimist.core.errors import CommitOutcomeUnknownError, PostCommitHookError, StorageError
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import CommitInfo
from optimist.core.testing import Fault, FaultyLogStore, Pause, When
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore, MemoryLogStore

WRITE = Operation.write("Append")
COMMIT_1 = f"{1:020}.json"
RETRYABLE = StorageError("busy", kind="OPTIMIST_TEST", retryable=True)
FATAL = StorageError("denied", kind="OPTIMIST_TEST", retryable=False)


@pytest.fixture
def table(make_table):
    return make_table(store=FaultyLogStore(MemoryLogStore({}))).create()


def put(when, **kwargs):
    return Fault("put_if_absent", when, name=COMMIT_1, **kwargs)


def append(table, name="ours"):
    return table.log.start_transaction().commit([table.add(name)], WRITE)


def adds(table):
    found = []
    for version in range(1, table.log.snapshot().version + 1):
        actions = read_commit(table.store, commit_path(table.log.log_path, version))
        found += [action.path for action in actions if type(action).KEY == "add"]
    return found


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("error", [None, ConnectionResetError("reset"), TimeoutError("slow")])
def test_a_lost_answer_is_settled_and_the_commit_lands_once(table, when, times, error):
    table.store.plan(put(when, times=times, error=error))
    result = append(table)
    assert result.version == 1
    assert adds(table) == ["ours"]
    if when is When.BEFORE:
        assert table.store.pending == ()


def test_a_lost_answer_whose_version_another_won_is_a_lost_race(table):
    def other_commits(path):
        table.poke(1, [CommitInfo(txn_id="other", is_blind_append=True), table.add("theirs")])

    table.store.plan(Pause("put_if_absent", When.BEFORE, other_commits, name=COMMIT_1))
    table.store.plan(put(When.AFTER))
    assert append(table).version == 2
    assert adds(table) == ["theirs", "ours"]


def put_twice(table, then=lambda: None):
    """Let the store make the next put twice within one call: the second is refused."""

    def first_try(path):
        table.store.inner.put_if_absent(path, captured["data"])
        then()

    captured = {}
    put_if_absent = table.store.put_if_absent

    def capturing(path, data):
        captured["data"] = data
        return put_if_absent(path, data)

    table.store.put_if_absent = capturing
    table.store.plan(Pause("put_if_absent", When.BEFORE, first_try, name=COMMIT_1))


def test_a_put_made_again_by_the_store_itself_is_found_to_be_ours(table):
    put_twice(table)
    result = append(table)
    assert result.version == 1
    assert adds(table) == ["ours"]


@pytest.mark.parametrize("error", [None, FATAL])
def test_it_is_found_to_be_ours_though_the_log_cannot_be_listed(table, error):
    fails = Fault("list_from", When.BEFORE, error=error)
    put_twice(table, lambda: table.store.plan(fails))
    txn = table.log.start_transaction()
    result = txn.commit([table.add("ours")], WRITE)
    assert (result.version, txn.outcome) == (1, CommitOutcome.COMMITTED)
    assert adds(table) == ["ours"]


def test_it_is_found_to_be_ours_though_no_time_is_left(make_table):
    options = {"spark.databricks.delta.maxCommitAttempts": "0"}
    table = make_table(store=FaultyLogStore(MemoryLogStore({})), options=options).create()
    put_twice(table)
    assert append(table).version == 1
    assert adds(table) == ["ours"]


def test_it_is_unknown_if_the_log_cannot_be_listed_nor_the_commit_be_read(table):
    fails = [Fault(name, When.BEFORE, error=FATAL) for name in ("list_from", "read_bytes")]
    put_twice(table, lambda: table.store.plan(*fails))
    txn = table.log.start_transaction()
    with pytest.raises(CommitOutcomeUnknownError):
        txn.commit([table.add("ours")], WRITE)
    assert txn.outcome is CommitOutcome.UNKNOWN
    assert table.log.resolve_commit(txn.txn_id).state is CommitState.LANDED


def test_another_s_commit_is_found_to_be_another_s_though_the_log_cannot_be_listed(table):
    def other_commits(path):
        table.poke(1, [CommitInfo(txn_id="other", is_blind_append=True), table.add("theirs")])
        table.store.plan(Fault("list_from", When.BEFORE, error=FATAL))

    table.store.plan(Pause("put_if_absent", When.BEFORE, other_commits, name=COMMIT_1))
    txn = table.log.start_transaction()
    with pytest.raises(StorageError, match="denied"):
        txn.commit([table.add("ours")], WRITE)
    assert txn.outcome is CommitOutcome.NOT_COMMITTED
    assert adds(table) == ["theirs"]


def test_an_unreadable_version_is_reported_as_unknown_and_can_be_resolved(table):
    table.store.plan(put(When.AFTER))
    table.store.plan(Fault("read_bytes", When.BEFORE, name=COMMIT_1, times=11))
    with pytest.raises(CommitOutcomeUnknownError) as raised:
        append(table)
    assert raised.value.version == 1
    resolution = table.log.resolve_commit(raised.value.txn_id)
    assert (resolution.state, resolution.version) == (CommitState.LANDED, 1)
    elsewhere = table.handle().resolve_commit(raised.value.txn_id)
    assert (elsewhere.state, elsewhere.version) == (CommitState.LANDED, 1)


def test_an_unanswered_put_that_never_arrives_is_pending_until_another_takes_the_version(table):
    table.store.plan(put(When.BEFORE, times=11))
    with pytest.raises(CommitOutcomeUnknownError) as raised:
        append(table)
    txn_id = raised.value.txn_id
    assert table.log.resolve_commit(txn_id).state is CommitState.PENDING
    assert append(table, "next").version == 1
    assert table.log.resolve_commit(txn_id).state is CommitState.NOT_LANDED
    assert adds(table) == ["next"]


def test_another_handle_calls_a_lost_put_not_landed_only_once_its_version_is_taken(table):
    table.store.plan(put(When.BEFORE, times=11))
    with pytest.raises(CommitOutcomeUnknownError) as raised:
        append(table)
    lost = raised.value
    elsewhere = table.handle()
    assert elsewhere.resolve_commit(lost.txn_id).state is CommitState.PENDING
    assert elsewhere.resolve_commit(lost.txn_id, lost.version).state is CommitState.PENDING
    assert append(table, "next").version == lost.version
    assert elsewhere.resolve_commit(lost.txn_id, lost.version).state is CommitState.NOT_LANDED
    assert elsewhere.resolve_commit(lost.txn_id).state is CommitState.PENDING


def test_a_retryable_refusal_is_tried_again_at_the_same_version(table):
    table.store.plan(put(When.BEFORE, error=RETRYABLE, times=3))
    assert append(table).version == 1
    assert len(table.clock.sleeps) == 3


@pytest.mark.parametrize("error", [FATAL, RETRYABLE])
def test_a_lasting_refusal_is_raised_and_nothing_is_written(table, error):
    table.store.plan(put(When.BEFORE, error=error, times=11))
    with pytest.raises(StorageError):
        append(table)
    assert table.log.snapshot().version == 0


def test_a_refusal_after_an_unanswered_put_leaves_the_outcome_unknown(table):
    table.store.plan(put(When.BEFORE), put(When.BEFORE, error=FATAL, on_call=2))
    with pytest.raises(CommitOutcomeUnknownError):
        append(table)


def test_files_of_an_append_stay_where_the_commit_stands_and_go_where_it_fails(tmp_path):
    store = FaultyLogStore(LocalLogStore({}))
    options = EngineOptions.from_options(
        {"spark.databricks.delta.postCommitHook.throwOnError": "true"}
    )
    log = DeltaLog(str(tmp_path), store, options)
    log.append(pa.table({"id": [1]}))
    store.plan(Fault("put_if_absent", When.BEFORE, name=f"{1:020}.crc", error=FATAL))
    with pytest.raises(PostCommitHookError):
        log.append(pa.table({"id": [2]}))
    store.plan(Fault("put_if_absent", When.BEFORE, name=f"{2:020}.json", error=FATAL))
    with pytest.raises(StorageError):
        log.append(pa.table({"id": [3]}))
    store.plan(Fault("put_if_absent", When.BEFORE, name=f"{2:020}.json", times=11))
    with pytest.raises(CommitOutcomeUnknownError):
        log.append(pa.table({"id": [4]}))
    assert len(list(tmp_path.glob("*.parquet"))) == 3
    assert log.snapshot().num_files == 2


def test_without_commit_info_the_bytes_decide(make_table):
    options = {"spark.databricks.delta.commitInfo.enabled": "false"}
    table = make_table(store=FaultyLogStore(MemoryLogStore({})), options=options).create()
    table.store.plan(put(When.AFTER))
    assert append(table).version == 1
    assert adds(table) == ["ours"]


def test_without_commit_info_nobody_says_what_became_of_a_commit(make_table):
    options = {"spark.databricks.delta.commitInfo.enabled": "false"}
    table = make_table(store=FaultyLogStore(MemoryLogStore({})), options=options).create()
    unreadable = Fault("read_bytes", When.BEFORE, name=COMMIT_1, error=FATAL, times=50)
    table.store.plan(put(When.AFTER), unreadable)
    with pytest.raises(CommitOutcomeUnknownError) as lost:
        append(table)
    table.store.clear()
    assert adds(table) == ["ours"]
    with pytest.raises(CommitOutcomeUnknownError, match=r"commitInfo\.enabled") as asked:
        table.log.resolve_commit(lost.value.txn_id, lost.value.version)
    assert (asked.value.txn_id, asked.value.version) == (lost.value.txn_id, 1)


def test_a_version_whose_file_was_cleaned_up_says_nothing(table):
    for name in ("a", "b"):
        append(table, name)
    table.log.checkpoint()
    table.store.delete(commit_path(table.log.log_path, 1))
    with pytest.raises(CommitOutcomeUnknownError, match="cleaned up"):
        table.log.resolve_commit("some-id", 1)


@pytest.mark.parametrize("operation", ["put_if_absent", "put_overwrite", "list_from", "read_bytes"])
def test_whatever_fails_after_the_commit_the_commit_is_reported(make_table, operation):
    configuration = {"delta.checkpointInterval": "1"}
    table = make_table(store=FaultyLogStore(MemoryLogStore({})), configuration=configuration)
    table.create()

    def break_everything(path):
        table.store.plan(Fault(operation, When.BEFORE, error=FATAL, times=100))

    txn = table.log.start_transaction()
    table.store.plan(Pause("put_if_absent", When.AFTER, break_everything, name=COMMIT_1))
    assert txn.commit([table.add("ours")], WRITE).version == 1
    table.store.clear()
    assert adds(table) == ["ours"]


@pytest.mark.parametrize(
    ("seen_ago_s", "first_version", "looks"), [(1.9, 0, 0), (2.1, 0, 1), (1.9, 1, 1)]
)
def test_a_commit_costs_one_put_and_no_read_without_contention(
    table, seen_ago_s, first_version, looks
):
    txn = table.log.start_transaction()
    answered_s = table.clock.monotonic_s() - 0.05 * seen_ago_s
    txn.snapshot.known_log.note_look(answered_s - 0.05, answered_s, first_version)
    table.store.clear()
    txn.commit([table.add("ours")], WRITE)
    commits = [call for call in table.store.calls if call[1].endswith(".json")]
    assert commits == [("put_if_absent", commit_path(table.log.log_path, 1))]
    # Whether the log still is the one that was read is asked, unless a listing has just told.
    assert table.store.counts["list_from"] == looks
    assert table.store.counts["read_bytes"] == 0
