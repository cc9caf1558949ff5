"""RESTORE without Spark: rows, metadata, marks, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from numbered_histories import NumberedHistory
from optimist.core import Column, DeltaLog, Identity, NewColumn
from optimist.core.errors import (
    ConcurrentWriteException,
    ProtocolError,
    TableError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.maintenance.copies.restore import RestoreTo, restore
from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.transaction.conflicts.operations import Operation

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int64())])
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


def rows(first: int, end: int) -> pa.Table:
    return pa.table({"id": range(first, end), "p": [i % 3 for i in range(first, end)]}, COLUMNS)


def made(path: Path, options: dict[str, str] | None = None, **given: object) -> DeltaLog:
    """Version 0: no rows; 1 and 2: ten rows each."""
    log = DeltaLog.for_path(str(path / "table"), options)
    log.create(COLUMNS, **given)
    log.append(rows(0, 10))
    log.append(rows(10, 20))
    return log


def ids(log: DeltaLog, version: int | None = None) -> list[int]:
    table = deltalake_rows(log) if version is None else None
    own = sorted(log.to_arrow().column("id").to_pylist())
    assert table is None or table == own
    return own


def deltalake_rows(log: DeltaLog) -> list[int] | None:
    features = log.protocol.reader_features or ()
    if set(features) - {"deletionVectors"} or log.protocol.min_reader_version == 2:
        return None
    if "deletionVectors" in features:
        return None
    table = deltalake.DeltaTable(log.table_path).to_pyarrow_table()
    return sorted(table.column("id").to_pylist())


@pytest.mark.again
@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [({}, ("p",)), ({**VECTORS, **FEED, **TRACKED}, ()), ({**VECTORS, **MAPPED}, ("p",))],
)
@settings(max_examples=4, phases=[Phase.generate])
@given(
    steps=st.lists(st.sampled_from(["append", "delete", "update", "restore"]), max_size=6),
    choice=st.randoms(use_true_random=False),
)
def test_every_version_of_a_random_history_can_be_restored(
    properties, partition_by, steps, choice, tmp_path_factory
):
    path = tmp_path_factory.mktemp("history")
    log = made(path, properties=properties, partition_by=partition_by)
    known = {
        0: {},
        1: {i: i % 3 for i in range(10)},
        2: {i: i % 3 for i in range(20)},
    }

    def now() -> dict[int, int]:
        table = log.to_arrow()
        return dict(zip(table.column("id").to_pylist(), table.column("p").to_pylist(), strict=True))

    for number, step in enumerate(steps):
        before = known[log.snapshot().version]
        low = choice.randrange(0, 20)
        if step == "append":
            log.append(rows(100 * (number + 1), 100 * (number + 1) + 3))
        elif step == "delete":
            log.delete(f"id >= {low} AND id < {low + 4}")
        elif step == "update":
            log.update(set={"p": "p + 5"}, predicate=f"id >= {low} AND id < {low + 4}")
        else:
            version = choice.randrange(0, log.snapshot().version)
            log.restore(version)
            assert now() == known[version]
        if step == "delete":
            assert now() == {i: p for i, p in before.items() if not low <= i < low + 4}
        known[log.snapshot().version] = now()
    for version in sorted(known):
        is_newest = version == log.snapshot().version
        assert (log.restore(version) is None) == is_newest
        assert now() == known[version]
        assert log.snapshot().num_files == log.snapshot(version).num_files


def test_it_makes_no_value_of_a_file_that_it_names(tmp_path, monkeypatch):
    log = made(tmp_path, properties={**VECTORS, **TRACKED}, partition_by=("p",))
    log.delete("id < 3")
    monkeypatch.setattr(AddFile, "__init__", None)
    monkeypatch.setattr(RemoveFile, "__init__", None)
    log.restore(1)
    monkeypatch.undo()
    assert ids(log) == list(range(10))


def test_it_says_what_it_removed_and_brought_back_in_numbers_and_in_the_history(tmp_path):
    log = made(tmp_path)
    sizes = {v: log.snapshot(v).size_in_bytes for v in range(3)}
    done = log.restore(1)
    assert done is not None
    assert done == replace(
        done,
        version=3,
        table_size_after_restore=sizes[1],
        num_of_files_after_restore=1,
        num_removed_files=1,
        num_restored_files=0,
        removed_files_size=sizes[2] - sizes[1],
        restored_files_size=0,
    )
    info = log.history(1)[0].info
    assert info is not None
    assert (info.operation, info.operation_parameters) == (
        "RESTORE",
        {"version": 1, "timestamp": None},
    )
    assert info.operation_metrics == {
        "tableSizeAfterRestore": str(sizes[1]),
        "numOfFilesAfterRestore": "1",
        "numRemovedFiles": "1",
        "numRestoredFiles": "0",
        "removedFilesSize": str(sizes[2] - sizes[1]),
        "restoredFilesSize": "0",
    }
    assert ids(log) == list(range(10))


def test_a_time_means_the_version_that_was_the_newest_then(tmp_path):
    log = made(tmp_path)
    at = log.history()[1].timestamp_ms
    log.restore(timestamp=at)
    assert ids(log) == list(range(10))
    info = log.history(1)[0].info
    assert info is not None
    assert info.operation_parameters == {"version": None, "timestamp": str(at)}


def test_at_the_newest_version_nothing_is_written(tmp_path):
    log = made(tmp_path)
    assert log.restore(2) is None
    assert log.restore(timestamp=log.history(1)[0].timestamp_ms) is None
    assert log.snapshot().version == 2


def test_vectors_are_told_apart_from_each_other_and_from_none(tmp_path):
    log = made(tmp_path, properties=VECTORS)
    log.delete("id = 3")
    log.delete("id = 4")
    done = log.restore(3)
    assert done is not None
    assert (done.num_removed_files, done.num_restored_files) == (1, 1)
    assert log.count() == 19
    log.alter.set_properties({"delta.enableDeletionVectors": "false"})
    log.restore(2)
    assert log.count() == 20
    log.restore(5)  # vectors are off there, and the file has one
    assert log.count() == 19


def test_the_change_feed_tells_what_a_restore_changed(tmp_path):
    log = made(tmp_path, properties={**VECTORS, **FEED})
    log.delete("id IN (3, 12)")
    log.append(rows(30, 31))
    log.restore(2)
    changes = log.changes(starting_version=5).to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changes) == [
        ("delete", 30),
        ("insert", 3),
        ("insert", 12),
    ]


def test_metadata_go_back_and_the_protocol_does_not(tmp_path):
    log = made(tmp_path)
    log.alter.set_properties(VECTORS)
    log.alter.add_columns([NewColumn("x", "int")])
    log.restore(2)
    assert log.metadata == log.snapshot(2).metadata
    assert log.protocol == log.snapshot(4).protocol != log.snapshot(2).protocol
    log.restore(4)
    assert log.metadata.configuration == VECTORS
    assert log.snapshot().schema.names == ("id", "p", "x")


def test_identity_marks_never_go_back(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    log.create([Column("n", "bigint", identity=Identity()), Column("v", "int")])
    log.append(pa.table({"v": pa.array([1, 2], pa.int32())}))
    log.append(pa.table({"v": pa.array([3, 4], pa.int32())}))
    log.restore(1)
    log.append(pa.table({"v": pa.array([5], pa.int32())}))
    assert sorted(log.to_arrow().column("n").to_pylist()) == [1, 2, 5]


def test_ids_of_mapped_columns_never_go_back(tmp_path):
    log = made(tmp_path, properties=MAPPED)
    log.alter.add_columns([NewColumn("x", "int")])
    log.restore(2)
    key = "delta.columnMapping.maxColumnId"
    assert (log.snapshot(2).metadata.configuration[key], log.metadata.configuration[key]) == (
        "2",
        "3",
    )
    assert log.count() == 20
    log.alter.add_columns([NewColumn("y", "int")])
    assert log.metadata.configuration[key] == "4"


def test_a_table_can_go_back_to_before_it_was_mapped_and_forth(tmp_path):
    log = made(tmp_path)
    log.alter.set_properties(
        {**MAPPED, "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    )
    log.alter.rename_column("p", "q")
    log.append(rows(20, 30).rename_columns(["id", "q"]))
    log.restore(2)
    assert (ids(log), log.snapshot().schema.names) == (list(range(20)), ("id", "p"))
    log.restore(5)
    assert sorted(log.to_arrow().column("q").to_pylist()) == sorted(i % 3 for i in range(30))


def test_rows_keep_their_ids_and_new_rows_get_none_twice(tmp_path):
    log = made(tmp_path, properties={**TRACKED, **VECTORS})
    wanted = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    before = sorted(log.to_arrow(columns=wanted).to_pylist(), key=lambda row: row["id"])
    log.append(rows(20, 25))
    log.delete("id < 15")
    log.restore(2)
    assert sorted(log.to_arrow(columns=wanted).to_pylist(), key=lambda row: row["id"]) == before
    log.append(rows(40, 45))
    numbers = log.to_arrow(columns=wanted).column(1).to_pylist()
    assert len(set(numbers)) == 25
    assert max(numbers) >= 25 + 4


def test_rows_that_had_no_ids_get_some_where_the_table_tracks_them_by_now(tmp_path):
    log = made(tmp_path)
    log.alter.set_properties(TRACKED)
    tracked = log.snapshot().version
    log.restore(2)
    log.restore(tracked)
    numbers = log.to_arrow(columns=["_metadata.row_id"]).column(0).to_pylist()
    assert sorted(numbers) == list(range(20))


def test_the_clustering_is_as_it_was_and_domains_of_users_stay(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    log.create(COLUMNS, cluster_by=["id"])
    log.append(rows(0, 10))
    log.alter.cluster_by(["p"])
    log.alter.set_domain("mine", "{}")
    log.restore(1)
    assert log.detail().clustering_columns == (("id",),) or log.detail().clustering_columns == (
        "id",
    )
    assert "mine" in log.snapshot().domain_metadata
    log.restore(2)
    assert "p" in str(log.detail().clustering_columns)


def test_a_table_that_was_not_clustered_is_not_afterwards(tmp_path):
    log = made(tmp_path)
    log.alter.cluster_by(["id"])
    log.restore(2)
    assert not log.detail().clustering_columns


def test_partitioning_goes_back(tmp_path):
    log = made(tmp_path, partition_by=["p"])
    log.create(COLUMNS, mode="replace")
    log.append(rows(50, 60))
    log.restore(2)
    assert log.metadata.partition_columns == ("p",)
    assert ids(log) == list(range(20))


def test_in_commit_timestamps_that_are_on_stay_on_since_when_they_were(tmp_path):
    on = {"delta.enableInCommitTimestamps": "true"}
    log = made(tmp_path, properties=on)
    log.alter.set_properties({"delta.enableInCommitTimestamps": "false"})
    log.append(rows(20, 30))
    log.alter.set_properties(on)
    enabled = log.metadata.configuration
    log.restore(2)
    since = "delta.inCommitTimestampEnablementVersion"
    assert log.metadata.configuration[since] == enabled[since] == "5"
    log.restore(4)
    assert log.metadata.configuration.get("delta.enableInCommitTimestamps") == "false"
    log.restore(2)
    assert log.metadata.configuration[since] == "8"
    assert log.snapshot(timestamp=log.history(1)[0].timestamp_ms).version == 8


@pytest.mark.parametrize("version", [3, 99, -1])
def test_a_version_that_there_is_not_is_refused(version, tmp_path):
    log = made(tmp_path)
    with pytest.raises(TableError, match="holds the versions 0 to 2") as caught:
        log.restore(version)
    assert caught.value.kind == "DELTA_CANNOT_RESTORE_TABLE_VERSION"
    assert log.snapshot().version == 2


@pytest.mark.parametrize("given", [{}, {"version": 1, "timestamp": "2020-01-01"}])
def test_one_of_version_and_time_has_to_be_given(given, tmp_path):
    with pytest.raises(UsageError) as caught:
        made(tmp_path).restore(**given)
    assert caught.value.kind == "DELTA_ONEOF_IN_TIMETRAVEL"


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        ("2001-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
        ("2999-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
    ],
)
def test_a_time_outside_the_history_is_refused(time, kind, tmp_path):
    log = made(tmp_path)
    with pytest.raises(TableError) as caught:
        log.restore(timestamp=time)
    assert caught.value.kind == kind
    assert log.snapshot().version == 2


def test_no_table_is_an_error(tmp_path):
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_path(str(tmp_path / "none")).restore(0)


def test_files_that_are_gone_are_named_and_nothing_is_written(tmp_path):
    log = made(tmp_path)
    gone = log.snapshot().files.column("path").to_pylist()
    log.delete()
    for name in gone:
        Path(log.table_path, name).unlink()
    with pytest.raises(TableError, match="2 are gone") as caught:
        log.restore(2)
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert sorted(caught.value.fields["paths"]) == sorted(f"{log.table_path}/{n}" for n in gone)
    assert log.snapshot().version == 3


def test_a_file_of_vectors_that_is_gone_is_named(tmp_path):
    log = made(tmp_path, properties=VECTORS)
    log.append(rows(100, 5_000))
    log.delete(f"id IN ({', '.join(map(str, range(100, 5_000, 7)))})")
    files = list(Path(log.table_path).glob("deletion_vector_*.bin"))
    assert files
    log.delete()
    files[0].unlink()
    with pytest.raises(TableError, match="1 are gone"):
        log.restore(log.snapshot().version - 1)


def test_files_that_are_gone_are_passed_over_where_that_is_allowed(tmp_path):
    log = made(tmp_path, {"spark.sql.files.ignoreMissingFiles": "true"})
    gone = log.snapshot(1).files.column("path").to_pylist()
    log.delete()
    Path(log.table_path, gone[0]).unlink()
    done = log.restore(2)
    assert done is not None
    assert done.num_restored_files == 2


def test_another_commit_meanwhile_is_a_conflict_and_nothing_is_lost(tmp_path):
    log = made(tmp_path)
    txn = log.start_transaction(log.snapshot())
    log.append(rows(20, 30))
    with pytest.raises(ConcurrentWriteException) as caught:
        restore(txn, RestoreTo(1), log.snapshot)
    assert caught.value.kind == "DELTA_CONCURRENT_WRITE"
    assert ids(log) == list(range(30))


def test_a_table_that_only_grows_is_not_restored(tmp_path):
    log = made(tmp_path, properties={"delta.appendOnly": "true"})
    with pytest.raises(UsageError) as caught:
        log.restore(1)
    assert caught.value.kind == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_a_version_with_a_feature_that_can_not_be_written_is_refused(tmp_path):
    log = made(tmp_path)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["unheardOf"]}
    commit = Path(log.log_path, f"{3:020d}.json")
    commit.write_text(json.dumps({"protocol": protocol}), encoding="utf-8")
    with pytest.raises(ProtocolError):
        log.restore(2)


def test_file_names_with_escapes_and_other_spellings_are_one_file(tmp_path):
    log = made(tmp_path, partition_by=["p"])
    kept = log.snapshot().files.to_pylist()[0]
    txn = log.start_transaction()
    txn.filter_files()
    add = AddFile(
        path=kept["path"].replace("=", "%3D"),
        partition_values=dict(kept["partitionValues"]),
        size=kept["size"],
        modification_time=1,
        data_change=False,
        stats=kept["stats"],
    )
    txn.commit([add], Operation("COMPUTE STATS"))
    done = log.restore(2)
    assert done is not None
    assert (done.num_removed_files, done.num_restored_files) == (0, 0)


def test_a_file_that_has_lost_its_row_ids_gets_them_back(tmp_path):
    log = made(tmp_path, properties=TRACKED)
    wanted = ["id", "_metadata.row_id"]
    before = sorted(log.to_arrow(columns=wanted).to_pylist(), key=lambda row: row["id"])
    lines = []
    for version in (0, 1):
        text = Path(log.log_path, f"{version:020d}.json").read_text(encoding="utf-8")
        lines += [json.loads(line) for line in text.splitlines()]
    metadata = next(line["metaData"] for line in lines if "metaData" in line)
    add = next(line["add"] for line in lines if "add" in line)
    off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    stripped = {name: value for name, value in add.items() if "ow" not in name}
    actions = [{"metaData": {**metadata, "configuration": off}}, {"add": stripped}]
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    Path(log.log_path, f"{3:020d}.json").write_text(text, encoding="utf-8")
    assert log.count() == 20
    assert log.snapshot().files["baseRowId"].null_count == 1
    done = log.restore(2)
    assert done is not None
    assert (done.num_removed_files, done.num_restored_files) == (0, 1)
    assert sorted(log.to_arrow(columns=wanted).to_pylist(), key=lambda row: row["id"]) == before


def test_a_file_that_has_other_row_ids_gets_those_of_its_version_back(tmp_path):
    log = made(tmp_path, properties=TRACKED)
    wanted = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    before = log.to_arrow(columns=wanted).sort_by("id")
    log.drop_feature("rowTracking")
    log.alter.set_properties(TRACKED)
    assert log.to_arrow(columns=wanted).sort_by("id") != before
    done = log.restore(2)
    assert (done.num_restored_files, done.num_removed_files) == (2, 0)
    assert log.to_arrow(columns=wanted).sort_by("id") == before
    log.append(rows(20, 25))
    numbers = log.to_arrow(columns=wanted).column(1).to_pylist()
    assert len(set(numbers)) == 25


def test_files_that_only_get_their_row_ids_back_are_no_new_rows(tmp_path):
    log = made(tmp_path, properties={**TRACKED, **FEED})
    log.drop_feature("rowTracking")
    log.alter.set_properties(TRACKED)
    log.append(rows(20, 22))
    version = log.snapshot().version
    *_, last = log.follow()
    log.restore(2)
    changes = log.changes(starting_version=version + 1).to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changes) == [
        ("delete", 20),
        ("delete", 21),
    ]
    followed = log.follow(position=last.position, ignoreChanges=True)
    assert [item.to_arrow().num_rows for item in followed if item.num_files] == []


def numbered(log):
    """The row ids, by the rows' own ids."""
    found = log.to_arrow(columns=["id", "_metadata.row_id"]).to_pylist()
    return dict(tuple(row.values()) for row in found)


