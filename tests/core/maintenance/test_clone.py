"""CLONE without Spark: rows, metadata, files, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from optimist.core import Column, DeltaLog, Identity
from optimist.core.errors import (
    ConcurrentWriteException,
    OptimistError,
    SchemaError,
    TableError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.maintenance.copies import copied_files
from optimist.core.maintenance.copies.clone import CloneRequest, clone
from optimist.core.maintenance.copies.clone_source import VersionSource
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor
from optimist.core.requests.table_definition import CreateMode
from optimist.core.transaction.conflicts.operations import Operation

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.string())])
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TIMED = {"delta.enableInCommitTimestamps": "true"}
EVEN = f"id IN ({', '.join(map(str, range(0, 20, 2)))})"
PLACES = ["a b", "50%", "x=y/z", "", None, "ünï"]


def rows(first: int, end: int) -> pa.Table:
    texts = [PLACES[i % len(PLACES)] for i in range(first, end)]
    return pa.table({"id": range(first, end), "p": texts}, COLUMNS)


def made(path: Path, options: dict[str, str] | None = None, **given: object) -> DeltaLog:
    """Version 0: no rows; 1 and 2: ten rows each."""
    log = DeltaLog.for_path(str(path / "so urce%"), options)
    log.create(COLUMNS, **given)
    log.append(rows(0, 10))
    log.append(rows(10, 20))
    return log


def rows_of(log: DeltaLog) -> list[tuple[int, str | None]]:
    table = log.to_arrow()
    return sorted(zip(table["id"].to_pylist(), table["p"].to_pylist(), strict=True))


def at(path: Path, name: str = "clone") -> DeltaLog:
    return DeltaLog.for_path(str(path / name))


def test_a_shallow_clone_makes_no_value_of_a_file_that_it_names(tmp_path, monkeypatch):
    source = made(tmp_path, properties={**VECTORS, **TRACKED}, partition_by=("p",))
    expected = rows_of(source)
    monkeypatch.setattr(AddFile, "__init__", None)
    source.clone(str(tmp_path / "clone"), is_shallow=True)
    monkeypatch.undo()
    assert rows_of(at(tmp_path)) == expected


@pytest.mark.parametrize("is_shallow", [True, False])
@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [
        ({}, ()),
        ({}, ("p",)),
        ({**VECTORS, **FEED, **TRACKED, **TIMED}, ()),
        ({**VECTORS, **MAPPED}, ("p",)),
    ],
)
def test_a_clone_has_the_rows_and_goes_its_own_way(tmp_path, is_shallow, properties, partition_by):
    source = made(tmp_path, properties=properties, partition_by=partition_by)
    source.delete("id = 3 OR id = 12")
    expected = rows_of(source)
    path = str(tmp_path / "clone")
    done = source.clone(path, is_shallow=is_shallow)
    assert done is not None
    log = DeltaLog.for_path(path)
    assert rows_of(log) == expected
    assert len(expected) == 18
    log.delete("id = 4")
    log.update(set={"p": "'new'"}, predicate="id = 5")
    log.append(rows(30, 31))
    assert rows_of(source) == expected
    kept = [row for row in expected if row[0] not in (4, 5)]
    assert rows_of(log) == sorted([*kept, (5, "new"), (30, PLACES[0])])
    source.delete("id = 15")
    assert 15 in [i for i, _ in rows_of(log)]
    if not is_shallow:
        for file in Path(source.table_path).rglob("*.parquet"):
            file.unlink()
        assert len(rows_of(log)) == 18


def test_deltalake_reads_a_deep_clone(tmp_path):
    source = made(tmp_path, partition_by=("p",))
    source.clone(str(tmp_path / "clone"))
    found = deltalake.DeltaTable(str(tmp_path / "clone")).to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == list(range(20))


def test_it_says_what_it_did_in_numbers_and_in_the_history(tmp_path):
    source = made(tmp_path)
    shallow = source.clone(str(tmp_path / "shallow"), is_shallow=True, version=1)
    deep = source.clone(str(tmp_path / "deep"))
    snapshot = source.snapshot()
    assert shallow is not None
    assert deep is not None
    assert (shallow.version, shallow.source_num_of_files, shallow.num_copied_files) == (0, 1, 0)
    assert (deep.num_copied_files, deep.copied_files_size) == (2, snapshot.size_in_bytes)
    record = at(tmp_path, "shallow").history()[0]
    assert record.info is not None
    assert record.info.operation == "CLONE"
    assert record.info.operation_parameters == {
        "source": f"delta.`file:{source.table_path}`",
        "sourceVersion": 1,
    }
    assert record.info.operation_metrics == {
        "sourceTableSize": str(source.snapshot(1).size_in_bytes),
        "sourceNumOfFiles": "1",
        "numRemovedFiles": "0",
        "numCopiedFiles": "0",
        "removedFilesSize": "0",
        "copiedFilesSize": "0",
    }


def test_shallow_paths_are_spelled_as_delta_spark_spells_them(tmp_path):
    source = made(tmp_path, properties=VECTORS)
    source.delete(EVEN)
    source.clone(str(tmp_path / "clone"), is_shallow=True)
    adds = _adds(at(tmp_path))
    root = f"file:{tmp_path}/so%20urce%25/"
    assert all(add["path"].startswith(root) for add in adds)
    assert all(add["dataChange"] for add in adds)


def _adds(log: DeltaLog, version: int = 0) -> list[dict[str, object]]:
    lines = Path(log.log_path, f"{version:020}.json").read_text("utf-8").splitlines()
    return [each["add"] for each in map(json.loads, lines) if "add" in each]


@pytest.mark.parametrize("is_shallow", [True, False])
def test_vectors_in_files_go_along(tmp_path, monkeypatch, is_shallow):
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    source = made(tmp_path, properties=VECTORS)
    source.delete(EVEN)
    source.clone(str(tmp_path / "clone"), is_shallow=is_shallow)
    (first, *_) = _adds(at(tmp_path))
    kind = first["deletionVector"]["storageType"]
    assert kind == ("p" if is_shallow else "u")
    assert [i for i, _ in rows_of(at(tmp_path))] == list(range(1, 20, 2))
    at(tmp_path).delete("id = 1")
    assert [i for i, _ in rows_of(at(tmp_path))] == list(range(3, 20, 2))
    assert [i for i, _ in rows_of(source)] == list(range(1, 20, 2))


def test_a_version_and_a_time_can_be_cloned(tmp_path):
    source = made(tmp_path)
    source.clone(str(tmp_path / "one"), version=1, is_shallow=True)
    when = source.snapshot(1).timestamp_ms
    source.clone(str(tmp_path / "two"), timestamp=when)
    assert [i for i, _ in rows_of(at(tmp_path, "one"))] == list(range(10))
    assert [i for i, _ in rows_of(at(tmp_path, "two"))] in ([], list(range(10)), list(range(20)))
    with pytest.raises(TableError):
        source.clone(str(tmp_path / "three"), version=9)


def test_metadata_are_the_sources_and_some_are_the_clones_own(tmp_path):
    source = made(
        tmp_path,
        properties={**TRACKED, **TIMED, "a": "b", "delta.appendOnly": "true"},
        comment="the source",
    )
    log = at(tmp_path)
    source.clone(
        log.table_path, is_shallow=True, properties={"a": "c", "delta.appendOnly": "false"}
    )
    theirs, ours = source.snapshot(), log.snapshot()
    assert ours.metadata.id != theirs.metadata.id
    assert ours.metadata.description is None
    names = {key for key in theirs.metadata.configuration if "materialized" in key}
    assert len(names) == 2
    own = dict(ours.metadata.configuration)
    assert own.pop("optimist.clone.source") == f"file:{source.table_path}"
    assert own.pop("optimist.clone.sourceVersion") == str(theirs.version)
    assert all(own.pop(key) != theirs.metadata.configuration[key] for key in names)
    assert own == {
        "a": "c",
        "delta.appendOnly": "false",
        "delta.enableInCommitTimestamps": "true",
        "delta.enableRowTracking": "true",
    }
    assert ours.protocol == theirs.protocol
    assert ours.files["baseRowId"].null_count == 0
    assert [add["defaultRowCommitVersion"] for add in _adds(log)] == [0, 0]


def test_the_sessions_defaults_do_not_count(tmp_path):
    defaults = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
    made(tmp_path)
    source = DeltaLog.for_path(str(tmp_path / "so urce%"), defaults)
    source.clone(str(tmp_path / "clone"), is_shallow=True)
    assert not [key for key in at(tmp_path).metadata.configuration if key.startswith("delta.")]


def test_clustering_and_identity_marks_go_along(tmp_path):
    source = DeltaLog.for_path(str(tmp_path / "source"))
    source.create(
        [Column("n", "bigint", identity=Identity()), Column("id", "bigint")], cluster_by=["id"]
    )
    source.append(pa.table({"id": [5, 6, 7]}))
    log = at(tmp_path)
    source.clone(log.table_path)
    assert log.detail().clustering_columns == ("id",)
    log.append(pa.table({"id": [8]}))
    assert sorted(log.to_arrow()["n"].to_pylist()) == [1, 2, 3, 4]


def test_a_clone_of_a_clone_reads_and_rewrites_the_first_tables_files(tmp_path):
    source = made(tmp_path, properties=VECTORS)
    source.delete("id = 0")
    source.clone(str(tmp_path / "one"), is_shallow=True)
    at(tmp_path, "one").append(rows(20, 22))
    at(tmp_path, "one").clone(str(tmp_path / "two"), is_shallow=True)
    at(tmp_path, "two").clone(str(tmp_path / "three"))
    expected = list(range(1, 22))
    for name in ("one", "two", "three"):
        log = at(tmp_path, name)
        assert [i for i, _ in rows_of(log)] == expected
        log.update(set={"p": "'z'"}, predicate="id = 1 OR id = 21 OR id = 15")
        assert [i for i, text in rows_of(log) if text == "z"] in ([1, 15, 21], [1, 15])


@pytest.mark.parametrize("is_of_a_clone", [False, True])
def test_a_clone_is_rewritten_though_the_cleanup_took_the_commits_that_made_it(
    tmp_path, is_of_a_clone
):
    """Neither its own CLONE commit is there, nor the version of the source that it was made of."""
    source = made(tmp_path)
    logs = [source]
    for name in ("one", "clone") if is_of_a_clone else ("clone",):
        logs[-1].clone(str(tmp_path / name), is_shallow=True)
        logs.append(at(tmp_path, name))
    source.delete("id = 3")  # one file is only on record as removed
    for log in logs:
        log.append(rows(30, 31))
        log.checkpoint()
        for version in range(log.snapshot().version):
            Path(log.log_path, f"{version:020}.json").unlink()
    clone = at(tmp_path)
    clone.update(set={"p": "'z'"}, predicate="id IN (3, 15)")
    assert [i for i, text in rows_of(clone) if text == "z"] == [3, 15]
    again = DeltaLog.for_path(str(tmp_path / "deep"))
    clone.clone(again.table_path)
    assert not [key for key in again.metadata.configuration if key.startswith("optimist.")]


def test_who_reads_no_files_outside_makes_no_shallow_clone(tmp_path):
    made(tmp_path)
    careful = DeltaLog.for_path(
        str(tmp_path / "so urce%"), {"optimist.paths.outsideTable": "never"}
    )
    with pytest.raises(TableError) as caught:
        careful.clone(str(tmp_path / "clone"), is_shallow=True)
    assert caught.value.kind == "OPTIMIST_PATH_OUTSIDE_TABLE"
    assert not at(tmp_path).table_exists()
    assert careful.clone(str(tmp_path / "clone")) is not None


def test_a_chain_of_clones_that_a_forger_made_up_fetches_nothing(tmp_path):
    victim = made(tmp_path)
    stranger = DeltaLog.for_path(str(tmp_path / "stranger"))
    stranger.create(COLUMNS)
    theirs = victim.snapshot().files["path"][0].as_py()
    path = f"file:{tmp_path}/so%20urce%25/{theirs}"
    (size,) = [f["size"] for f in victim.snapshot().files.slice(0, 1).to_pylist()]
    add = AddFile(path, {}, size, 0, data_change=True, stats='{"numRecords":10}')
    stranger.start_transaction().commit([add], Operation("WRITE"))
    with pytest.raises(TableError) as caught:
        stranger.clone(str(tmp_path / "deep"))
    assert caught.value.kind == "OPTIMIST_REWRITE_OF_OUTSIDE_FILE"
    assert not at(tmp_path, "deep").table_exists()


def test_a_table_that_is_there_decides_with_the_mode(tmp_path):
    source = made(tmp_path, properties=MAPPED)
    path = str(tmp_path / "clone")

    def kind(**given: object) -> str:
        with pytest.raises(OptimistError) as caught:
            source.clone(path, is_shallow=True, **given)
        return caught.value.kind

    assert kind(mode="replace") == "DELTA_CANNOT_REPLACE_MISSING_TABLE"
    assert kind(mode="other") == "OPTIMIST_INVALID_ARGUMENT"
    assert source.clone(path, is_shallow=True, mode="create_or_replace") is not None
    assert kind() == "DELTA_TABLE_ALREADY_EXISTS"
    assert source.clone(path, is_shallow=True, mode="create_if_not_exists") is None
    assert kind(mode="create_or_replace") == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"
    log = DeltaLog.for_path(path)
    table_id = log.snapshot().metadata.id
    log.delete()
    done = source.clone(path, version=1, mode="replace")
    assert done is not None
    assert done.version == 2
    assert log.snapshot().metadata.id == table_id
    assert [i for i, _ in rows_of(log)] == list(range(10))


def test_a_table_is_not_cloned_into_itself(tmp_path):
    source = made(tmp_path)
    (tmp_path / "link").symlink_to(source.table_path)
    for path in (source.table_path, str(tmp_path / "link"), source.table_path + "/"):
        with pytest.raises(UsageError) as caught:
            source.clone(path, mode="create_or_replace", version=0, is_shallow=True)
        assert caught.value.kind == "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE"
    assert source.snapshot().version == 2


def test_the_mode_of_column_mapping_stays(tmp_path):
    source = made(tmp_path)
    other = DeltaLog.for_path(str(tmp_path / "mapped"))
    other.create(COLUMNS, properties=MAPPED)
    for path, given in [
        (other.table_path, {"mode": "replace"}),
        (str(tmp_path / "new"), {"properties": MAPPED}),
    ]:
        with pytest.raises(SchemaError) as caught:
            source.clone(path, **given)
        assert caught.value.kind == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"


def test_other_files_at_the_place_are_refused(tmp_path):
    source = made(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x.txt").write_text("x")
    for is_shallow in (True, False):
        with pytest.raises(UsageError) as caught:
            source.clone(str(tmp_path / "full"), is_shallow=is_shallow)
        assert caught.value.kind == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    with pytest.raises(TableNotFoundError):
        at(tmp_path, "nothing").clone(str(tmp_path / "x"))


def test_files_that_are_gone_are_named(tmp_path):
    source = made(tmp_path)
    source.delete()
    for file in Path(source.table_path).rglob("*.parquet"):
        file.unlink()
    for is_shallow in (True, False):
        with pytest.raises(TableError) as caught:
            source.clone(str(tmp_path / "clone"), version=2, is_shallow=is_shallow)
        assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
        assert not at(tmp_path).table_exists()


def test_a_deep_clone_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    source = made(tmp_path, partition_by=("p",), properties=VECTORS)
    source.delete("id = 3 OR id = 7")
    copied: list[str] = []
    real = copied_files.copy_file

    def stopping(copy, rule, clock):
        if len(copied) == 3:
            raise KeyboardInterrupt
        copied.append(copy.target)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "_COPIERS", 1)
    monkeypatch.setattr(copied_files, "copy_file", stopping)
    with pytest.raises(KeyboardInterrupt):
        source.clone(str(tmp_path / "clone"))
    assert not at(tmp_path).table_exists()
    begun = list(copied)
    whole = {path: Path(path).stat().st_mtime_ns for path in begun}
    cut = Path(begun[0])
    cut.write_bytes(cut.read_bytes()[:-1])  # as a machine that lost its power may leave it

    def noting(copy, rule, clock):
        copied.append(copy.target)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "copy_file", noting)
    done = source.clone(str(tmp_path / "clone"))
    assert done is not None
    assert begun[0] in copied[3:]
    assert not set(begun[1:]) & set(copied[3:])
    assert all(Path(path).stat().st_mtime_ns == whole[path] for path in begun[1:])
    assert rows_of(at(tmp_path)) == rows_of(source)
    left = {str(f) for f in (tmp_path / "clone").glob("data-*/**/*.parquet*")}
    snapshot = at(tmp_path).snapshot()
    assert left == set(
        snapshot.data_paths.full_paths(snapshot.files["path"].combine_chunks()).to_pylist()
    )


def test_a_file_that_is_not_as_long_as_the_log_says_is_not_copied(tmp_path):
    source = made(tmp_path)
    file = next(Path(source.table_path).rglob("*.parquet"))
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(OptimistError) as caught:
        source.clone(str(tmp_path / "clone"))
    assert caught.value.kind == "OPTIMIST_DATA_FILE_DIFFERS"
    assert not at(tmp_path).table_exists()
    assert len(list((tmp_path / "clone").rglob("*.parquet*"))) <= 1


def test_whoever_comes_second_to_a_place_has_a_conflict(tmp_path):
    source = made(tmp_path)
    first, second = (at(tmp_path).start_transaction() for _ in range(2))
    request = CloneRequest(VersionSource(source.table, source.snapshot()), is_shallow=True)
    assert clone(first, request) is not None
    with pytest.raises(ConcurrentWriteException):
        clone(second, request)
    third = at(tmp_path, "other").start_transaction()
    assert clone(at(tmp_path, "other").start_transaction(), request) is not None
    kept = replace(request, mode=CreateMode.CREATE_IF_NOT_EXISTS)
    assert clone(third, kept) is None


def test_a_vector_of_a_hostile_source_fetches_no_bytes(tmp_path):
    """The description of a vector may name any file of the store; a copy would give it away."""
    source = made(tmp_path, properties=VECTORS)
    secret = tmp_path / "secret.txt"
    secret.write_text("s" * 100)
    add = _adds(source, 1)[0]
    vector = DeletionVectorDescriptor("p", f"file://{secret}", 40, 1, offset=1)
    hostile = AddFile(
        add["path"],
        {},
        add["size"],
        0,
        data_change=True,
        stats=add["stats"],
        deletion_vector=vector,
    )
    lines = Path(source.log_path, f"{3:020}.json")
    from optimist.core.protocol.actions import actions_to_bytes

    lines.write_bytes(actions_to_bytes([hostile]))
    with pytest.raises(TableError):
        source.clone(str(tmp_path / "clone"))
    assert b"ssss" not in b"".join(f.read_bytes() for f in (tmp_path / "clone").rglob("*.bin"))


def test_rows_that_can_not_be_numbered_are_named(tmp_path):
    source = made(tmp_path, properties={"delta.feature.rowTracking": "supported"})
    add = _adds(source, 1)[0]
    from optimist.core.protocol.actions import actions_to_bytes

    bare = AddFile(add["path"], {}, add["size"], 0, data_change=True)
    Path(source.log_path, f"{3:020}.json").write_bytes(actions_to_bytes([bare]))
    with pytest.raises(SchemaError) as caught:
        source.clone(str(tmp_path / "clone"), is_shallow=True)
    assert caught.value.kind == "DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS"


@pytest.mark.parametrize("is_shallow", [True, False])
def test_what_refuses_before_the_commit_leaves_no_clone(tmp_path, is_shallow):
    source, log = made(tmp_path / "source"), at(tmp_path)

    def refuse() -> None:
        raise ZeroDivisionError

    version = VersionSource(source.table, source.snapshot())
    request = CloneRequest(version, is_shallow=is_shallow, before_commit=refuse)
    with pytest.raises(ZeroDivisionError):
        clone(log.start_transaction(), request)
    assert not log.table_exists()
