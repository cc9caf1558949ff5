"""The table's handle: updates and their cost, time travel, replays, manifests, checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import LogFileNotFoundError, UsageError
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import CommitInfo
from optimist.core.table import delta_log
from optimist.core.testing import Fault, FaultyLogStore, ManualClock, When
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.hooks.default_hooks import is_checkpoint_due
from optimist.logstores import LocalLogStore, MemoryLogStore

WRITE = Operation.write("Append")


def append(table, name):
    return table.log.start_transaction().commit([table.add(name)], WRITE)


@pytest.fixture
def counted(make_table):
    table = make_table(store=FaultyLogStore(MemoryLogStore({}))).create()
    append(table, "a")
    table.log.snapshot()
    table.store.clear()
    return table


def test_an_update_with_nothing_new_is_one_listing(counted):
    before = counted.log.snapshot()
    counted.store.clear()
    assert counted.log.snapshot() is before
    assert dict(counted.store.counts) == {"list_from": 1}


def test_an_update_after_one_foreign_commit_reads_that_file_only(counted):
    counted.log.snapshot()
    counted.poke(2, [CommitInfo(txn_id="x"), counted.add("b")])
    counted.store.clear()
    assert counted.log.snapshot().version == 2
    assert dict(counted.store.counts) == {"list_from": 1, "read_bytes": 1}


def test_opening_reads_the_hint_the_listing_and_the_commits(counted):
    counted.handle().snapshot()
    assert dict(counted.store.counts) == {"list_from": 1, "read_bytes": 3}


def test_a_commit_cleaned_up_between_listing_and_reading_is_no_error(counted):
    missing = LogFileNotFoundError("gone", kind="OPTIMIST_FILE_NOT_FOUND")
    counted.store.plan(Fault("read_bytes", When.BEFORE, error=missing, name=f"{1:020}.json"))
    assert counted.handle().snapshot().version == 1
    assert counted.store.pending == ()


def test_a_table_made_anew_at_the_same_path_is_noticed(tmp_path):
    path = tmp_path / "table"
    log = DeltaLog.for_path(str(path))
    log.append(pa.table({"id": [1]}))
    log.snapshot()
    for item in (path / "_delta_log").iterdir():
        item.unlink()
    other = DeltaLog(str(path), LocalLogStore({}))
    other.append(pa.table({"name": ["x"]}))
    assert log.snapshot().schema.names == ("name",)
    assert log.start_transaction().snapshot.schema.names == ("name",)


def test_a_table_made_anew_is_noticed_although_a_checkpoint_stood_for_all_of_the_old_one(tmp_path):
    path = tmp_path / "table"
    DeltaLog(str(path), LocalLogStore({})).append(pa.table({"id": [1]}))
    DeltaLog(str(path), LocalLogStore({})).checkpoint()
    log = DeltaLog(str(path), LocalLogStore({}))
    assert log.snapshot().segment.commits == ()
    for item in (path / "_delta_log").iterdir():
        item.unlink()
    DeltaLog(str(path), LocalLogStore({})).append(pa.table({"name": ["x"]}))
    assert log.snapshot().schema.names == ("name",)


def test_handles_are_cached_per_path_and_options(tmp_path):
    first = DeltaLog.for_path(str(tmp_path))
    assert DeltaLog.for_path(f"file://{tmp_path}/") is first
    assert DeltaLog.for_path(str(tmp_path), {"optimist.conflict.granularity": "file"}) is not first


def test_a_handle_that_is_there_already_costs_no_options_to_parse_and_no_lease(
    tmp_path, monkeypatch
):
    first = DeltaLog.for_path(str(tmp_path))
    monkeypatch.setattr(EngineOptions, "from_options", None)
    monkeypatch.setattr(delta_log, "find_lease", None)
    assert DeltaLog.for_path(str(tmp_path)) is first


def test_time_travel_by_version_and_by_the_times_that_snapshots_tell(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    times = []
    for number in range(4):
        log.append(pa.table({"id": [number]}))
        times.append(log.snapshot().timestamp_ms)
    assert [log.snapshot(version=v).num_files for v in range(4)] == [1, 2, 3, 4]
    listed = [record.timestamp_ms for record in reversed(log.history())]
    assert [log.snapshot(timestamp=t).version for t in listed] == [0, 1, 2, 3]
    assert log.snapshot(timestamp=times[-1]).version == 3


def test_a_replayed_application_write_is_skipped(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    rows = pa.table({"id": [1]})
    assert log.append(rows, txn=("nightly", 1)).version == 0
    assert log.append(rows, txn=("nightly", 1)) is None
    assert log.append(rows, txn=("nightly", 0)) is None
    assert log.append(rows, txn=("nightly", 2)).version == 1
    assert log.snapshot().num_files == 2


def test_appending_no_rows_records_a_commit_without_files(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"id": [1]}))
    assert log.append(pa.table({"id": pa.array([], pa.int64())})).version == 1
    assert log.snapshot().num_files == 1


def test_an_append_is_not_repeated_under_the_application_and_version_of_the_options(tmp_path):
    key = "spark.databricks.delta.write."
    log = DeltaLog.for_path(str(tmp_path), {key + "txnAppId": "nightly", key + "txnVersion": "7"})
    rows = pa.table({"id": [1]})
    assert log.append(rows).version == 0
    assert log.append(rows) is None
    assert log.append(rows, txn=("other", 1)).version == 1
    assert {name: txn.version for name, txn in log.snapshot().set_transactions.items()} == {
        "nightly": 7,
        "other": 1,
    }


def test_an_application_without_a_version_is_refused_by_an_append(tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {"spark.databricks.delta.write.txnAppId": "nightly"})
    with pytest.raises(UsageError) as caught:
        log.append(pa.table({"id": [1]}))
    assert caught.value.kind == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"


def test_columns_are_matched_by_name_in_any_case_and_missing_ones_are_null(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"Id": [1], "text": ["a"]}))
    log.append(pa.table({"ID": pa.array([2], pa.int64())}))
    schema = log.snapshot().schema
    assert schema.names == ("Id", "text")
    assert log.snapshot().num_files == 2


def test_tables_whose_rules_need_sql_are_refused_without_spark(make_table, tmp_path):
    table = make_table(
        configuration={"delta.constraints.positive": "soundex(CAST(x AS STRING)) > ''"},
        store=LocalLogStore({}),
        path=str(tmp_path),
        partitioned=False,
    ).create()
    with pytest.raises(UsageError, match="CHECK constraint positive") as raised:
        table.log.append(pa.table({"x": [1], "p": pa.array([1], pa.int32())}))
    assert raised.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert [item.name for item in tmp_path.iterdir()] == ["_delta_log"]


MANIFESTS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}


def manifests(path):
    root = path / "_symlink_format_manifest"
    return {
        str(item.parent.relative_to(root)): item.read_text().split()
        for item in root.rglob("manifest")
    }


def test_symlink_manifests_follow_the_commits(make_table, tmp_path):
    table = make_table(
        configuration=MANIFESTS, store=LocalLogStore({}), path=str(tmp_path)
    ).create()
    txn = table.log.start_transaction()
    result = txn.commit([table.add("p=1/a", 1), table.add("p=2/b", 2)], WRITE)
    assert result.failed_hooks == ()
    found = manifests(tmp_path)
    assert sorted(found) == ["p=1", "p=2"]
    assert [line.rpartition("/")[2] for line in found["p=1"]] == ["a"]
    txn = table.log.start_transaction()
    txn.filter_files("p = 2")
    txn.commit([table.remove("p=2/b", 2)], Operation.delete(["p = 2"]))
    assert sorted(manifests(tmp_path)) == ["p=1"]


def test_snapshots_are_not_changed_by_later_commits(make_table):
    table = make_table().create()
    append(table, "a")
    old = table.log.snapshot()
    append(table, "b")
    txn = table.log.start_transaction()
    txn.commit([table.remove("a")], Operation.delete(["x"]))
    assert old.files.column("path").to_pylist() == ["a"]
    assert table.live() == ["b"]


def test_checkpoints_come_every_interval_and_never_at_zero(make_table):
    table = make_table(configuration={"delta.checkpointInterval": "3"}, clock=ManualClock())
    table.create()
    for number in range(7):
        result = append(table, f"f{number}")
        assert result.failed_hooks == ()
    names = [status.name for status in table.store.list_from(table.log.log_path + "/")]
    assert [name[:20].lstrip("0") for name in names if ".checkpoint." in name] == ["3", "6"]
    assert "_last_checkpoint" in names
    assert sum(name.endswith(".crc") for name in names) == 7


@pytest.mark.parametrize(("interval", "due"), [(10, [10, 20]), (1, list(range(1, 22)))])
def test_a_checkpoint_is_due_at_multiples_of_the_interval(interval, due):
    assert [version for version in range(22) if is_checkpoint_due(version, interval)] == due


def test_data_is_on_the_disk_before_the_commit_names_it(tmp_path, monkeypatch):
    log = DeltaLog.for_path(str(tmp_path))
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    log.append(rows, partition_by=["p"])
    events = []
    fsync, link = os.fsync, os.link

    def recording_fsync(descriptor):
        events.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def recording_link(source, target, **kwargs):
        events.append("link")
        link(source, target, **kwargs)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "link", recording_link)
    log.append(rows)
    before = events[: events.index("link")]
    files = {str(tmp_path / path) for path in log.snapshot().files.column("path").to_pylist()}
    new = {path for path in before if path.endswith(".parquet")}
    assert len(new) == 2
    assert new <= files
    assert {str(tmp_path / "p=a"), str(tmp_path / "p=b"), str(tmp_path)} <= set(before)
