"""Snapshots: loading, following commits, gates, files, scans."""

import itertools
import threading
from dataclasses import replace

import pytest

from optimist.core.errors import ProtocolError, SchemaError, TableError, UsageError
from optimist.core.log.checksum import write_checksum
from optimist.core.log.names import classic_checkpoint_name, commit_path, log_path_of
from optimist.core.log.segment import list_segment
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import FileStatus
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.snapshot import KnownCommit, Snapshot
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS
SCHEMA = StructType(
    (
        StructField("month", PrimitiveType("integer")),
        StructField("delay", PrimitiveType("long")),
    )
)


class CountingStore(MemoryLogStore):
    """Says which files were read."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.reads = []

    def read_bytes(self, path):
        self.reads.append(path.rpartition("/")[2])
        return super().read_bytes(path)


class Table:
    def __init__(self, configuration=None, protocol=None, options=None):
        self.table_path = f"memory://snapshots/t{next(_COUNTER)}"
        self.path = log_path_of(self.table_path)
        self.clock = ManualClock(now_ms=NOW_MS)
        self.store = CountingStore(clock=self.clock)
        self.options = EngineOptions.from_options(options or {})
        self.next_version = 0
        metadata = Metadata(
            "id",
            schema_to_json(SCHEMA),
            partition_columns=("month",),
            configuration=configuration or {},
        )
        self.start = (CommitInfo(operation="CREATE"), protocol or Protocol(1, 2), metadata)

    def created(self, *actions):
        return self.commit(*self.start, *actions)

    def commit(self, *actions):
        data = actions_to_bytes(actions)
        self.store.put_if_absent(commit_path(self.path, self.next_version), data)
        self.next_version += 1
        return self

    def segment(self, **arguments):
        return list_segment(self.store, self.path, **arguments)

    def load(self, **arguments):
        return Snapshot.load(
            self.store,
            self.table_path,
            self.segment(**arguments),
            options=self.options,
            clock=self.clock,
        )

    def checkpoint(self):
        write_checkpoint(self.store, self.load(), options=self.options, clock=self.clock)
        return self


def add(name, month=1, low=0, high=9):
    stats = (
        f'{{"numRecords":10,"minValues":{{"delay":{low}}},'
        f'"maxValues":{{"delay":{high}}},"nullCount":{{"delay":0}}}}'
    )
    return AddFile(name, {"month": str(month)}, 100, 1, True, stats=stats)


def names(snapshot):
    return sorted(snapshot.files["path"].to_pylist())


def status(version):
    return FileStatus(commit_path("/t/_delta_log", version), 0, 1)


def test_a_loaded_table_is_all_there():
    table = Table({"delta.checkpointInterval": "5"}).created(
        add("a"), SetTransaction("app", 3), DomainMetadata("d", "{}")
    )
    table.commit(add("b", 2), add("a").remove(NOW_MS))
    snapshot = table.load()
    assert (snapshot.version, snapshot.table_path) == (1, table.table_path)
    assert (snapshot.protocol, snapshot.schema) == (Protocol(1, 2), SCHEMA)
    assert snapshot.partition_columns == ("month",)
    assert snapshot.partition_schema == StructType(SCHEMA.fields[:1])
    assert snapshot.properties.checkpoint_interval == 5
    assert snapshot.set_transactions["app"].version == 3
    assert set(snapshot.domain_metadata) == {"d"}
    assert names(snapshot) == ["b"]
    assert snapshot.tombstones["path"].to_pylist() == ["a"]
    assert (snapshot.num_files, snapshot.size_in_bytes) == (1, 100)
    assert snapshot.timestamp_ms == NOW_MS
    assert "version=1" in repr(snapshot)


def test_the_absent_table_is_empty_and_becomes_version_0():
    absent = Snapshot.absent("/t")
    assert (absent.version, absent.num_files, absent.size_in_bytes) == (-1, 0, 0)
    assert (absent.segment, absent.checksum, absent.timestamp_ms) == (None, None, 0)
    assert len(absent.schema) == 0
    first = absent.with_commits([KnownCommit(0, (*Table().start, add("a")), status(0))])
    assert (first.version, names(first), first.schema) == (0, ["a"], SCHEMA)
    assert (first.checksum.num_files, absent.num_files) == (1, 0)


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_following_commits_of_our_own_gives_what_loading_gives(at_once):
    table = Table().created(add("a"), add("b"))
    table.commit(CommitInfo(), add("x"))
    snapshot = table.load()
    assert snapshot.num_files == 3
    history = [
        (CommitInfo(), add("c")),
        (CommitInfo(), add("a").remove(NOW_MS), add("c").remove(NOW_MS), SetTransaction("app", 1)),
        (Metadata("id", schema_to_json(StructType(SCHEMA.fields[1:]))), replace(add("c"), size=7)),
    ]
    for actions in history:
        table.commit(*actions)
    known = [KnownCommit(n, actions, status(n)) for n, actions in enumerate(history, 2)]
    for first in range(0, 3, at_once):
        snapshot = snapshot.with_commits(known[first : first + at_once])
    loaded = table.load()
    assert names(snapshot) == names(loaded) == ["b", "c", "x"]
    assert (loaded.num_files, loaded.checksum) == (3, snapshot.checksum)
    assert snapshot.schema == loaded.schema
    assert snapshot.partition_columns == ()
    assert dict(snapshot.set_transactions) == dict(loaded.set_transactions)
    assert snapshot.tombstones == loaded.tombstones
    assert snapshot.segment.version == 4


def test_a_snapshot_does_not_change_when_its_table_does():
    table = Table().created(add("a"))
    before = table.load()
    after = before.with_commits([KnownCommit(1, (add("b"), add("a").remove(NOW_MS)), status(1))])
    assert (names(after), names(before)) == (["b"], ["a"])
    assert before.tombstones.num_rows == 0


def test_a_commit_that_does_not_follow_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="does not follow"):
        Table().created().load().with_commits([KnownCommit(2, (), status(2))])


def test_an_update_reads_only_the_new_commits():
    table = Table().created(add("a")).commit(add("b"))
    snapshot = table.load()
    table.commit(add("c")).commit(add("d"))
    table.store.reads.clear()
    newer = snapshot.updated_to(table.store, table.segment())
    assert names(newer) == ["a", "b", "c", "d"]
    assert table.store.reads == [commit_path("", 2)[1:], commit_path("", 3)[1:]]
    assert newer.updated_to(table.store, table.segment()) is newer


def test_an_update_does_not_read_a_checkpoint_it_does_not_need():
    table = Table().created(add("a")).commit(add("b"))
    snapshot = table.load()
    table.checkpoint().commit(add("c"))
    table.store.reads.clear()
    newer = snapshot.updated_to(table.store, table.segment())
    assert (newer.segment.checkpoint_version, names(newer)) == (1, ["a", "b", "c"])
    assert table.store.reads == [commit_path("", 2)[1:]]


def test_an_update_past_a_newer_checkpoint_loads_from_it():
    table = Table().created(add("a"))
    snapshot = table.load()
    table.commit(add("b")).checkpoint().commit(add("c"))
    for version in (0, 1):
        table.store.put_overwrite(commit_path(table.path, version), b"torn")
    assert names(snapshot.updated_to(table.store, table.segment())) == ["a", "b", "c"]


def test_a_table_made_anew_under_the_same_path_is_loaded_anew():
    table = Table().created(add("a")).commit(add("b"))
    snapshot = table.load()
    for version in (0, 1):
        table.store.delete(commit_path(table.path, version))
    table.clock.advance(60)
    table.next_version = 0
    table.created(add("x")).commit(add("y"))
    assert names(snapshot.updated_to(table.store, table.segment())) == ["x", "y"]
    assert snapshot.updated_to(table.store, table.segment(version=0)).version == 0


@pytest.mark.parametrize(
    ("actions", "missing"),
    [((Protocol(1, 2),), "metadata"), ((Table().start[2],), "protocol")],
)
def test_a_state_without_protocol_or_metadata_is_an_error(actions, missing):
    with pytest.raises(TableError, match=f"no {missing}") as caught:
        Table().commit(*actions).load()
    assert caught.value.kind == "DELTA_STATE_RECOVER_ERROR"


def test_the_read_gate_is_asked_on_loading_and_on_updating():
    table = Table().created()
    snapshot = table.load()
    features = ("fromTheFuture",)
    table.commit(Protocol(3, 7, features, features))
    for attempt in (table.load, lambda: snapshot.updated_to(table.store, table.segment())):
        with pytest.raises(ProtocolError, match="fromTheFuture") as caught:
            attempt()
        assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


def test_expired_transactions_are_not_shown():
    table = Table({"delta.setTransactionRetentionDuration": "interval 1 day"}).created(
        SetTransaction("old", 1, NOW_MS - DAY_MS),
        SetTransaction("young", 1, NOW_MS - DAY_MS + 1),
        SetTransaction("undated", 1),
    )
    assert set(table.load().set_transactions) == {"young"}


def test_expired_tombstones_are_not_shown():
    table = Table({"delta.deletedFileRetentionDuration": "interval 1 day"}).created(
        RemoveFile("old", NOW_MS - DAY_MS),
        RemoveFile("young", NOW_MS - DAY_MS + 1),
        RemoveFile("undated"),
    )
    assert table.load().tombstones["path"].to_pylist() == ["young"]


def test_the_time_of_a_version_is_its_in_commit_timestamp_where_there_is_one():
    features = ("inCommitTimestamp",)
    table = Table(
        {"delta.enableInCommitTimestamps": "true"},
        Protocol(1, 7, writer_features=features),
    )
    table.commit(CommitInfo(in_commit_timestamp=77), *table.start[1:])
    table.store.reads.clear()
    snapshot = table.load()
    assert snapshot.timestamp_ms == 77
    assert len(table.store.reads) == 1
    assert (
        snapshot.with_commits(
            [KnownCommit(1, (CommitInfo(in_commit_timestamp=78),), status(1))]
        ).timestamp_ms
        == 78
    )
    table.checkpoint()
    assert table.load().timestamp_ms == 77


def test_without_commit_info_there_is_no_in_commit_timestamp():
    table = Table(
        {"delta.enableInCommitTimestamps": "true"},
        Protocol(1, 7, writer_features=("inCommitTimestamp",)),
    )
    table.commit(*table.start[1:])
    with pytest.raises(TableError) as caught:
        _ = table.load().timestamp_ms
    assert caught.value.kind == "DELTA_MISSING_COMMIT_INFO"


def test_a_scan_prunes_by_partition_and_by_statistics():
    table = Table().created(add("a", 1, 0, 9), add("b", 1, 10, 19), add("c", 2, 10, 19))
    snapshot = table.load()
    for _ in range(2):
        scan = snapshot.scan("MONTH = 1 AND delay > 10")
        assert scan.files["path"].to_pylist() == ["b"]
        assert (len(scan.split.partition), len(scan.split.data)) == (1, 1)
        assert scan.predicate.columns() == {("month",), ("delay",)}
    assert sorted(snapshot.scan("delay >= 10").files["path"].to_pylist()) == ["b", "c"]
    assert snapshot.scan(Predicate.parse("month = 2")).files["path"].to_pylist() == ["c"]
    assert snapshot.scan().files is snapshot.files
    assert snapshot.scan().predicate == Predicate.TRUE


def test_skipping_by_statistics_can_be_switched_off():
    table = Table(options={"spark.databricks.delta.stats.skipping": "false"})
    snapshot = table.created(add("a", 1, 0, 9), add("b", 2, 0, 9)).load()
    assert names(snapshot.scan("delay = 50")) == ["a", "b"]
    assert names(snapshot.scan("delay = 50 AND month = 2")) == ["b"]


def test_a_scan_for_a_column_that_does_not_exist_is_refused():
    snapshot = Table().created().load()
    with pytest.raises(UsageError) as caught:
        snapshot.scan("nothing = 1")
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
    with pytest.raises(SchemaError):
        snapshot.physical_name("nothing")
    assert snapshot.physical_name("DELAY") == "delay"


def test_the_checksum_follows_our_own_commits():
    snapshot = Snapshot.absent("/t")
    snapshot = snapshot.with_commits([KnownCommit(0, (*Table().start, add("a")), status(0))])
    snapshot = snapshot.with_commits([KnownCommit(1, (CommitInfo(), add("b")), status(1))])
    assert (snapshot.checksum.num_files, snapshot.checksum.table_size_bytes) == (2, 200)
    assert not snapshot._state.files.is_resolved


def test_the_checksum_of_a_loaded_version_is_read_from_its_file():
    table = Table().created(add("a"))
    assert table.load().checksum is None
    first = table.load()
    assert first.num_files == 1
    assert first.checksum.num_files == 1
    write_checksum(table.store, table.path, 0, first.checksum)
    assert table.load().checksum == first.checksum


def test_the_checksum_of_an_update_is_read_where_there_was_one_before():
    table = Table().created(add("a"))
    first = Snapshot.absent(table.table_path).with_commits(
        [KnownCommit(0, (*table.start, add("a")), table.segment().commits[0])]
    )
    second = first.with_commits([KnownCommit(1, (CommitInfo(), add("b")), status(1))])
    table.commit(CommitInfo(), add("b"))
    write_checksum(table.store, table.path, 1, second.checksum)
    updated = first.updated_to(table.store, table.segment())
    assert updated.checksum == second.checksum


def test_no_checksum_is_derived_where_none_is_written():
    options = EngineOptions.from_options(
        {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
    )
    absent = Snapshot.absent("/t", options=options)
    snapshot = absent.with_commits([KnownCommit(0, (*Table().start, add("a")), status(0))])
    assert snapshot.checksum is None


def test_threads_share_one_reading_of_the_files():
    table = Table().created(*(add(f"f{number}") for number in range(50))).checkpoint()
    table.commit(add("late"))
    snapshot = table.load()
    table.store.reads.clear()
    barrier = threading.Barrier(8)
    found = []

    def look():
        barrier.wait()
        found.append(snapshot.files)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(files is found[0] for files in found)
    assert table.store.reads == [classic_checkpoint_name(0)]
