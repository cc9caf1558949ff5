"""The check of a table: nothing on healthy ones, and exactly the damage that was done on others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checked_tables import (
    LONG_AGO,
    data_file,
    found,
    gap,
    hint_of_another_version,
    log_file,
    lost_newest_commit,
    make,
    missing_part,
    opened,
    rows,
)
from optimist.core import col
from optimist.core.errors import TableNotFoundError
from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name

DAT = os.environ.get("OPTIMIST_DAT")


# Healthy tables


PROPERTIES = (
    {},
    {"columnMapping.mode": "name"},
    {"checkpointPolicy": "v2"},
    {"enableRowTracking": "true"},
    {"checkpoint.writeStatsAsStruct": "true", "checkpoint.writeStatsAsJson": "false"},
    {"dataSkippingNumIndexedCols": "0"},
)


@pytest.mark.parametrize("properties", PROPERTIES, ids=str)
def test_a_healthy_table_gives_nothing(tmp_path, properties):
    log = make(tmp_path / "t", **properties)
    log.optimize("p = 0")
    log.alter.add_columns({"later": "int"})
    log.checkpoint()
    log.restore(4)
    assert found(tmp_path / "t") == []
    assert found(tmp_path / "t", deep=False) == []
    checked = log.fsck()
    assert (checked.version, checked.num_commits) == (log.snapshot().version, len(log.history()))
    assert checked.num_files == log.snapshot().num_files


def test_a_table_of_another_engine_gives_nothing(tmp_path):
    for start in (0, 10):
        deltalake.write_deltalake(str(tmp_path / "t"), rows(start), mode="append")
    other = deltalake.DeltaTable(str(tmp_path / "t"))
    other.create_checkpoint()
    other.delete("x = 1")
    other.optimize.compact()
    other.alter.set_table_properties({"delta.appendOnly": "false"})
    other.create_checkpoint()
    assert found(tmp_path / "t") == []


@pytest.mark.skipif(DAT is None, reason="OPTIMIST_DAT names no folder of real tables")
@pytest.mark.parametrize("table", sorted(Path(DAT).iterdir()) if DAT else [], ids=lambda p: p.name)
def test_an_acceptance_table_gives_nothing(table):
    assert found(table / "delta") == []


def test_a_shallow_clone_gives_nothing_and_its_lost_file_is_found(healthy, tmp_path):
    shutil.copytree(healthy, tmp_path / "source")
    log = opened(tmp_path / "source")
    log.clone(str(tmp_path / "thin"), is_shallow=True)
    assert found(tmp_path / "thin") == []
    lost = next((tmp_path / "source").glob("p=30/*.parquet"))
    lost.unlink()
    assert found(tmp_path / "thin") == [("missing-file", lost.name)]


def test_the_log_after_its_cleanup_gives_nothing(table):
    for version in range(6):
        log_file(table, commit_name(version)).unlink()
        log_file(table, checksum_name(version)).unlink()
    assert found(table) == []


def test_no_table_is_an_error(tmp_path):
    with pytest.raises(TableNotFoundError):
        opened(tmp_path / "t").fsck()


# Damage, one at a time


def cut(path: Path, size: int | None = None) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 if size is None else size])


def edited(path: Path, change: Callable[[dict], None]) -> None:
    """Change the actions of a commit, or the values of another file of JSON lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def vector_file(path: Path) -> Path:
    return next(path.glob("**/deletion_vector_*.bin"))


def gap_below_the_checkpoint(path: Path) -> tuple[str, str]:
    log_file(path, commit_name(3)).unlink()
    return "gap", "_delta_log"


def lost_beginning(path: Path) -> tuple[str, str]:
    log_file(path, commit_name(0)).unlink()
    log_file(path, classic_checkpoint_name(6)).unlink()
    log_file(path, "_last_checkpoint").unlink()
    return "gap", "_delta_log"


def empty_commit(path: Path) -> tuple[str, str]:
    log_file(path, commit_name(8)).write_bytes(b"")
    return "empty-commit", commit_name(8)


def torn_commit(path: Path) -> tuple[str, str]:
    cut(log_file(path, commit_name(8)))
    return "torn-commit", commit_name(8)


def torn_old_commit(path: Path) -> tuple[str, str]:
    cut(log_file(path, commit_name(2)))
    return "torn-commit", commit_name(2)


def foreign_content(path: Path) -> tuple[str, str]:
    log_file(path, commit_name(8)).write_bytes(b"<html>sign in</html>")
    return "foreign-commit", commit_name(8)


def foreign_name(path: Path) -> tuple[str, str]:
    shutil.copy(log_file(path, commit_name(9)), log_file(path, "10.json"))
    return "foreign-commit", "10.json"


def duplicate_name(path: Path) -> tuple[str, str]:
    shutil.copy(log_file(path, commit_name(9)), log_file(path, "9.json"))
    return "duplicate-commit", "9.json"


def duplicate_commit(path: Path) -> tuple[str, str]:
    shutil.copy(log_file(path, commit_name(9)), log_file(path, commit_name(10)))
    return "duplicate-commit", commit_name(10)


