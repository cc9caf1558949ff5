"""Versions by time, and history (spec 5.7; vector 13.6)."""

import itertools

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import StorageError, TableError, UsageError
from optimist.core.log.names import classic_checkpoint_name, commit_path, log_path_of
from optimist.core.log.segment import list_segment
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import CommitInfo, Metadata, Protocol, actions_to_bytes
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import (
    adjusted_timestamps,
    commit_history,
    earliest_recreatable_version,
    ensure_version_exists,
    parse_timestamp,
    version_at_timestamp,
)
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore
from refusals import kind_of

_COUNTER = itertools.count()
ICT = "delta.enableInCommitTimestamps"
ENABLED_AT = "delta.inCommitTimestampEnablementVersion"
ENABLED_MS = "delta.inCommitTimestampEnablementTimestamp"


class Table:
    """A log whose commits have the given modification times and in-commit timestamps."""

    def __init__(self, modified_ms, *, in_commit_ms=(), configuration=None, first=0):
        self.table_path = f"memory://times/t{next(_COUNTER)}"
        self.path = log_path_of(self.table_path)
        self.clock = ManualClock()
        self.store = MemoryLogStore(clock=self.clock)
        features = ("inCommitTimestamp",) if configuration else None
        protocol = Protocol(1, 7 if configuration else 2, writer_features=features)
        metadata = Metadata(
            "id", '{"type":"struct","fields":[]}', configuration=configuration or {}
        )
        for offset, time_ms in enumerate(modified_ms):
            self.clock.set_now_ms(time_ms)
            own = in_commit_ms[offset] if in_commit_ms else None
            info = CommitInfo(operation=f"OP {first + offset}", in_commit_timestamp=own)
            self.put(first + offset, (info, protocol, metadata))

    def put(self, version, actions):
        data = actions_to_bytes(tuple(actions))
        self.store.put_if_absent(commit_path(self.path, version), data)

    def latest(self):
        segment = list_segment(self.store, self.path)
        return Snapshot.load(
            self.store, self.table_path, segment, options=EngineOptions(), clock=self.clock
        )

    def at(self, time_ms, **arguments):
        return version_at_timestamp(
            self.store, self.path, time_ms, latest=self.latest(), **arguments
        )

    def history(self, limit=None, latest=2):
        return commit_history(self.store, self.path, limit=limit, latest_version=latest)


def test_modification_times_are_made_strictly_increasing():
    assert adjusted_timestamps([5, 3, 3, 10]) == [5, 6, 7, 10]
    assert adjusted_timestamps([]) == []


@pytest.mark.parametrize(("time_ms", "version"), [(5, 0), (6, 1), (7, 2), (9, 2), (10, 3)])
def test_the_newest_version_that_is_not_younger(time_ms, version):
    assert Table([5, 3, 3, 10]).at(time_ms) == version


def test_a_time_outside_the_log_is_an_error_that_names_its_end():
    table = Table([5, 6, 7])
    with pytest.raises(TableError, match=r"1970-01-01 00:00:00\.005Z") as early:
        table.at(4)
    assert early.value.kind == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    with pytest.raises(TableError, match=r"1970-01-01 00:00:00\.007Z") as late:
        table.at(8)
    assert late.value.kind == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    assert table.at(8, accept_last=True) == 2


def test_with_in_commit_timestamps_from_the_start_files_times_mean_nothing():
    table = Table([900, 1, 500], in_commit_ms=[10, 20, 30], configuration={ICT: "true"})
    assert [table.at(time_ms) for time_ms in (10, 19, 20, 30)] == [0, 0, 1, 2]
    assert table.latest().timestamp_ms == 30
    assert kind_of(table.at, 9) == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


@pytest.mark.parametrize(
    ("time_ms", "version"), [(100, 0), (150, 1), (299, 1), (300, 2), (310, 3), (320, 3)]
)
def test_before_the_enablement_files_times_count_and_after_it_the_commits_own(time_ms, version):
    table = Table(
        [100, 150, 9000, 9001, 9002],
        in_commit_ms=[None, None, 300, 310, 330],
        configuration={ICT: "true", ENABLED_AT: "2", ENABLED_MS: "300"},
    )
    assert table.at(time_ms) == version


