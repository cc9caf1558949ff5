"""`N.crc` beside commits that are legal but odd: it says what a plain replay says, or it is absent.

Files are added again while they are live, removed when they are not, or both twice; application
transactions expire; domains are removed; others write between our commits; checkpoints come and
go. And whatever a checksum of ours says, nobody is kept from the table by it.
"""

import itertools
import json
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import StorageError, TableError, UsageError
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.checksum import VersionChecksum, checksum_of_files
from optimist.core.log.names import checksum_name, commit_path, log_path_of
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
DAY_S = 86_400
RETENTION = "delta.setTransactionRetentionDuration"
SCHEMA = '{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}}]}'
FEATURES = ("deletionVectors", "domainMetadata", "inCommitTimestamp")
PROTOCOL = Protocol(3, 7, ("deletionVectors",), FEATURES)
BASE = {"delta.checkpointInterval": "4", "delta.enableDeletionVectors": "true"}
STATS = '{"numRecords":9,"tightBounds":false}'
NEW = "part-00000-8a0ff1ae-3d4b-4c5e-9f00-{:012x}.c000.zstd.parquet"
"""Of such names each is given to one file only, as every writer does."""


def metadata(**configuration):
    return Metadata("id", SCHEMA, configuration={**BASE, **configuration})


_paths = st.sampled_from(["a", "b", "%63", "c", NEW])
_vectors = st.sampled_from([None, None, DeletionVectorDescriptor("i", "wi5b", 40, 6)])
_sizes = st.integers(1, 20_000)
_adds = st.builds(
    lambda path, vector, size, change: AddFile(
        path, {}, size, 1, change, stats=STATS, deletion_vector=vector
    ),
    _paths,
    _vectors,
    _sizes,
    st.booleans(),
)
_removes = st.builds(
    lambda path, vector, size, extended: RemoveFile(
        path, 5, True, extended_file_metadata=extended, size=size, deletion_vector=vector
    ),
    _paths,
    _vectors,
    st.none() | _sizes,
    st.booleans(),
)
_transactions = st.builds(
    SetTransaction,
    st.sampled_from(["app", "other"]),
    st.integers(0, 9),
    st.none() | st.sampled_from([1, 1_800_000_000_000]),
)
_domains = st.builds(
    DomainMetadata, st.sampled_from(["d", "e"]), st.just("{}"), removed=st.booleans()
)
_actions = st.lists(_adds | _removes | _transactions | _domains, min_size=1, max_size=4)
_operations = st.sampled_from(["WRITE", "DELETE", "COMPUTE STATS", "Manual Update"])
_ours = st.tuples(st.just("commit"), _actions, _operations)
_of_read = st.tuples(
    st.just("commit_of_read"), _actions, _operations, st.lists(_paths, min_size=1, max_size=3)
)
_theirs = st.tuples(st.just("foreign"), _actions, _operations)
_others = st.sampled_from([("look",), ("checkpoint",), ("wait",), ("forget",)])
# Another engine's commit has no checksum, so that little can be derived until the next look.
_steps = st.lists(_ours | _ours | _of_read | _of_read | _others | _theirs, min_size=4, max_size=12)


class Table:
    """A table that our handle and another writer change in turn."""

    def __init__(self, configuration):
        self.path = f"memory://odd-checksums/t{next(_COUNTER)}"
        self.log_path = log_path_of(self.path)
        self.clock = ManualClock(now_ms=1_800_000_000_000)
        self.store = MemoryLogStore(clock=self.clock)
        self.log = self.open()
        self.num_new = 0
        txn = self.log.start_transaction()
        txn.commit([PROTOCOL, metadata(**configuration)], Operation("CREATE TABLE"))

    def open(self):
        return DeltaLog(self.path, self.store, clock=self.clock)

    def commit(self, actions, operation):
        with suppress(UsageError):  # what we refuse to write, others may
            self.log.start_transaction().commit(self._named(actions), Operation(operation))

    def commit_of_read(self, actions, operation, paths):
        """Commit after a read of the files at some paths."""
        txn = self.log.start_transaction()
        txn.depend_on(txn.snapshot.files_at(pa.array(paths)))
        with suppress(UsageError):
            txn.commit(self._named(actions), Operation(operation))

    def foreign(self, actions, operation):
        """Another engine commits, and writes no checksum."""
        version = self.log.snapshot().version + 1
        time_ms = self.clock.now_ms()
        info = CommitInfo(
            operation=operation, txn_id=f"foreign-{version}", in_commit_timestamp=time_ms
        )
        data = actions_to_bytes((info, *self._named(actions)))
        self.store.put_if_absent(commit_path(self.log_path, version), data)

    def _named(self, actions):
        """The actions as they may stand in one commit, with a name of its own for each new file."""
        named = []
        for item in _once(actions):
            if getattr(item, "path", None) == NEW:
                self.num_new += isinstance(item, AddFile)
                item = replace(item, path=NEW.format(self.num_new))
            named.append(item)
        return named

    def look(self):
        self.log.files()

    def checkpoint(self):
        self.log.checkpoint()

    def wait(self):
        self.clock.advance(8 * DAY_S)

    def forget(self):
        """A process that has seen nothing goes on."""
        self.log = self.open()

    def checksums(self):
        for version in range(self.log.snapshot().version + 1):
            try:
                data = self.store.read_bytes(f"{self.log_path}/{checksum_name(version)}")
            except StorageError:
                continue
            yield version, VersionChecksum.from_json(data.decode())


def _once(actions):
    """An application, or a domain, stands once in a commit."""
    once = {}
    for number, item in enumerate(actions):
        key = getattr(item, "app_id", None) or getattr(item, "domain", None) or number
        once[key] = item
    return list(once.values())