def test_row_ids_come_back_though_their_mark_began_anew(tmp_path):
    log = made(tmp_path, properties=TRACKED)
    log.delete("id = 3")
    log.optimize()  # the file has ids of its own, and its rows keep theirs
    before, version = numbered(log), log.snapshot().version
    log.delete("id > 3")
    log.drop_feature("rowTracking")
    log.restore(version)
    assert numbered(log) == before
    log.append(rows(20, 50))
    assert len(set(numbered(log).values())) == len(before) + 30
    log.drop_feature("rowTracking")
    log.delete("id > 3")
    log.alter.set_properties(TRACKED)  # the mark is lower than a file's last id
    log.restore(version)
    assert numbered(log) == before
    log.append(rows(20, 50))
    assert len(set(numbered(log).values())) == len(before) + 30


def test_a_row_id_that_other_rows_have_got_meanwhile_is_not_given_back(tmp_path):
    log = made(tmp_path)  # no row has an id yet
    log.alter.set_properties(TRACKED)
    assert sorted(log.snapshot().files["baseRowId"].to_pylist()) == [0, 10]
    first = next(row for row in log.snapshot().files.to_pylist() if row["baseRowId"] == 0)
    begin = json.loads(first["stats"])["minValues"]["id"]
    log.delete(f"id >= {begin} AND id < {begin + 10}")
    log.drop_feature("rowTracking")
    log.alter.set_properties(TRACKED)
    assert log.snapshot().files["baseRowId"].to_pylist() == [0]
    log.restore(2)
    assert sorted(log.snapshot().files["baseRowId"].to_pylist()) == [0, 10]