@pytest.mark.parametrize("enabled_ms", [{}, {ENABLED_MS: "200"}])
def test_an_enablement_that_is_to_come_leaves_the_files_times(enabled_ms):
    table = Table(
        [100, 150, 300],
        in_commit_ms=[1, 2, 3],
        configuration={ICT: "true", ENABLED_AT: "999", **enabled_ms},
    )
    assert [table.at(time_ms) for time_ms in (100, 200, 300)] == [0, 1, 2]


def test_no_version_begins_at_what_only_claims_to_be_a_later_checkpoint():
    table = Table([1, 2], first=5)
    table.store.put_if_absent(f"{table.path}/{classic_checkpoint_name(999)}", b"nonsense")
    found = kind_of(earliest_recreatable_version, table.store, table.path)
    assert found == "DELTA_NO_RECREATABLE_HISTORY_FOUND"


def test_a_commit_without_its_in_commit_timestamp_is_an_error():
    table = Table([1, 2], in_commit_ms=[10, None], configuration={ICT: "true"})
    assert kind_of(table.at, 10) == "DELTA_MISSING_COMMIT_TIMESTAMP"
    assert kind_of(lambda: table.latest().timestamp_ms) == "DELTA_MISSING_COMMIT_TIMESTAMP"


def test_the_earliest_version_is_the_first_commit_or_a_checkpoint_before_the_commits():
    assert earliest_recreatable_version(Table([1, 2]).store, Table([1]).path) == 0
    table = Table([1, 2, 3], first=9)
    assert (
        kind_of(earliest_recreatable_version, table.store, table.path)
        == "DELTA_NO_RECREATABLE_HISTORY_FOUND"
    )
    table.store.put_if_absent(f"{table.path}/{classic_checkpoint_name(10)}", b"x")
    assert earliest_recreatable_version(table.store, table.path) == 10
    table.store.put_if_absent(f"{table.path}/{classic_checkpoint_name(8)}", b"x")
    assert earliest_recreatable_version(table.store, table.path) == 8


@pytest.mark.parametrize("configuration", [{}, {ICT: "true"}])
def test_the_earliest_version_can_be_read_although_its_own_commit_is_gone(configuration):
    table = Table([1, 2, 3], in_commit_ms=[1, 2, 3], configuration=configuration)
    segment = list_segment(table.store, table.path, version=1)
    options = EngineOptions()
    kept = Snapshot.load(table.store, table.table_path, segment, options=options, clock=table.clock)
    write_checkpoint(table.store, kept, options=options, clock=table.clock)
    for version in (0, 1):
        table.store.delete(commit_path(table.path, version))
    assert earliest_recreatable_version(table.store, table.path) == 1
    log = DeltaLog(table.table_path, table.store, clock=table.clock)
    found = log.snapshot(1)
    assert (found.version, found.metadata) == (1, kept.metadata)
    assert found.timestamp_ms == 3, "the time until which nothing of the version was removed"
    assert log.snapshot().version == 2
    assert found.log_identity == log.snapshot().log_identity, "the same log"
    assert log.start_transaction(found).commit([], Operation("WRITE")).version == 3
    late = log.start_transaction(found)
    last = table.store.read_bytes(commit_path(table.path, 2))
    for version in (2, 3):
        table.store.delete(commit_path(table.path, version))
    table.clock.advance(60)
    table.store.put_if_absent(commit_path(table.path, 2), last)
    with pytest.raises(StorageError) as caught:
        late.commit([], Operation("WRITE"))
    assert caught.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    table.store.delete(commit_path(table.path, 2))
    assert kind_of(lambda: list_segment(table.store, table.path, version=1)) == (
        "DELTA_LOG_FILE_NOT_FOUND"
    )


def test_a_log_without_commits_has_no_history():
    table = Table([])
    table.store.put_if_absent(f"{table.path}/{classic_checkpoint_name(10)}", b"x")
    assert kind_of(earliest_recreatable_version, table.store, table.path) == (
        "DELTA_NO_COMMITS_FOUND"
    )


