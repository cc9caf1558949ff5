"""CLONE of what is no Delta table: directories of Parquet, and tables of Iceberg."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_tables import IcebergFolder
from optimist.core import Column, DeltaLog
from optimist.core.errors import ConfigError, OptimistError
from optimist.core.maintenance.copies import clone_source, copied_files

P = [Column("p", "string")]
PLACES = {"p=a%20b": "a b", "p=x%25y": "x%y", "p=__HIVE_DEFAULT_PARTITION__": None}


@pytest.fixture
def files(tmp_path) -> Path:
    """A partitioned directory of an odd name; its files have differing columns."""
    root = tmp_path / "fi les%20é"
    for number, name in enumerate(PLACES):
        (root / name).mkdir(parents=True)
        rows: dict[str, object] = {"id": [2 * number, 2 * number + 1]}
        if number:
            rows["x"] = [f"x{number}", None]
        pq.write_table(pa.table(rows), root / name / f"part {number}.parquet")
    (root / "_SUCCESS").touch()
    return root


EXPECTED = [
    {"id": 0, "x": None, "p": "a b"},
    {"id": 1, "x": None, "p": "a b"},
    {"id": 2, "x": "x1", "p": "x%y"},
    {"id": 3, "x": None, "p": "x%y"},
    {"id": 4, "x": "x2", "p": None},
    {"id": 5, "x": None, "p": None},
]


def clone_of(files: Path, target: Path, options: dict[str, str] | None = None, **given: object):
    given = {"source_format": "parquet", "partition_columns": P, **given}
    return DeltaLog.for_path(str(files), options).clone(str(target), **given)


def rows_of(log: DeltaLog) -> list[dict[str, object]]:
    return log.to_arrow().select(["id", "x", "p"]).sort_by("id").to_pylist()


def log_at(place: Path, options: dict[str, str] | None = None) -> DeltaLog:
    return DeltaLog.for_path(str(place), options)


def kind_of(call) -> str:
    with pytest.raises(OptimistError) as caught:
        call()
    return caught.value.kind


@pytest.mark.parametrize("is_shallow", [True, False])
def test_a_clone_has_the_rows_and_the_files_stay_as_they_are(files, tmp_path, is_shallow):
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    done = clone_of(files, tmp_path / "clone", is_shallow=is_shallow)
    log = log_at(tmp_path / "clone")
    assert done.source_num_of_files == 3
    assert done.num_copied_files == (0 if is_shallow else 3)
    assert rows_of(log) == EXPECTED
    assert log.to_arrow("p = 'x%y' AND id > 2")["id"].to_pylist() == [3]
    assert log.count() == 6
    record = log.history()[0].info
    assert record.operation_parameters == {
        "source": f"parquet.`file:{files}`",
        "sourceVersion": -1,
    }
    assert record.operation_metrics["sourceNumOfFiles"] == "3"
    assert log.snapshot().metadata.partition_columns == ("p",)
    log.append(pa.table({"id": [9], "x": ["new"], "p": ["a b"]}))
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before
    if not is_shallow:
        shutil.rmtree(files)
        log.delete("id = 9")
        log.update(set={"x": "'u'"}, predicate="id = 0")
        assert rows_of(log) == [{**EXPECTED[0], "x": "u"}, *EXPECTED[1:]]
        found = deltalake.DeltaTable(str(tmp_path / "clone")).to_pyarrow_table()
        assert sorted(found["id"].to_pylist()) == list(range(6))


def test_a_shallow_clone_names_paths_as_delta_spark_does(files, tmp_path):
    clone_of(files, tmp_path / "clone", is_shallow=True)
    commit = (tmp_path / "clone" / "_delta_log" / f"{0:020}.json").read_text("utf-8")
    adds = [each["add"] for each in map(json.loads, commit.splitlines()) if "add" in each]
    assert {add["path"] for add in adds} == {
        f"file:{tmp_path}/fi%20les%2520%C3%A9/p=a%2520b/part%200.parquet",
        f"file:{tmp_path}/fi%20les%2520%C3%A9/p=x%2525y/part%201.parquet",
        f"file:{tmp_path}/fi%20les%2520%C3%A9/p=__HIVE_DEFAULT_PARTITION__/part%202.parquet",
    }
    assert all(json.loads(add["stats"])["numRecords"] == 2 for add in adds)


def test_rows_of_files_that_no_log_names_are_not_copied_into_a_clone_unless_allowed(
    files, tmp_path
):
    clone_of(files, tmp_path / "clone", is_shallow=True)
    log = log_at(tmp_path / "clone")
    assert kind_of(lambda: log.delete("id = 1")) == "OPTIMIST_REWRITE_OF_OUTSIDE_FILE"
    assert rows_of(log) == EXPECTED
    log.delete("p = 'x%y'")
    trusting = log_at(tmp_path / "clone", {"optimist.paths.outsideTable": "any"})
    trusting.delete("id = 1")
    assert rows_of(log) == [EXPECTED[0], *EXPECTED[4:]]
    log.vacuum()
    assert len(list(files.rglob("*.parquet"))) == 3


def test_defaults_of_the_session_do_not_count_and_properties_do(files, tmp_path):
    options = {"spark.databricks.delta.properties.defaults.columnMapping.mode": "name"}
    properties = {"delta.enableRowTracking": "true", "note": "x"}
    clone_of(files, tmp_path / "clone", options, properties=properties)
    configuration = log_at(tmp_path / "clone").snapshot().metadata.configuration
    assert "delta.columnMapping.mode" not in configuration
    assert configuration["note"] == "x"
    assert configuration["delta.enableRowTracking"] == "true"
    mapped = {"properties": {"delta.columnMapping.mode": "name"}}
    assert (
        kind_of(lambda: clone_of(files, tmp_path / "other", **mapped))
        == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("is_shallow", [True, False])
def test_somebody_who_writes_meanwhile_is_noticed(files, tmp_path, monkeypatch, is_shallow):
    real = clone_source.files_found

    def slow(table, *given):
        found = real(table, *given)
        pq.write_table(pa.table({"id": [7]}), files / "p=a%20b" / "late.parquet")
        return found

    monkeypatch.setattr(clone_source, "files_found", slow)
    assert (
        kind_of(lambda: clone_of(files, tmp_path / "clone", is_shallow=is_shallow))
        == "OPTIMIST_DIRECTORY_BEING_WRITTEN"
    )
    assert not log_at(tmp_path / "clone").table_exists()


def test_a_file_that_changes_while_it_is_copied_is_noticed(files, tmp_path, monkeypatch):
    real = copied_files.copy_file
    changed = next(files.rglob("part 1.parquet"))

    def copying(copy, rule, clock):
        if copy.path == str(changed):
            content = bytearray(changed.read_bytes())
            content[10] ^= 1
            changed.write_bytes(content)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "copy_file", copying)
    assert (
        kind_of(lambda: clone_of(files, tmp_path / "clone")) == "OPTIMIST_DIRECTORY_BEING_WRITTEN"
    )
    assert not log_at(tmp_path / "clone").table_exists()


def test_a_clone_that_was_stopped_goes_on(files, tmp_path, monkeypatch):
    real, copied = copied_files.copy_file, []

    def stopping(copy, rule, clock):
        if len(copied) == 2:
            raise KeyboardInterrupt
        copied.append(copy.path)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "_COPIERS", 1)
    monkeypatch.setattr(copied_files, "copy_file", stopping)
    with pytest.raises(KeyboardInterrupt):
        clone_of(files, tmp_path / "clone")

    def noting(copy, rule, clock):
        copied.append(copy.path)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "copy_file", noting)
    clone_of(files, tmp_path / "clone")
    assert len(copied) == len(set(copied)) == 3
    assert rows_of(log_at(tmp_path / "clone")) == EXPECTED


def test_a_file_in_the_place_of_one_that_was_copied_is_copied_anew(files, tmp_path, monkeypatch):
    real, file = copied_files.copy_file, next(files.rglob("part 1.parquet"))
    monkeypatch.setattr(copied_files, "make_durable", lambda *_: (_ for _ in ()).throw(OSError))
    with pytest.raises(OSError):
        clone_of(files, tmp_path / "clone")
    monkeypatch.undo()
    assert copied_files.copy_file is real
    pq.write_table(pa.table({"id": [20, 30], "x": ["x1", None]}), file)
    clone_of(files, tmp_path / "clone")
    assert [row["id"] for row in rows_of(log_at(tmp_path / "clone"))] == [0, 1, 4, 5, 20, 30]


def test_modes_are_those_of_every_clone(files, tmp_path):
    place = tmp_path / "clone"
    assert kind_of(lambda: clone_of(files, place, mode="replace")).startswith("DELTA_")
    assert clone_of(files, place, mode="create_if_not_exists") is not None
    assert clone_of(files, place, mode="create_if_not_exists") is None
    assert kind_of(lambda: clone_of(files, place)) == "DELTA_TABLE_ALREADY_EXISTS"
    log_at(place).delete()
    assert clone_of(files, place, mode="create_or_replace") is not None
    assert rows_of(log_at(place)) == EXPECTED


def test_what_can_not_be_cloned_is_told_and_nothing_is_written(files, tmp_path):
    place = tmp_path / "clone"
    unsupported = "DELTA_CLONE_UNSUPPORTED_SOURCE"
    assert kind_of(lambda: clone_of(files, place, source_format="csv")) == unsupported
    assert kind_of(lambda: clone_of(files, place, version=0)) == unsupported
    assert kind_of(lambda: clone_of(files, place, timestamp="2026-01-01")) == unsupported
    table = tmp_path / "delta"
    log_at(table).append(pa.table({"id": [1]}))
    assert kind_of(lambda: clone_of(table, place, partition_columns=())) == unsupported
    assert (
        kind_of(lambda: clone_of(files, place, partition_columns=()))
        == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    )
    assert kind_of(lambda: clone_of(files, files)) == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    for inner in ("clone", "p=a%20b/clone"):
        for is_shallow in (True, False):
            within = {"is_shallow": is_shallow}
            assert (
                kind_of(lambda: clone_of(files, files / inner, **within))  # noqa: B023 - called at once
                == "OPTIMIST_TABLE_WITHIN_DIRECTORY"
            )
        assert not (files / inner).exists()
    assert clone_of(files, tmp_path / "fi les%20é2") is not None
    assert kind_of(lambda: clone_of(tmp_path / "none", place)) == "DELTA_EMPTY_DIRECTORY"
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.csv").write_text("1,2")
    assert (
        kind_of(lambda: clone_of(tmp_path / "texts", place, partition_columns=()))
        == "OPTIMIST_UNREADABLE_DATA_FILE"
    )
    never = {"optimist.paths.outsideTable": "never"}
    assert (
        kind_of(lambda: clone_of(files, place, never, is_shallow=True))
        == "OPTIMIST_PATH_OUTSIDE_TABLE"
    )
    assert not place.exists()


def test_a_delta_table_says_itself_how_it_is_partitioned(tmp_path):
    log_at(tmp_path / "delta").append(pa.table({"id": [1]}))
    given = {"source_format": "delta", "partition_columns": P}
    kind = kind_of(lambda: clone_of(tmp_path / "delta", tmp_path / "clone", **given))
    assert kind == "OPTIMIST_INVALID_ARGUMENT"
    assert not (tmp_path / "clone").exists()


@pytest.fixture
def iceberg(tmp_path):
    folder = IcebergFolder(tmp_path)
    yield folder
    folder.close()


@pytest.mark.parametrize("is_shallow", [True, False])
def test_a_table_of_iceberg_is_cloned_by_the_ids_of_its_columns(iceberg, tmp_path, is_shallow):
    plain = pa.schema([("id", pa.int64()), ("x", pa.string())])
    table = iceberg.create("t", plain)
    table.append(pa.table({"id": [1, 2], "x": ["a", None]}, schema=plain))
    with table.update_schema() as update:
        update.rename_column("x", "y")
    table.append(pa.table({"id": [3], "y": ["c"]}))
    place = Path(table.location().removeprefix("file://"))
    log = log_at(tmp_path / "clone")
    assert (
        log_at(place)
        .clone(log.table_path, source_format="iceberg", is_shallow=is_shallow)
        .source_num_of_files
        == 2
    )
    assert log.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "y": "a"},
        {"id": 2, "y": None},
        {"id": 3, "y": "c"},
    ]
    assert log.snapshot().metadata.configuration["delta.columnMapping.mode"] == "id"
    log.append(pa.table({"id": [4], "y": ["d"]}))
    assert table.refresh().scan().to_arrow().num_rows == 3
    assert not (place / "_delta_log").exists()


@pytest.mark.parametrize(
    "wrong", [{"delta.appendOnly": "maybe"}, {"delta.noSuchProperty": "1"}, {"delta.": ""}]
)
def test_properties_are_refused_before_a_file_is_looked_at(files, tmp_path, wrong):
    for file in files.rglob("*.parquet"):
        file.write_bytes(b"damaged")
    with pytest.raises(ConfigError):
        clone_of(files, tmp_path / "clone", properties=wrong)
    assert not (tmp_path / "clone").exists()
