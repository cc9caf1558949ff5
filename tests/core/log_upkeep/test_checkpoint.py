"""Classic checkpoints: written, read, damaged, and exchanged with another engine (spec 5.8)."""

import io
import itertools
import json
import logging

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core.errors import StorageError, TableError, TableNotFoundError
from optimist.core.log.checkpoint_kinds import CHECKPOINT_KINDS
from optimist.core.log.checksum import write_checksum
from optimist.core.log.file_table import add_files
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import (
    LogFileKind,
    classic_checkpoint_name,
    commit_path,
    log_path_of,
)
from optimist.core.log.segment import list_segment
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.snapshot import KnownCommit, Snapshot
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore, MemoryLogStore

_COUNTER = itertools.count()
OPTIONS = EngineOptions()
NOW_MS = 1_800_000_000_000
SCHEMA_TEXT = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
            {"name": "x", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)
DV = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, offset=4)


class Table:
    def __init__(self, store=None, path=None, configuration=None):
        self.table_path = path or f"memory://checkpoints/t{next(_COUNTER)}"
        self.path = log_path_of(self.table_path)
        self.clock = ManualClock(now_ms=NOW_MS)
        self.store = store or MemoryLogStore(clock=self.clock)
        self.store.ensure_directory(self.path)
        self.version = -1
        self.metadata = Metadata(
            "id",
            SCHEMA_TEXT,
            name="n",
            partition_columns=("p",),
            configuration=configuration or {"a.key": "value"},
            created_time=5,
        )
        self.commit(CommitInfo(operation="CREATE"), Protocol(1, 2), self.metadata)

    def commit(self, *actions):
        self.version += 1
        self.store.put_if_absent(
            commit_path(self.path, self.version), actions_to_bytes(tuple(actions))
        )
        return self

    def load(self, **arguments):
        segment = list_segment(self.store, self.path, **arguments)
        return Snapshot.load(
            self.store, self.table_path, segment, options=OPTIONS, clock=self.clock
        )

    def checkpoint(self, snapshot=None):
        return write_checkpoint(
            self.store, snapshot or self.load(), options=OPTIONS, clock=self.clock
        )

    def checkpoint_path(self, version=None):
        version = self.version if version is None else version
        return f"{self.path}/{classic_checkpoint_name(version)}"

    def parquet(self):
        return pq.read_table(io.BytesIO(self.store.read_bytes(self.checkpoint_path())))


def add(name, p="1", **values):
    return AddFile(name, {"p": p}, 10, 1, True, stats='{"numRecords":3}', **values)


def full_table():
    table = Table()
    table.commit(
        add("a", tags={"t": "1"}),
        add("b", p=None, deletion_vector=DV, base_row_id=3, default_row_commit_version=1),
        add("gone"),
        SetTransaction("app", 4, 9),
        DomainMetadata("d", "{}"),
        DomainMetadata("e", "{}"),
    )
    table.commit(CommitInfo(), add("gone").remove(NOW_MS), DomainMetadata("e", "", removed=True))
    return table


def test_the_state_is_the_same_from_the_checkpoint_alone():
    table = full_table()
    before = table.load()
    table.checkpoint()
    for version in range(table.version):
        table.store.delete(commit_path(table.path, version))
    table.store.put_overwrite(commit_path(table.path, table.version), b"not looked at")
    after = table.load()
    assert (after.version, after.segment.commits) == (2, ())
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert dict(after.set_transactions) == dict(before.set_transactions)
    assert dict(after.domain_metadata) == dict(before.domain_metadata)
    by_path = sorted(add_files(after.files), key=lambda item: item.path)
    assert by_path == sorted(add_files(before.files), key=lambda item: item.path)
    assert after.tombstones == before.tombstones


def test_the_columns_are_those_of_the_protocol():
    table = full_table()
    last = table.checkpoint()
    rows = table.parquet().to_pylist()
    kinds = [next(key for key, value in row.items() if value is not None) for row in rows]
    assert sorted(kinds) == [
        "add",
        "add",
        "domainMetadata",
        "metaData",
        "protocol",
        "remove",
        "txn",
    ]
    assert last.size == len(rows) == 7
    assert last.num_of_add_files == 2
    assert last.size_in_bytes == len(table.store.read_bytes(table.checkpoint_path()))
    adds = [row["add"] for row in rows if row["add"]]
    assert {item["dataChange"] for item in adds} == {False}
    removed = next(row["remove"] for row in rows if row["remove"])
    assert "stats" not in removed
    assert "tags" not in removed
    protocol = next(row["protocol"] for row in rows if row["protocol"])
    assert protocol["readerFeatures"] is None


