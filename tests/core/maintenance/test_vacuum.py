"""VACUUM without Spark: what goes, what stays, what it says, and what it refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from aged_table import COLUMNS, UNCHECKED, Aged, rows
from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS, begin_intent
from optimist.core.errors import StorageError, TableError, TableNotFoundError, UsageError
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.vacuum import file_deletion
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
DAY_MS = 24 * 60 * 60 * 1000
HOUR_MS = DAY_MS // 24


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [({}, ("p",)), ({**VECTORS, **FEED}, ()), ({"delta.columnMapping.mode": "name"}, ("p",))],
)
@settings(max_examples=4, phases=[Phase.generate])
@given(
    steps=st.lists(st.sampled_from(["append", "delete", "update", "restore"]), max_size=7),
    hours=st.sampled_from([1, 30, 80]),
    mode=st.sampled_from(["FULL", "LITE"]),
    choice=st.randoms(use_true_random=False),
)
def test_every_version_within_the_retention_reads_after_a_vacuum(
    properties, partition_by, steps, hours, mode, choice, tmp_path_factory
):
    table = Aged(tmp_path_factory.mktemp("t"), properties=properties, partition_by=partition_by)
    log = table.log
    log.append(rows(0, 10))
    log.append(rows(10, 20))
    made = {log.snapshot().version: table.clock.now_ms()}
    for number, step in enumerate(steps):
        table.pass_hours(hours)
        low = choice.randrange(0, 20)
        if step == "append":
            log.append(rows(100 * (number + 1), 100 * (number + 1) + 3))
        elif step == "delete":
            log.delete(f"id >= {low} AND id < {low + 4}")
        elif step == "update":
            log.update(set={"p": "p + 5"}, predicate=f"id >= {low} AND id < {low + 4}")
        else:
            log.restore(choice.randrange(1, log.snapshot().version))
        made.setdefault(log.snapshot().version, table.clock.now_ms())
    table.pass_hours(hours)
    newest = log.snapshot().version
    ends = {v: made.get(v + 1, table.clock.now_ms()) for v in range(1, newest + 1)}
    before = {version: table.ids(version) for version in ends}
    log.vacuum(mode=mode)
    since = table.clock.now_ms() - 7 * DAY_MS
    for version in (v for v, end in ends.items() if end >= since):
        assert table.ids(version) == before[version]
    log.vacuum(0, mode=mode)
    assert table.ids() == before[newest]


def test_the_dead_go_and_the_living_stay(tmp_path):
    table = Aged(tmp_path, properties={**VECTORS, **FEED})
    log = table.log
    log.append(rows(0, 10))
    log.append(rows(10, 3000))
    log.delete(f"id IN ({', '.join(map(str, range(20, 2900, 7)))})")
    log.update(set={"p": "1"}, predicate="id < 5")
    log.delete("id >= 5 AND id < 10")
    table.pass_hours(24 * 8)
    before, live = table.ids(), set(log.snapshot().files.column("path").to_pylist())
    done = log.vacuum()
    assert done.num_files > 0
    assert table.ids() == before
    left = table.files()
    assert {name for name in left if name.endswith(".parquet")} == live
    assert [name for name in left if "_change_data" in name] == []
    directories = (path for path in table.path.rglob("*") if path.is_dir())
    assert [path.name for path in directories if not list(path.iterdir())] == [INTENTS]


def test_what_was_removed_within_the_retention_stays(tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.pass_hours(24 * 30)
    table.log.delete()
    table.pass_hours(24 * 6)
    assert table.log.vacuum().num_files == 0
    assert table.ids(1) == list(range(10))
    table.pass_hours(24)
    assert table.log.vacuum().num_files == 1


def test_young_files_that_no_version_names_stay_and_old_ones_go(tmp_path):
    table = Aged(tmp_path)
    for name in ("young.parquet", "data-1/young.parquet"):
        (table.path / name).parent.mkdir(exist_ok=True)
        (table.path / name).write_bytes(b"x")
    table.pass_hours(24 * 6)
    assert table.log.vacuum().num_files == 0
    table.pass_hours(24 * 2)
    assert table.log.vacuum().num_files == 2
    assert table.files() == set()
    assert [path.name for path in table.path.iterdir()] == ["_delta_log"]


HIDDEN = [
    "_delta_log/00000000000000000099.json.tmp", "_delta_log/x.parquet", ".part.parquet",
    "_metadata/x.parquet", "a/_hidden/x.parquet", "a/.x", "_symlink_format_manifest/manifest",
    "_temporary/0/x.parquet", "a/_temporary/x.parquet", "_px=1/x.parquet", "sub/_delta_log/0.json",
    "sub/part.parquet", "sub/deeper/part.parquet",
]  # fmt: skip
SEEN = [
    "x.parquet", "a/b/c/x.parquet", "_p=1/x.parquet", "_p=__HIVE_DEFAULT_PARTITION__/x.parquet",
    "_change_data/x.parquet", "_change_data/_p=1/x.parquet", "_delta_index/x", "a/_delta_index_2/x",
    "data-00000000-1111-2222-3333-444444444444/_temporary/0/x.parquet", "metadata/x.json",
    "deletion_vector_x.bin", "Ab/deletion_vector_x.bin", "x y%20z.parquet",
]  # fmt: skip


def test_hidden_names_stay_and_those_that_only_look_so_go(tmp_path):
    table = Aged(tmp_path, partition_by=["p"])
    schema = pa.schema([("id", pa.int64()), ("_p", pa.int64())])
    table.log.create(schema, mode="replace", partition_by=["_p"])
    for name in (*HIDDEN, *SEEN):
        (table.path / name).parent.mkdir(parents=True, exist_ok=True)
        (table.path / name).write_bytes(b"x")
    table.pass_hours(24 * 8)
    told = table.log.vacuum(dry_run=True)
    assert sorted(told.paths.to_pylist()) == sorted(f"{table.path}/{name}" for name in SEEN)
    assert told.num_files == table.log.vacuum().num_files == len(SEEN)
    assert [name for name in HIDDEN if not (table.path / name).exists()] == []
    assert [name for name in SEEN if (table.path / name).exists()] == []


def test_links_are_not_followed_and_stay(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    table = Aged(tmp_path)
    (table.path / "link").symlink_to(outside)
    (table.path / "file.parquet").symlink_to(outside / "precious.parquet")
    table.pass_hours(24 * 8)
    assert table.log.vacuum().num_files == 0
    assert (outside / "precious.parquet").exists()
    assert (table.path / "link").is_symlink()


@pytest.mark.parametrize("is_of_one_file", [False, True])
def test_what_a_link_within_the_table_leads_to_stays(is_of_one_file, tmp_path):
    table = Aged(tmp_path, partition_by=["p"])
    table.log.append(rows(0, 10))
    folder = table.path / "p=1"
    (named,) = folder.glob("*.parquet")
    link = named if is_of_one_file else folder
    moved = link.rename(table.path / "moved.parquet")
    link.symlink_to(moved)
    table.pass_hours(24 * 8)
    table.log.vacuum()
    assert table.ids() == list(range(10))


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
@pytest.mark.parametrize(
    "path", ["a%00b/x", "/a%00b/x", "a%00b", f"{'x' * 300}/x", "loop/x", "gone/x", "f/x", "loop"]
)
def test_names_that_no_file_can_have_are_in_no_ones_way(path, mode, tmp_path):
    table = Aged(tmp_path)
    (table.path / "loop").symlink_to(table.path / "loop")
    (table.path / "f").write_bytes(b"x")
    live = AddFile(path, {}, 1, 0, data_change=True)
    table.log.start_transaction().commit([live], Operation("X"))
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode=mode).num_files == (mode == "FULL")  # f itself


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
@pytest.mark.parametrize(
    "path", ["a%00b/x", "x" * 300, f"{'x' * 300}/x", "z/" * 3000 + "x", "f/x", "loop/x", "folder"]
)
def test_names_that_no_file_can_have_may_be_removed_in_the_log(path, mode, tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.log.delete("id < 10")
    (table.path / "loop").symlink_to(table.path / "loop")
    (table.path / "f").write_bytes(b"x")
    (table.path / "folder").mkdir()
    (table.path / "folder" / "_kept").write_bytes(b"x")
    gone = RemoveFile(path, deletion_timestamp=table.clock.now_ms(), data_change=True)
    table.log.start_transaction().commit([gone], Operation("X"))
    table.pass_hours(24 * 8)
    table.log.vacuum(mode=mode)
    assert not list(table.path.glob("*.parquet"))
    assert (table.path / "folder" / "_kept").exists()


@pytest.mark.parametrize("mode", ["FULL", "LITE", "inventory"])
@pytest.mark.parametrize("link", ["_links/there", "_links/x.parquet", "{tmp}/x.parquet"])
def test_a_live_file_stays_though_the_log_names_it_by_a_link_that_no_walk_meets(
    link, mode, tmp_path
):
    """The file was added by its own name, removed, and added again by way of a link."""
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    link = link.format(tmp=tmp_path)
    place = table.path / link
    place.parent.mkdir(exist_ok=True)
    txn = table.log.start_transaction()
    (add,) = add_files(txn.filter_files())
    is_folder = link.endswith("there")
    parent, _, name = add.path.rpartition("/")
    place.symlink_to(table.path / (parent if is_folder else add.path))
    named = replace(add, path=f"{link}/{name}" if is_folder else link)
    txn.commit([add.remove(table.clock.now_ms()), named], Operation("X"))
    table.log.append(rows(10, 20))
    table.pass_hours(24 * 8)
    if mode == "inventory":
        status = (table.path / add.path).stat()
        columns = {"path": [add.path], "length": [status.st_size], "isDir": [False]}
        table.log.vacuum(inventory=pa.table({**columns, "modificationTime": [1]}))
    else:
        table.log.vacuum(mode=mode)
    assert table.ids() == list(range(20))


def test_a_table_below_stays_if_its_log_is_a_link(tmp_path):
    table = Aged(tmp_path)
    inner = DeltaLog.for_path(str(table.path / "inner"))
    inner.append(rows(0, 10))
    log = table.path / "inner" / "_delta_log"
    log.symlink_to(log.rename(tmp_path / "log"))
    table.pass_hours(24 * 8)
    assert table.log.vacuum().num_files == 0
    assert inner.to_arrow().num_rows == 10


def test_a_name_that_is_no_text_stays_and_is_in_no_ones_way(tmp_path):
    table = Aged(tmp_path)
    for name in (b"\xff.parquet", b"\xff/x.parquet", b"dead.parquet"):
        path = Path(os.fsdecode(os.fsencode(table.path) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    table.pass_hours(24 * 8)
    assert table.log.vacuum().num_files == 1
    assert not (table.path / "dead.parquet").exists()


def test_a_directory_that_becomes_a_link_leads_nowhere(tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.parquet").write_bytes(b"x")
    table = Aged(tmp_path)
    inside = table.path / "d"
    inside.mkdir()
    (inside / "x.parquet").write_bytes(b"x")
    table.pass_hours(24 * 8)
    delete = file_deletion.Deletion.delete

    def swapped(self, paths):
        (inside / "x.parquet").unlink()
        inside.rmdir()
        inside.symlink_to(outside)
        delete(self, paths)

    monkeypatch.setattr(file_deletion.Deletion, "delete", swapped)
    with pytest.raises(TableError) as caught:
        table.log.vacuum()
    assert caught.value.kind == "OPTIMIST_LINK_OUT_OF_TABLE"
    assert (outside / "x.parquet").exists()


@pytest.mark.parametrize("spelling", ["file://{p}", "file:{p}", "{p}", "{link}", "./x/../{name}"])
def test_a_live_file_stays_however_the_log_spells_it(spelling, tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    link = tmp_path / "link"
    link.symlink_to(table.path)
    txn = table.log.start_transaction()
    (add,) = add_files(txn.filter_files())
    full = f"{table.path}/{add.path}"
    path = spelling.format(p=full, link=f"{link}/{add.path}", name=add.path)
    txn.commit([add.remove(table.clock.now_ms()), replace(add, path=path)], Operation("X"))
    table.pass_hours(24 * 8)
    table.log.vacuum()
    assert table.ids() == list(range(10))


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
@pytest.mark.parametrize(
    "path",
    ["../outside.parquet", "{p}/outside.parquet", "_delta_log/00000000000000000000.json",
     "%5Fdelta_log/00000000000000000000.json", "s3://b/k", "a/../../outside.parquet",
     "a/..%2F..%2Foutside.parquet", "_delta_log/../_delta_log/00000000000000000000.json",
     "a%00b/x.parquet", "/a%00b/x.parquet"],
)  # fmt: skip
def test_no_file_outside_the_table_and_none_of_the_log_goes_whatever_a_log_says(
    path, mode, tmp_path
):
    table = Aged(tmp_path)
    (tmp_path / "outside.parquet").write_bytes(b"x")
    removed = RemoveFile(path.format(p=tmp_path), deletion_timestamp=1, data_change=True)
    table.log.start_transaction().commit([removed], Operation("X"))
    table.pass_hours(24 * 8)
    assert table.log.vacuum(mode=mode).num_files == 0
    assert (tmp_path / "outside.parquet").exists()
    assert (table.path / "_delta_log" / "00000000000000000000.json").exists()


def test_it_tells_the_history_of_its_start_and_its_end(tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    size = table.log.snapshot().size_in_bytes
    table.log.delete()
    table.pass_hours(1)
    table.log.vacuum(0)
    end, start = (record.info for record in table.log.history(2))
    assert start is not None
    assert end is not None
    assert (start.operation, start.operation_parameters, start.operation_metrics) == (
        "VACUUM START",
        {
            "retentionCheckEnabled": False,
            "defaultRetentionMillis": 7 * DAY_MS,
            "specifiedRetentionMillis": 0,
        },
        {"numFilesToDelete": "1", "sizeOfDataToDelete": str(size)},
    )
    assert (end.operation, end.operation_parameters, end.operation_metrics) == (
        "VACUUM END",
        {"status": "COMPLETED"},
        {"numDeletedFiles": "1", "numVacuumedDirectories": "1"},
    )
    assert (start.isolation_level, start.is_blind_append) == ("SnapshotIsolation", True)


def test_on_a_full_disk_it_makes_room_and_then_tells_its_start(tmp_path, monkeypatch):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.log.delete()
    table.pass_hours(1)
    put = LocalLogStore.put_if_absent

    def put_if_there_is_room(store, path, data):
        if list(table.path.glob("*.parquet")):
            raise StorageError("full", kind="OPTIMIST_NO_SPACE", path=path, retryable=False)
        return put(store, path, data)

    monkeypatch.setattr(LocalLogStore, "put_if_absent", put_if_there_is_room)
    assert table.log.vacuum(0).num_files == 1
    told = [record.info.operation for record in table.log.history(2)]
    assert told == ["VACUUM END", "VACUUM START"]


def test_its_commits_can_be_switched_off(tmp_path):
    table = Aged(tmp_path, {"spark.databricks.delta.vacuum.logging.enabled": "false"})
    assert table.log.vacuum().num_files == 0
    assert table.log.snapshot().version == 0


def test_a_dry_run_changes_nothing(tmp_path):
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.log.delete()
    table.pass_hours(24 * 8)
    before = table.files()
    told = table.log.vacuum(dry_run=True)
    assert [Path(path).name for path in told.paths.to_pylist()] == list(before)
    assert (table.files(), table.log.snapshot().version) == (before, 2)
    assert not (table.path / "_delta_log" / "_last_vacuum_info").exists()


def test_hours_count_only_where_they_are_let(tmp_path):
    ignored = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
    table = Aged(tmp_path)
    table.log.append(rows(0, 10))
    table.log.delete()
    table.pass_hours(24 * 2)
    assert table.log.vacuum(24, dry_run=True).num_files == 0
    options = EngineOptions.from_options({**UNCHECKED, ignored: "false"})
    log = DeltaLog(str(table.path), LocalLogStore({}), options, clock=table.clock)
    assert log.vacuum(72, dry_run=True).num_files == 0
    assert log.vacuum(24, dry_run=True).num_files == 1


@pytest.mark.parametrize("part", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("has_intent", [False, True])
def test_a_damaged_checkpoint_is_replaced_by_the_commits(tmp_path, part, has_intent):
    table = Aged(tmp_path, properties={"delta.checkpointInterval": "1000"})
    log = table.log
    for number in range(20):
        log.append(rows(number, number + 1))
    log.delete("id IN (3, 5)")
    log.checkpoint()
    checkpoint = next(Path(log.log_path).glob("*.checkpoint.parquet"))
    data = bytearray(checkpoint.read_bytes())
    start = int(len(data) * part)
    data[start : start + 60] = bytes(byte ^ 0xFF for byte in data[start : start + 60])
    checkpoint.write_bytes(data)
    before = table.files()
    table.pass_hours(24 * 8)
    opened = DeltaLog(str(table.path), LocalLogStore({}), table.options, clock=table.clock)
    intent = begin_intent(opened.table, None) if has_intent else None
    done = opened.vacuum(0)
    if intent is not None:
        intent.end()
    assert done.num_files == 2
    assert len(before - table.files()) == 2
    assert table.ids() == [number for number in range(20) if number not in (3, 5)]


def test_a_checkpoint_that_is_gone_is_replaced_by_the_commits(tmp_path):
    table = Aged(tmp_path, properties={"delta.checkpointInterval": "1000"})
    for number in range(4):
        table.log.append(rows(number, number + 1))
    table.log.delete("id = 3")
    table.log.checkpoint()
    table.pass_hours(24 * 8)
    opened = DeltaLog(str(table.path), LocalLogStore({}), table.options, clock=table.clock)
    opened.snapshot()
    next(Path(opened.log_path).glob("*.checkpoint.parquet")).unlink()
    assert opened.vacuum(0).num_files == 1
    assert table.ids() == [0, 1, 2]


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
def test_more_hours_than_the_property_keep_what_was_removed_since(tmp_path, mode):
    ignored = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
    short = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
    table = Aged(tmp_path, {ignored: "false"}, properties={**VECTORS, **short})
    table.log.append(rows(0, 10))
    table.log.append(rows(10, 20))
    table.log.delete("id = 12")
    table.pass_hours(24 * 10)
    table.log.delete("id < 10")
    table.log.delete("id = 13")
    table.pass_hours(24 * 2)
    assert table.log.vacuum(24 * 5, mode=mode).num_files == 0
    assert len(table.ids(2)) == 20
    table.pass_hours(24 * 5)
    assert table.log.vacuum(24 * 5, mode=mode).num_files == 1
    assert len(table.ids()) == 8


@pytest.mark.parametrize(
    ("hours", "kind"),
    [
        (0, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        (-1, "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"),
        (float("nan"), "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"),
    ],
)
def test_a_wrong_retention_is_refused_and_nothing_goes(hours, kind, tmp_path):
    table = Aged(tmp_path, dict.fromkeys(UNCHECKED, "true"))
    table.log.append(rows(0, 10))
    table.log.delete()
    table.pass_hours(1)
    before = table.files()
    with pytest.raises(UsageError) as caught:
        table.log.vacuum(hours)
    assert caught.value.kind == kind
    assert (table.files(), table.log.snapshot().version) == (before, 2)


def test_no_table_is_an_error_and_the_place_stays(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"x")
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_path(str(tmp_path)).vacuum()
    assert (tmp_path / "x.parquet").exists()


def test_deltalake_reads_what_is_left_and_has_nothing_more_to_delete(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "table"), UNCHECKED)
    log.create(COLUMNS, partition_by=["p"])
    for first in range(0, 40, 10):
        log.append(rows(first, first + 10))
    log.delete("id < 25")
    log.vacuum(0)
    theirs = deltalake.DeltaTable(log.table_path)
    assert sorted(theirs.to_pyarrow_table().column("id").to_pylist()) == list(range(25, 40))
    dead = theirs.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)
    assert [path for path in dead if Path(log.table_path, path).exists()] == []