@pytest.mark.again
@settings(deadline=None, max_examples=5 * settings.default.max_examples)
@given(
    _steps,
    st.sampled_from(
        [
            {},
            {RETENTION: "interval 7 days"},
            {"delta.enableInCommitTimestamps": "true"},
            {"delta.checkpointPolicy": "classic"},
        ]
    ),
    st.booleans(),
)
def test_a_checksum_says_what_a_replay_says(steps, configuration, reads_in_part):
    table = Table(configuration)
    with pytest.MonkeyPatch.context() as patched:
        if reads_in_part:
            patched.setattr(CheckpointReader, "is_small", lambda _: False)
            table.commit([AddFile(path, {}, 10, 1, True, stats=STATS) for path in "abc"], "WRITE")
            table.checkpoint()
            table.forget()
        for step in steps:
            getattr(table, step[0])(*step[1:])
    for version, noted in table.checksums():
        snapshot = table.open().snapshot(version=version)
        state = snapshot._state.table
        told = checksum_of_files(snapshot.files, state=state, options=EngineOptions())
        for name in ("num_files", "table_size_bytes", "file_sizes", "deleted_record_counts"):
            assert getattr(noted, name) == getattr(told, name), (version, name)
        assert noted.num_deleted_records == told.num_deleted_records
        assert noted.num_deletion_vectors == told.num_deletion_vectors
        assert (noted.set_transactions is None) == (RETENTION in configuration)
        assert noted.domain_metadata is not None
        domains = {item.domain: item for item in noted.domain_metadata}
        assert domains == dict(snapshot.domain_metadata)
        has_times = "delta.enableInCommitTimestamps" in configuration
        assert (noted.in_commit_timestamp is not None) == has_times
        snapshot.ensure_intact()
    newest = table.open()
    files = newest.files()
    newest.checkpoint()
    txn = newest.start_transaction()
    txn.filter_files()
    txn.commit([AddFile("z", {}, 1, 1, True)], Operation("WRITE"))
    assert newest.snapshot().num_files == len(files) + 1


# Checksums that are wrong


def with_checksum(engine_info, *, at_checkpoint=False, **changed):
    """A table whose newest commit is by this engine, with a wrong checksum beside it."""
    table = Table({})
    table.commit([AddFile("a", {}, 10, 1, True), SetTransaction("app", 1, 5)], "WRITE")
    version = table.log.snapshot().version + 1
    info = CommitInfo(operation="WRITE", txn_id="t", engine_info=engine_info)
    data = actions_to_bytes((info, AddFile("b", {}, 5, 1, True)))
    table.store.put_if_absent(commit_path(table.log_path, version), data)
    snapshot = table.open().snapshot()
    assert snapshot.num_files == 2
    parsed = json.loads(snapshot.checksum.to_json()) | changed
    if at_checkpoint:
        table.open().checkpoint()
    table.store.put_overwrite(
        f"{table.log_path}/{checksum_name(version)}", json.dumps(parsed).encode()
    )
    return table


WRONG = [
    {"numFiles": 7},
    {"tableSizeBytes": 1},
    {"setTransactions": [{"appId": "gone", "version": 1}]},
]
OWN = ["Optimist/0.0.1", "Apache-Spark/4.0.0 Optimist/9.9"]


def append_after_a_look(log):
    log.files()
    log.start_transaction().commit([AddFile("c", {}, 1, 1, True)], Operation("WRITE"))


@pytest.mark.parametrize("at_checkpoint", [False, True])
@pytest.mark.parametrize("write", [append_after_a_look, DeltaLog.checkpoint])
@pytest.mark.parametrize("changed", WRONG, ids=str)
@pytest.mark.parametrize("engine", OWN)
def test_a_wrong_checksum_of_ours_stops_nobody(engine, changed, write, at_checkpoint, caplog):
    table = with_checksum(engine, at_checkpoint=at_checkpoint, **changed)
    write(table.open())
    assert "is wrong and is ignored" in caplog.text
    append_after_a_look(table.open())
    newest = table.open()
    assert newest.files().num_rows == newest.snapshot().checksum.num_files


@pytest.mark.parametrize("at_checkpoint", [False, True])
@pytest.mark.parametrize("engine", [None, "Apache-Spark/4.0.0 Delta-Lake/4.0.0", "NotOptimist/1"])
def test_a_wrong_checksum_of_another_engine_stops_who_builds_on_the_files(engine, at_checkpoint):
    table = with_checksum(engine, at_checkpoint=at_checkpoint, numFiles=7)
    with pytest.raises(TableError) as caught:
        append_after_a_look(table.open())
    assert caught.value.kind == "DELTA_TXN_LOG_FAILED_INTEGRITY"


def test_a_wrong_checksum_of_ours_is_not_handed_on():
    table = with_checksum(OWN[0], numFiles=7)
    append_after_a_look(table.open())
    version, noted = list(table.checksums())[-1]
    assert (version, noted.num_files) == (3, 3)


def test_transactions_that_a_checkpoint_dropped_are_no_damage():
    table = Table({RETENTION: "interval 7 days"})
    table.commit([SetTransaction("app", 1, 5), SetTransaction("other", 2)], "WRITE")
    version = table.log.snapshot().version
    path = f"{table.log_path}/{checksum_name(version)}"
    parsed = json.loads(table.store.read_bytes(path))
    listed = [{"appId": "app", "version": 1, "lastUpdated": 5}, {"appId": "other", "version": 2}]
    table.store.put_overwrite(path, json.dumps(parsed | {"setTransactions": listed}).encode())
    table.log.checkpoint()
    table.store.delete(commit_path(table.log_path, 0))
    table.open().checkpoint()
    append_after_a_look(table.open())