def test_the_hint_names_the_checkpoint():
    table = full_table()
    table.checkpoint()
    assert read_last_checkpoint(table.store, table.path, clock=table.clock).version == 2


def test_features_are_listed_where_the_protocol_lists_them():
    table = Table().commit(Protocol(3, 7, ("timestampNtz",), ("timestampNtz", "appendOnly")))
    table.checkpoint()
    assert table.load().protocol == Protocol(
        3, 7, ("timestampNtz",), ("timestampNtz", "appendOnly")
    )


@pytest.mark.parametrize(
    ("as_json", "as_struct", "has_stats"),
    [
        ("true", "false", True),
        ("false", "false", False),
        ("false", "true", True),
        ("false", None, True),
    ],
)
def test_statistics_survive_in_a_checkpoint_if_the_table_wants_them(as_json, as_struct, has_stats):
    configuration = {"delta.checkpoint.writeStatsAsJson": as_json}
    if as_struct is not None:
        configuration["delta.checkpoint.writeStatsAsStruct"] = as_struct
    table = Table(configuration=configuration).commit(add("a"))
    table.checkpoint()
    assert (table.load().files["stats"].null_count == 0) == has_stats


def test_an_empty_table_can_be_checkpointed():
    table = Table()
    assert table.checkpoint().num_of_add_files == 0
    assert table.load().num_files == 0


def test_many_files_come_in_several_row_groups_and_all_come_back():
    table = Table().commit(*(add(f"p=1/f{number}") for number in range(3000)))
    snapshot = table.load()
    assert snapshot.num_files == 3000
    assert table.checkpoint().size == 3002
    data = table.store.read_bytes(table.checkpoint_path())
    assert pq.ParquetFile(io.BytesIO(data)).metadata.num_row_groups == 2
    assert sorted(table.load().files["path"].to_pylist()) == sorted(
        snapshot.files["path"].to_pylist()
    )


def test_a_checkpoint_that_is_there_already_is_as_good_as_ours():
    table = full_table()
    table.checkpoint()
    before = table.store.read_bytes(table.checkpoint_path())
    table.store.put_overwrite(f"{table.path}/_last_checkpoint", b"{}")
    table.checkpoint()
    assert table.store.read_bytes(table.checkpoint_path()) == before
    assert read_last_checkpoint(table.store, table.path, clock=table.clock).version == 2


def test_the_hint_does_not_tell_the_bytes_and_columns_of_a_checkpoint_that_is_not_ours():
    table = full_table()
    table.checkpoint()
    ours = read_last_checkpoint(table.store, table.path, clock=table.clock)
    assert ours.size_in_bytes is not None
    assert "checkpointSchema" in ours.extra
    other = pq.read_table(io.BytesIO(table.store.read_bytes(table.checkpoint_path())))
    written = io.BytesIO()
    pq.write_table(other.drop_columns("txn"), written, compression="none")
    table.store.put_overwrite(table.checkpoint_path(), written.getvalue())
    table.checkpoint()
    assert table.store.read_bytes(table.checkpoint_path()) == written.getvalue()
    theirs = read_last_checkpoint(table.store, table.path, clock=table.clock)
    assert (theirs.version, theirs.num_of_add_files) == (2, ours.num_of_add_files)
    assert theirs.size_in_bytes is None
    assert "checkpointSchema" not in theirs.extra


def test_no_table_can_be_checkpointed_where_there_is_none():
    with pytest.raises(TableNotFoundError):
        write_checkpoint(
            MemoryLogStore(), Snapshot.absent("/t"), options=OPTIONS, clock=ManualClock()
        )