def overwritten_commit(path: Path) -> tuple[str, str]:
    def change(line: dict) -> None:
        if "commitInfo" in line:
            line["commitInfo"]["txnId"] = "another"

    edited(log_file(path, commit_name(8)), change)
    return "overwritten-commit", commit_name(8)


def empty_checkpoint(path: Path) -> tuple[str, str]:
    log_file(path, classic_checkpoint_name(6)).write_bytes(b"")
    return "bad-checkpoint", classic_checkpoint_name(6)


def torn_checkpoint(path: Path) -> tuple[str, str]:
    cut(log_file(path, classic_checkpoint_name(6)))
    return "bad-checkpoint", classic_checkpoint_name(6)


def hint_of_nothing(path: Path) -> tuple[str, str]:
    log_file(path, "_last_checkpoint").write_text('{"version":8,"size":1}')
    return "stale-hint", "_last_checkpoint"


def torn_hint(path: Path) -> tuple[str, str]:
    log_file(path, "_last_checkpoint").write_text('{"version":')
    return "stale-hint", "_last_checkpoint"


def bad_compacted(path: Path) -> tuple[str, str]:
    name = f"{7:020}.{8:020}.compacted.json"
    log_file(path, name).write_text('{"add":')
    return "bad-compacted", name


def bad_checksum(path: Path) -> tuple[str, str]:
    cut(log_file(path, checksum_name(9)))
    return "bad-checksum", checksum_name(9)


def checksum_mismatch(path: Path) -> tuple[str, str]:
    edited(log_file(path, checksum_name(9)), lambda noted: noted.update(numFiles=99))
    return "checksum-mismatch", checksum_name(9)


def missing_file(path: Path) -> tuple[str, str]:
    file = data_file(path)
    file.unlink()
    return "missing-file", file.name


def truncated_file(path: Path) -> tuple[str, str]:
    cut(data_file(path))
    return "truncated-file", data_file(path).name


def swapped_file(path: Path) -> tuple[str, str]:
    file = data_file(path)
    with file.open("ab") as stream:
        stream.write(b"more")
    return "swapped-file", file.name


def missing_vector(path: Path) -> tuple[str, str]:
    file = vector_file(path)
    file.unlink()
    return "missing-vector", file.name


def truncated_vector(path: Path) -> tuple[str, str]:
    file = vector_file(path)
    cut(file, file.stat().st_size - 1)
    return "truncated-vector", file.name


def orphan(path: Path) -> tuple[str, str]:
    file = path / "p=30" / "part-left-behind.parquet"
    file.write_bytes(b"left behind")
    os.utime(file, LONG_AGO)
    return "orphan", file.name


SHALLOW = (
    gap, gap_below_the_checkpoint, lost_newest_commit, lost_beginning, empty_commit, torn_commit,
    torn_old_commit, foreign_content, foreign_name, duplicate_name, duplicate_commit,
    overwritten_commit, empty_checkpoint, torn_checkpoint, missing_part, hint_of_another_version,
    hint_of_nothing, torn_hint, bad_compacted, bad_checksum, checksum_mismatch, missing_file,
    truncated_file, swapped_file, missing_vector, truncated_vector, orphan,
)  # fmt: skip


@pytest.mark.parametrize("damage", SHALLOW, ids=lambda damage: damage.__name__)
@pytest.mark.sample(1)
def test_each_damage_is_found_and_no_other(table, damage):
    expected = damage(table)
    assert found(table) == [expected]


@pytest.mark.parametrize("damage", [torn_commit, missing_file, truncated_vector, orphan])
def test_damage_is_found_without_reading_data(table, damage):
    expected = damage(table)
    assert found(table, deep=False) == [expected]


def damaged_file(path: Path) -> tuple[str, str]:
    file = data_file(path)
    data = file.read_bytes()
    file.write_bytes(data[:-12] + b"\0" * 8 + data[-4:])
    return "damaged-file", file.name


def damaged_page(path: Path) -> tuple[str, str]:
    file = data_file(path)
    data = bytearray(file.read_bytes())
    data[4:60] = b"\xff" * 56
    file.write_bytes(data)
    return "damaged-file", file.name


def of_as_many_bytes(path: Path, rows: pa.Table) -> tuple[str, str]:
    """Put other rows into a data file, which becomes as long as it was."""
    file = data_file(path)
    size = file.stat().st_size
    for padding in range(size):
        pq.write_table(rows.replace_schema_metadata({"k": "x" * padding}), file)
        if file.stat().st_size >= size:
            break
    edit = {"size": file.stat().st_size}
    _edit_add(path, file.name, lambda add: add.update(edit))
    return "", file.name


def _edit_add(path: Path, name: str, change: Callable[[dict], None]) -> None:
    """Change the add of a file in all commits, where there is no checkpoint and no checksum."""
    for each in (path / "_delta_log").iterdir():
        if each.suffix in (".crc", ".parquet") or each.name == "_last_checkpoint":
            each.unlink()

    def change_line(line: dict) -> None:
        if line.get("add", {}).get("path", "").endswith(name):
            change(line["add"])

    for each in (path / "_delta_log").glob("*.json"):
        edited(each, change_line)