def test_row_ids_of_a_version_without_tracking_do_not_meet_those_that_stay(tmp_path):
    log = made(tmp_path)
    log.alter.add_feature("rowTracking")
    log.append(rows(20, 30))
    version = log.snapshot().version
    log.delete("id >= 20")
    log.drop_feature("rowTracking")
    log.alter.set_properties(TRACKED)
    log.restore(version)
    assert log.count() == 30
    assert len(set(log.snapshot().files["baseRowId"].to_pylist())) == 3


def test_a_path_that_had_row_ids_once_gets_the_same_again(tmp_path):
    log = made(tmp_path)  # no row has an id yet
    log.alter.set_properties(TRACKED)
    given = {row["path"]: row for row in log.snapshot().files.to_pylist()}
    assert all(row["baseRowId"] is not None for row in given.values())
    log.optimize()
    assert not given.keys() & set(log.snapshot().files["path"].to_pylist())
    log.restore(2)
    again = {row["path"]: row for row in log.snapshot().files.to_pylist()}
    assert again.keys() == given.keys()
    for name in ("baseRowId", "defaultRowCommitVersion"):
        assert {path: row[name] for path, row in again.items()} == {
            path: row[name] for path, row in given.items()
        }


@pytest.mark.parametrize("seed", [116])
def test_no_two_rows_share_an_id_whatever_came_before_a_restore(tmp_path, seed):
    NumberedHistory(tmp_path / "table", seed).live(16)