class Answering(MemoryLogStore):
    """Stores what it is given, and answers as told."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)

    def put_if_absent(self, path, data):
        outcome = super().put_if_absent(path, data)
        if path.endswith(".parquet") and self.answers:
            return self.answers.pop(0)
        return outcome


def test_a_lost_answer_is_settled_by_asking_again():
    store = Answering(PutOutcome.UNKNOWN)
    table = Table(store=store).commit(add("a"))
    assert table.checkpoint().version == 1


def test_no_hint_is_written_while_it_is_unknown_whether_the_checkpoint_is_there():
    store = Answering(PutOutcome.UNKNOWN, PutOutcome.UNKNOWN)
    table = Table(store=store).commit(add("a"))
    with pytest.raises(StorageError) as caught:
        table.checkpoint()
    assert caught.value.kind == "OPTIMIST_WRITE_OUTCOME_UNKNOWN"
    assert read_last_checkpoint(store, table.path, clock=table.clock) is None


def test_a_version_that_contradicts_its_checksum_is_not_checkpointed(caplog):
    table = Table().commit(add("a"))
    snapshot = table.load()
    assert snapshot.num_files == 1
    wrong = Snapshot.absent("/other").with_commits(
        [
            KnownCommit(
                0,
                (Protocol(1, 2), table.metadata),
                list_segment(table.store, table.path).commits[0],
            )
        ]
    )
    write_checksum(table.store, table.path, 1, wrong.checksum)
    with pytest.raises(TableError, match="numFiles is 1, not 0") as caught:
        table.checkpoint(table.load())
    assert caught.value.kind == "DELTA_TXN_LOG_FAILED_INTEGRITY"
    lenient = EngineOptions.from_options(
        {"spark.databricks.delta.checksum.mismatch.fatal": "false"}
    )
    with caplog.at_level(logging.ERROR):
        segment = list_segment(table.store, table.path)
        snapshot = Snapshot.load(
            table.store, table.table_path, segment, options=lenient, clock=table.clock
        )
        write_checkpoint(table.store, snapshot, options=lenient, clock=table.clock)
    assert "does not agree with its version checksum" in caplog.text


def damaged(table, how, version=None):
    """Replace a checkpoint, the newest unless told, by a damaged one."""
    path = table.checkpoint_path(version)
    data = table.store.read_bytes(path)
    if how == "garbage":
        data = b"PAR1 this is no Parquet file PAR1"
    elif how == "cut":
        data = data[: len(data) // 2]
    elif how == "pages":
        # The footer is whole, the pages are not: this comes out only as the files are read.
        data = data[:4] + b"\xff" * (len(data) // 2 - 4) + data[len(data) // 2 :]
    elif how == "sidecars":
        sink = io.BytesIO()
        rows = [{"sidecar": {"path": "s.parquet", "sizeInBytes": 1}}]
        pq.write_table(pa.Table.from_pylist(rows), sink)
        data = sink.getvalue()
    table.store.put_overwrite(path, data)


@pytest.mark.parametrize("how", ["garbage", "cut", "pages", "sidecars"])
def test_a_damaged_checkpoint_is_passed_over_for_an_older_one_and_said_once(how, caplog):
    table = Table().commit(*(add(f"old{number}") for number in range(200)))
    table.checkpoint()
    table.commit(add("b")).commit(add("old0").remove(NOW_MS))
    table.checkpoint()
    damaged(table, how)
    for version in (0, 1):
        table.store.delete(commit_path(table.path, version))
    table.commit(add("c"))
    with caplog.at_level(logging.WARNING, logger="optimist.core.log"):
        snapshot = table.load()
        assert snapshot.num_files == 201
        assert snapshot.tombstones["path"].to_pylist() == ["old0"]
        assert snapshot.protocol == Protocol(1, 2)
    assert [record.message.count("can't be used") for record in caplog.records] == [1]


def test_a_damaged_checkpoint_without_an_older_way_is_a_clear_error():
    table = Table().commit(add("a"))
    table.checkpoint()
    damaged(table, "garbage")
    table.store.delete(commit_path(table.path, 0))
    with pytest.raises(TableError, match="can't be read") as caught:
        table.load()
    assert caught.value.kind == "OPTIMIST_MALFORMED_CHECKPOINT"
    assert caught.value.fields["path"] == table.checkpoint_path()


def test_only_as_many_checkpoints_are_tried_as_the_option_says():
    table = Table()
    for version in (1, 2, 3):
        table.commit(add(f"f{version}"))
        table.checkpoint()
        damaged(table, "garbage")
    segment = list_segment(table.store, table.path)
    few, enough = (
        EngineOptions.from_options({"spark.databricks.delta.snapshotLoading.maxRetries": retries})
        for retries in ("2", "3")
    )
    load = {"store": table.store, "table_path": table.table_path, "segment": segment}
    with pytest.raises(TableError):
        Snapshot.load(**load, options=few, clock=table.clock)
    assert Snapshot.load(**load, options=enough, clock=table.clock).num_files == 3


def test_writing_the_next_checkpoint_keeps_nothing_of_the_one_before_in_memory(monkeypatch):
    table = Table().commit(*(add(f"f{number}") for number in range(50)))
    table.checkpoint()
    table.commit(add("g"), add("f7").remove(NOW_MS)).commit(add("g").remove(NOW_MS), add("h"))
    snapshot = table.load()
    whole = sorted(table.load().files["path"].to_pylist())
    monkeypatch.setattr(Snapshot, "files", property(lambda _: pytest.fail("all files were read")))
    table.checkpoint(snapshot)
    monkeypatch.undo()
    for version in range(table.version):
        table.store.delete(commit_path(table.path, version))
    after = table.load()
    assert after.segment.commits == ()
    assert sorted(after.files["path"].to_pylist()) == whole
    assert sorted(after.tombstones["path"].to_pylist()) == ["f7", "g"]


def test_the_next_checkpoint_is_written_though_the_one_before_is_damaged_in_its_middle():
    table = Table().commit(*(add(f"f{number}") for number in range(200)))
    table.checkpoint()
    table.commit(add("g"))
    snapshot = table.load()  # the small parts can still be read
    damaged(table, "pages", version=1)
    last = table.checkpoint(snapshot)
    assert (last.version, last.num_of_add_files) == (2, 201)
    table.store.delete(commit_path(table.path, 0))
    assert table.load().num_files == 201


def test_every_kind_of_checkpoint_has_its_row():
    assert set(CHECKPOINT_KINDS) == {kind for kind in LogFileKind if kind.is_checkpoint}


def rows_of(number):
    return pa.table({"p": ["a", "b"], "x": [number, number + 1]})


def test_another_engine_opens_our_table_from_our_checkpoint_alone(tmp_path):
    deltalake.write_deltalake(str(tmp_path), rows_of(0), partition_by=["p"])
    deltalake.write_deltalake(str(tmp_path), rows_of(2), mode="append")
    deltalake.DeltaTable(str(tmp_path)).delete("x = 3")
    table = Table.__new__(Table)
    table.table_path, table.version = str(tmp_path), 2
    table.path, table.store = log_path_of(table.table_path), LocalLogStore()
    table.clock = ManualClock(now_ms=NOW_MS)
    table.checkpoint()
    for version in (0, 1):
        (tmp_path / "_delta_log" / commit_path("", version)[1:]).unlink()
    theirs = deltalake.DeltaTable(str(tmp_path))
    assert theirs.version() == 2
    assert sorted(theirs.to_pyarrow_table()["x"].to_pylist()) == [0, 1, 2]
    deltalake.write_deltalake(str(tmp_path), rows_of(8), mode="append")
    assert sorted(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()["x"].to_pylist()) == [
        0,
        1,
        2,
        8,
        9,
    ]
    assert table.load().version == 3


def test_we_open_the_checkpoint_of_another_engine(tmp_path):
    for number in range(5):
        deltalake.write_deltalake(str(tmp_path), rows_of(number), mode="append", partition_by=["p"])
    theirs = deltalake.DeltaTable(str(tmp_path))
    theirs.create_checkpoint()
    theirs.delete("x = 0")
    for version in range(4):
        (tmp_path / "_delta_log" / commit_path("", version)[1:]).unlink()
    store, path = LocalLogStore(), log_path_of(str(tmp_path))
    segment = list_segment(store, path, hint=4)
    assert segment.checkpoint_version == 4
    ours = Snapshot.load(store, str(tmp_path), segment, options=OPTIONS, clock=ManualClock())
    expected = deltalake.DeltaTable(str(tmp_path))
    assert ours.version == expected.version() == 5
    assert sorted(path.rpartition("/")[2] for path in ours.files["path"].to_pylist()) == sorted(
        uri.rpartition("/")[2] for uri in expected.file_uris()
    )
    assert ours.files["stats"].null_count == 0
    assert read_last_checkpoint(store, path, clock=ManualClock()).version == 4