@pytest.mark.parametrize("version", [-1, 2])
def test_a_version_outside_the_log_is_an_error_that_names_both_ends(version):
    table = Table([1, 2])
    ensure_version_exists(table.store, table.path, 1, latest_version=1)
    with pytest.raises(TableError) as caught:
        ensure_version_exists(table.store, table.path, version, latest_version=1)
    assert caught.value.kind == "DELTA_VERSION_NOT_FOUND"
    assert (caught.value.fields["earliest"], caught.value.fields["latest"]) == (0, 1)
    assert "were removed" not in str(caught.value)


def test_the_history_is_newest_first():
    records = Table([5, 3, 3]).history()
    assert [record.version for record in records] == [2, 1, 0]
    assert [record.info.operation for record in records] == ["OP 2", "OP 1", "OP 0"]
    assert [record.timestamp_ms for record in records] == [7, 6, 5]


def test_the_history_reads_no_more_than_it_is_asked_for():
    table = Table([5, 6, 7])
    table.store.put_overwrite(commit_path(table.path, 0), b"")
    assert [record.version for record in table.history(limit=2)] == [2, 1]
    assert table.history(limit=0) == []
    assert kind_of(table.history, limit=3) == "OPTIMIST_MALFORMED_COMMIT"


def test_the_history_tells_the_commits_own_time_where_it_has_one():
    table = Table([900, 901], in_commit_ms=[10, 20], configuration={ICT: "true"})
    assert [record.timestamp_ms for record in table.history(latest=1)] == [20, 10]


def test_a_commit_without_commit_info_is_in_the_history():
    table = Table([5])
    table.put(1, (Protocol(1, 2),))
    assert table.history(latest=1)[0].info is None


def test_the_history_ends_where_the_log_was_cleaned_up():
    assert [record.version for record in Table([1, 2], first=7).history(latest=8)] == [8, 7]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0),
        ("1970", 0),
        ("1970-02", 31 * 86_400_000),
        ("1970-01-01 00:00:01", 1000),
        (" 1970-01-01T00:00:01.5 ", 1500),
        ("1970-01-01T00:00:01.123456789Z", 1123),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1970-01-01 01:00:00 +0100", 0),
        ("1969-12-31 19:00:00 GMT-5", 0),
        ("1970-01-01 00:00 UTC", 0),
        ("1969-12-31 23:59:59.999", -1),
        ("1970-1-1 0:00:01", 1000),
    ],
)
def test_timestamps_in_iso_and_in_sparks_spelling(text, expected):
    assert parse_timestamp(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-13-01",
        "2026-02-30",
        "2026-01-01 25:00",
        "20260101",
        "now()",
        "2026-01-01 10:00 Nowhere/Atall",
        "2026-01-01 10:00:00 ../etc",
        "0000-01-01",
    ],
)
def test_what_is_no_timestamp_is_refused(text):
    with pytest.raises(UsageError) as caught:
        parse_timestamp(text)
    assert caught.value.kind == "DELTA_TIMESTAMP_INVALID"


DAY_MS = 86_400_000
BEYOND = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
ENFORCED = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"


def log_of(table, **options):
    return DeltaLog(
        table.table_path,
        table.store,
        options=EngineOptions.from_options(options),
        clock=table.clock,
    )


def test_rows_of_a_version_older_than_deleted_files_are_kept_are_refused():
    table = Table([0, DAY_MS, 2 * DAY_MS])
    table.clock.set_now_ms(8 * DAY_MS)
    log = log_of(table)
    with pytest.raises(TableError, match="168 hours") as caught:
        log.snapshot(0, to_read=True)
    assert caught.value.kind == BEYOND
    assert log.snapshot(1, to_read=True).version == 1  # exactly as old as files are kept
    assert log.snapshot(0).version == 0
    assert log_of(table, **{ENFORCED: "false"}).snapshot(0, to_read=True).version == 0


def test_the_newest_version_may_be_as_old_as_it_likes():
    table = Table([0, DAY_MS])
    table.clock.set_now_ms(900 * DAY_MS)
    assert log_of(table).snapshot(1, to_read=True).version == 1