def other_rows(path: Path) -> tuple[str, str]:
    _, name = of_as_many_bytes(path, rows(30, 3).drop_columns(["p"]))
    return "swapped-file", name


def damaged_vector(path: Path) -> tuple[str, str]:
    file = vector_file(path)
    data = bytearray(file.read_bytes())
    data[-6] ^= 0xFF
    file.write_bytes(data)
    return "damaged-vector", file.name


def _with_stats(path: Path, change: Callable[[dict], None]) -> tuple[str, str]:
    name = data_file(path).name

    def change_add(add: dict) -> None:
        stats = json.loads(add["stats"])
        change(stats)
        add["stats"] = json.dumps(stats)

    _edit_add(path, name, change_add)
    return "untrue-statistics", name


def too_low_maximum(path: Path) -> tuple[str, str]:
    return _with_stats(path, lambda stats: stats["maxValues"].update(x=32))


def too_high_minimum(path: Path) -> tuple[str, str]:
    return _with_stats(path, lambda stats: stats["minValues"].update(text="zebra"))


def untrue_null_count(path: Path) -> tuple[str, str]:
    return _with_stats(path, lambda stats: stats["nullCount"].update(text=0))


def said_to_be_all_null(path: Path) -> tuple[str, str]:
    return _with_stats(path, lambda stats: stats["nullCount"].update(x=4))


DEEP = (
    damaged_file, damaged_page, other_rows, damaged_vector, too_low_maximum, too_high_minimum,
    untrue_null_count, said_to_be_all_null,
)  # fmt: skip


@pytest.mark.parametrize("damage", DEEP, ids=lambda damage: damage.__name__)
@pytest.mark.sample(1)
def test_what_only_reading_shows_is_found_by_reading(table, damage):
    expected = damage(table)
    assert found(table, deep=False) == []
    assert found(table) == [expected]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_findings_name_the_files_of_odd_partitions_by_the_paths_on_the_disk(tmp_path, mode):
    path = tmp_path / "a b%20ü"
    odd = ["%20", "ü/ö", "a=b", "x y", "", None, "_h"]
    log = opened(path, **{"columnMapping.mode": mode})
    log.append(pa.table({"p": odd, "x": range(len(odd))}), partition_by=("p",))
    files = sorted(path.rglob("*.parquet"))
    assert len(files) >= len(odd) - 1
    gone, *short = files
    gone.unlink()
    for file in short:
        cut(file)
    orphan = short[0].with_name("orphan.parquet")
    orphan.write_bytes(b"x")
    os.utime(orphan, LONG_AGO)
    checked = opened(path).fsck(deep=True)
    expected = [("missing-file", gone), *(("truncated-file", each) for each in short)]
    told = {(each["kind"], Path(each["path"])) for each in checked.findings.to_pylist()}
    assert told == {*expected, ("orphan", orphan)}
    assert checked.findings.num_rows == len(files) + 1


def test_a_damaged_file_of_several_vectors_is_named_once(tmp_path):
    log = opened(tmp_path / "t", enableDeletionVectors="true")
    for start in (0, 5000):
        log.append(rows(start, 1500))
    log.delete(col("x").isin(range(0, 10_000, 2)))
    file = vector_file(tmp_path / "t")
    vectors = log.files()["deletionVector"].to_pylist()
    assert {each["offset"] is not None for each in vectors} == {True}
    file.write_bytes(b"\xff" * file.stat().st_size)
    assert found(tmp_path / "t") == [("damaged-vector", file.name)]


def test_a_missing_sidecar_is_found(tmp_path):
    log = make(tmp_path / "t", checkpointPolicy="v2")
    log.checkpoint()
    lost = sorted((tmp_path / "t" / "_delta_log" / "_sidecars").iterdir())
    lost[0].unlink()
    assert ("missing-sidecar", lost[0].name) in found(tmp_path / "t")
    assert {kind for kind, _ in found(tmp_path / "t")} == {"missing-sidecar"}


def test_several_damages_are_all_named(table):
    expected = {torn_commit(table), torn_old_commit(table), torn_hint(table)}
    assert set(found(table)) == expected
    checked = opened(table).fsck()
    assert (checked.version, checked.num_files) == (None, None)


def test_no_young_file_and_no_hidden_file_is_an_orphan(table):
    (table / "p=30" / "young.parquet").write_bytes(b"x")
    for name in ("_hidden", ".hidden"):
        (table / name).write_bytes(b"x")
        os.utime(table / name, LONG_AGO)
    other = table / "inner" / "_delta_log"
    other.mkdir(parents=True)
    for file in (other / commit_name(0), table / "inner" / "f.parquet"):
        file.write_bytes(b"x")
        os.utime(file, LONG_AGO)
    assert found(table) == []


def test_old_files_that_the_log_names_are_no_orphans(table):
    for file in table.rglob("*"):
        if "_delta_log" not in file.parts:
            os.utime(file, LONG_AGO)
    assert found(table) == []


def test_the_check_changes_nothing(table):
    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in table.rglob("*") if p.is_file()}

    before = state()
    found(table)
    assert state() == before
