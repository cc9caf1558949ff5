"""VACUUM that lists no directory: LITE goes by the log, and an inventory by its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aged_table import COLUMNS, UNCHECKED, Aged, rows
from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS
from optimist.core.errors import TableError, UsageError
from optimist.core.protocol.actions import RemoveFile
from optimist.core.transaction.conflicts.operations import Operation

FEED = {"delta.enableChangeDataFeed": "true"}


def test_lite_takes_up_where_the_last_vacuum_ended_and_leaves_what_no_commit_named(tmp_path):
    table = Aged(tmp_path, properties=FEED)
    table.log.append(rows(0, 10))
    table.log.update(set={"p": "9"}, predicate="id = 1")
    (table.path / "stray.parquet").write_bytes(b"x")
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode="LITE").num_files == 2
    assert "stray.parquet" in table.files()
    info = (table.path / "_delta_log" / "_last_vacuum_info").read_text()
    assert info == '{"latestCommitVersionOutsideOfRetentionWindow":2}'
    for version in range(3):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    table.log.checkpoint()
    table.log.delete()
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode="LITE").num_files == 1


def test_lite_refuses_where_the_log_does_not_tell_enough(tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.log.checkpoint()
    (table.path / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(TableError) as caught:
        table.log.vacuum(mode="LITE")
    assert caught.value.kind == "DELTA_CANNOT_VACUUM_LITE"


def test_lite_goes_on_after_a_full_run_though_the_log_begins_later(tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.log.delete("id < 5")
    table.log.checkpoint()
    (table.path / "_delta_log" / f"{0:020d}.json").unlink()
    table.log.vacuum()  # too early: the log's first commit is young
    with pytest.raises(TableError) as caught:
        table.log.vacuum(mode="LITE")
    assert caught.value.kind == "DELTA_CANNOT_VACUUM_LITE"
    table.pass_hours(24 * 8)
    assert table.log.vacuum().num_files == 1
    table.log.delete()
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode="LITE").num_files == 1


@pytest.mark.parametrize("name", ["_p", ".p"])
def test_lite_takes_dead_files_of_partitions_that_the_table_has_no_more(tmp_path, name):
    table = Aged(tmp_path, partition_by=["p"])
    schema = pa.schema([("id", pa.int64()), (name, pa.int64())])
    table.log.create(schema, mode="replace", partition_by=[name])
    table.log.append(pa.table({"id": [1], name: [2]}))
    table.log.create(schema, mode="replace")
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode="LITE").num_files == 1
    assert list(table.path.rglob("*.parquet")) == []


@pytest.mark.parametrize("path", [f"{INTENTS}/x", "sub/_delta_log/0.json", "_delta_log/x"])
def test_lite_touches_no_log_and_no_intent_whatever_was_removed(tmp_path, path):
    table = Aged(tmp_path)
    removed = RemoveFile(path, deletion_timestamp=1, data_change=True)
    table.log.start_transaction().commit([removed], Operation("X"))
    (table.path / path).parent.mkdir(parents=True, exist_ok=True)
    (table.path / path).write_bytes(b"x")
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode="LITE").num_files == 0
    assert (table.path / path).exists()


def test_lite_is_the_default_where_the_options_say_so(tmp_path):
    table = Aged(tmp_path, {"spark.databricks.delta.vacuum.lite.enabled": "true"})
    (table.path / "stray.parquet").write_bytes(b"x")
    table.pass_hours(24 * 8)
    assert table.log.vacuum().num_files == 0
    assert table.log.vacuum(mode="full").num_files == 1


def inventory(**columns: list[object]) -> pa.Table:
    given = {"isDir": [False], "length": [1], "modificationTime": [1], **columns}
    size = len(given["path"])
    return pa.table({name: (values * size)[:size] for name, values in given.items()})


def test_an_inventory_takes_the_place_of_the_listing(tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    (live,) = table.files()
    for name in ("a.parquet", "b.parquet", "c d.parquet"):
        (table.path / name).write_bytes(b"x")
    (tmp_path / "outside.parquet").write_bytes(b"x")
    table.pass_hours(24 * 8)
    given = inventory(
        path=[
            f"file:{table.path}/a.parquet", "c d.parquet", live, f"{tmp_path}/outside.parquet",
            "../outside.parquet", "_delta_log/00000000000000000000.json", None, "",
        ]
    )  # fmt: skip
    assert table.log.vacuum(inventory=given).num_files == 2
    assert table.files() == {live, "b.parquet"}
    assert (tmp_path / "outside.parquet").exists()
    assert table.ids() == list(range(10))


@pytest.mark.parametrize("given", [{"path": ["x"], "length": ["1"]}, {"path": [1]}])
def test_an_inventory_of_another_shape_is_refused(given, tmp_path):
    with pytest.raises(UsageError) as caught:
        Aged(tmp_path).log.vacuum(inventory=inventory(**given))
    assert caught.value.kind == "DELTA_INVALID_INVENTORY_SCHEMA"


@pytest.mark.parametrize("mode", ["FULL", "LITE", "inventory"])
@pytest.mark.parametrize("place", ["inner", "a/inner"])
def test_the_source_of_a_clone_above_it_keeps_its_files(tmp_path, mode, place):
    log = DeltaLog.for_path(tmp_path / "table", UNCHECKED)
    log.create(COLUMNS)
    inner = DeltaLog.for_path(tmp_path / "table" / place, UNCHECKED)
    inner.append(rows(0, 10))
    inner.clone(tmp_path / "table", is_shallow=True, mode="replace")
    log.update(set={"p": "7"}, predicate="id < 5")
    if mode == "inventory":
        (name,) = inner.snapshot().files["path"].to_pylist()
        log.vacuum(0, inventory=inventory(path=[f"{place}/{name}"]))
    else:
        log.vacuum(0, mode=mode)
    assert log.count("id >= 0") == 10
    assert inner.to_arrow().num_rows == 10


@pytest.mark.parametrize(
    "given", [{"mode": "HALF"}, {"mode": "LITE", "inventory": inventory(path=["x"])}]
)
def test_arguments_that_mean_nothing_are_refused(given, tmp_path):
    with pytest.raises(UsageError) as caught:
        Aged(tmp_path).log.vacuum(**given)
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT"
