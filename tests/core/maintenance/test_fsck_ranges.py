"""What fsck finds in the files that stand for ranges of commits, held against these commits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from checked_tables import LateClock, data_file, found, log_file, make, opened, rows
from optimist.core import DeltaLog, col
from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name
from optimist.core.log_upkeep.compaction import write_compaction
from optimist.core.maintenance.fsck import log_content
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.clock import SystemClock
from optimist.logstores import LocalLogStore


@pytest.fixture
def table(tmp_path: Path) -> Path:
    make(tmp_path / "t")
    return tmp_path / "t"


def told(path: Path, most_bytes: int = 1 << 30) -> list[dict]:
    options = EngineOptions(log_max_file_bytes=most_bytes)
    log = DeltaLog(str(path), LocalLogStore(), options=options, clock=LateClock())
    return log.fsck().findings.to_pylist()


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(file)), file)


def at(whole: pa.Table, kind: str) -> int:
    """The first row of a checkpoint that has this kind of action."""
    return pc.index(whole[kind].combine_chunks().is_valid(), True).as_py()


def without_a_file(whole: pa.Table) -> pa.Table:
    row = at(whole, "add")
    return pa.concat_tables([whole.slice(0, row), whole.slice(row + 1)])


def with_a_strange_file(whole: pa.Table) -> pa.Table:
    row = whole.slice(at(whole, "add"), 1)
    (add,) = row.select(["add"]).to_pylist()
    add["add"]["path"] = "strange.parquet"
    place = whole.schema.get_field_index("add")
    strange = pa.Table.from_pylist([add], schema=pa.schema([whole.schema.field("add")]))
    return pa.concat_tables([whole, row.set_column(place, whole.schema.field("add"), strange[0])])


def with_metadata(whole: pa.Table, change: Callable[[dict], None]) -> pa.Table:
    place = whole.schema.get_field_index("metaData")
    actions = whole.select(["metaData"]).to_pylist(maps_as_pydicts="strict")
    for each in actions:
        if each["metaData"] is not None:
            change(each["metaData"])
    field = whole.schema.field("metaData")
    changed = pa.Table.from_pylist(actions, schema=pa.schema([field]))
    return whole.set_column(place, field, changed[0])


def with_another_id(whole: pa.Table) -> pa.Table:
    return with_metadata(whole, lambda metadata: metadata.update(id="another"))


def with_another_type(whole: pa.Table) -> pa.Table:
    return with_metadata(whole, lambda metadata: spell(metadata, "decimal(38,10)", "decimal(38,9)"))


def with_the_schema_spelled_otherwise(whole: pa.Table) -> pa.Table:
    def change(metadata: dict) -> None:
        spell(metadata, ',"metadata":{}', "")
        spell(metadata, "decimal(38,10)", "decimal(38, 10)")

    return with_metadata(whole, change)


def spell(metadata: dict, old: str, new: str) -> None:
    assert old in metadata["schemaString"]
    metadata["schemaString"] = metadata["schemaString"].replace(old, new)


UNTRUE = [
    (without_a_file, "unlike the commits, it lacks 1 files"),
    (with_a_strange_file, "unlike the commits, it has 1 files"),
    (with_another_id, "its protocol, metadata or transactions are not those of the commits"),
    (with_another_type, "its protocol, metadata or transactions are not those of the commits"),
]


@pytest.mark.parametrize(("change", "proof"), UNTRUE)
@pytest.mark.sample(1)
def test_an_untrue_checkpoint_without_a_checksum_is_found(table, change, proof):
    file = log_file(table, classic_checkpoint_name(6))
    log_file(table, checksum_name(6)).unlink()
    assert found(table, deep=False) == []
    rewrite(file, change)
    for each in (table / "_delta_log").glob("*.crc"):
        each.unlink()
    (row,) = (each for each in told(table) if each["kind"] != "missing-file")
    assert (row["kind"], row["version"], row["proof"]) == ("untrue-checkpoint", 6, proof)


def test_a_checkpoint_may_spell_the_schema_in_another_way(table):
    rewrite(log_file(table, classic_checkpoint_name(6)), with_the_schema_spelled_otherwise)
    assert found(table, deep=False) == []


def test_a_checkpoint_is_held_against_the_one_before_if_the_first_commits_are_gone(table):
    opened(table).checkpoint()
    for version in range(6):
        log_file(table, commit_name(version)).unlink()
        log_file(table, checksum_name(version)).unlink()
    for version in (6, 9):
        log_file(table, checksum_name(version)).unlink()
    assert found(table, deep=False) == []
    rewrite(log_file(table, classic_checkpoint_name(9)), without_a_file)
    (row,) = told(table)
    assert row["kind"] == "untrue-checkpoint"
    assert row["proof"] == "unlike checkpoint 6 and the commits after it, it lacks 1 files"


def test_a_checkpoint_that_disagrees_with_its_checksum_is_found(table):
    rewrite(log_file(table, classic_checkpoint_name(6)), without_a_file)
    opened(table).checkpoint()
    assert ("checksum-mismatch", classic_checkpoint_name(6)) in found(table, deep=False)


def test_a_repair_writes_no_checkpoint_of_a_version_in_doubt(table):
    for each in (table / "_delta_log").glob("*.crc"):
        each.unlink()
    rewrite(log_file(table, classic_checkpoint_name(6)), without_a_file)
    log_file(table, "_last_checkpoint").write_text('{"version":')
    log = DeltaLog(str(table), LocalLogStore(), clock=LateClock())
    left = log.fsck(repair=True)
    kinds = [each["kind"] for each in left.findings.to_pylist()]
    assert kinds == ["untrue-checkpoint", "stale-hint"]
    assert left.steps.num_rows == 0


@pytest.mark.parametrize("lost", ["metaData", "protocol"])
@pytest.mark.sample(1)
def test_compacted_commits_without_a_change_of_the_description_are_bad(table, lost):
    log = opened(table)
    log.alter.set_properties({"owner": "me"})
    assert write_compaction(log.store, log.log_path, 0, 10) is PutOutcome.CREATED
    assert found(table, deep=False) == []
    file = log_file(table, f"{0:020}.{10:020}.compacted.json")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if f'"{lost}"' not in line))
    (row,) = told(table)
    assert row["kind"] == "bad-compacted"
    assert row["proof"].startswith("protocol, metadata or transactions are not")


def test_compacted_commits_beyond_the_limit_are_not_read(table):
    file = log_file(table, f"{7:020}.{8:020}.compacted.json")
    file.write_text('{"add":{}}\n' * 2000)
    (row,) = told(table, 20_000)
    assert (row["kind"], Path(row["path"]).name) == ("unreadable", file.name)
    assert "20000 that are allowed" in row["proof"]


def test_a_checksum_beyond_the_limit_is_not_read(table):
    file = log_file(table, checksum_name(4))
    file.write_text(" " * 30_000)
    (row,) = told(table, 20_000)
    assert (row["kind"], Path(row["path"]).name) == ("unreadable", file.name)


def test_a_hint_beyond_the_limit_is_not_read(table):
    file = log_file(table, "_last_checkpoint")
    file.write_text(file.read_text() + " " * 30_000)
    (row,) = told(table, 20_000)
    assert (row["kind"], Path(row["path"]).name) == ("unreadable", "_last_checkpoint")
    assert "20000 that are allowed" in row["proof"]


def test_very_many_compacted_commits_of_one_range_are_not_all_compared(table, monkeypatch):
    log = opened(table)
    for last in range(1, 9):
        assert write_compaction(log.store, log.log_path, 0, last) is PutOutcome.CREATED
    assert found(table, deep=False) == []
    monkeypatch.setattr(log_content, "_ALWAYS_COMPARED", 0)
    monkeypatch.setattr(log_content, "_MOST_TIMES", 1)
    rest = told(table)
    assert {each["kind"] for each in rest} == {"unreadable"}
    assert 0 < len(rest) < 8


def test_the_progress_of_very_many_applications_is_not_compared_again_and_again(table, monkeypatch):
    commit = log_file(table, commit_name(1))
    with commit.open("a") as file:
        file.writelines(f'{{"txn":{{"appId":"{each}","version":1}}}}\n' for each in range(1000))
    for each in (table / "_delta_log").glob("*.crc"):
        each.unlink()
    store = LocalLogStore()
    for last in range(1, 9):
        outcome = write_compaction(store, str(table / "_delta_log"), 0, last)
        assert outcome is PutOutcome.CREATED
    assert found(table, deep=False) == []
    monkeypatch.setattr(log_content, "_ALWAYS_COMPARED", 1000)
    monkeypatch.setattr(log_content, "_MOST_TIMES", 1)
    assert [each["kind"] for each in told(table)] == ["unreadable"] * 6


def test_a_commit_that_was_lost_from_the_end_is_found_by_compacted_commits(table):
    log = opened(table)
    write_compaction(log.store, log.log_path, 7, 9)
    log_file(table, commit_name(9)).unlink()
    log_file(table, checksum_name(9)).unlink()
    assert ("gap", "_delta_log") in found(table, deep=False)


def change_file(table: Path, version: int) -> Path:
    """The change file of a commit."""
    lines = map(json.loads, log_file(table, commit_name(version)).read_text().splitlines())
    return table / next(line["cdc"]["path"] for line in lines if "cdc" in line)


def test_a_change_file_that_is_gone_or_cut_off_is_found(table):
    opened(table).update(set={"text": "'again'"}, predicate="x = 33")
    file = change_file(table, 10)
    content = file.read_bytes()
    for damage, proof in (
        (lambda: file.unlink(), "there is no such file"),
        (lambda: file.write_bytes(content[:-1]), f"{len(content)} bytes, and the file has"),
    ):
        damage()
        (row,) = told(table)
        assert (row["kind"], Path(row["path"]).name) == ("bad-change-file", file.name)
        assert row["version"] == 10
        assert proof in row["proof"]
    left = DeltaLog(str(table), LocalLogStore(), clock=LateClock()).fsck(repair=True)
    assert (left.findings.num_rows, left.steps.num_rows) == (1, 0)


def test_change_files_that_a_vacuum_removed_early_are_not_missed(table):
    opened(table).update(set={"text": "'again'"}, predicate="x = 33")
    for version in (8, 10):
        change_file(table, version).unlink()
        assert found(table) == []


def test_a_change_file_whose_retention_may_have_ended_is_not_missed(tmp_path):
    make(tmp_path / "t", deletedFileRetentionDuration="interval 1 hours")
    opened(tmp_path / "t").update(set={"text": "'again'"}, predicate="x = 33")
    change_file(tmp_path / "t", 10).unlink()
    assert found(tmp_path / "t") == []  # by the late clock the commits are an hour old


def test_a_copied_table_whose_change_files_were_vacuumed_is_healthy(table):
    opened(table).update(set={"text": "'again'"}, predicate="x = 33")
    change_file(table, 10).unlink()
    assert [kind for kind, _ in found(table)] == ["bad-change-file"]
    long_ago_ms = SystemClock().now_ms() - 10 * 24 * 3_600_000
    for file in (table / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("commitInfo", {})["timestamp"] = long_ago_ms
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(file)
    assert found(table) == []


def test_a_long_history_with_checkpoints_and_compacted_commits_is_healthy(tmp_path):
    log = opened(tmp_path / "t", enableDeletionVectors="true", checkpointInterval="1000")
    for start in range(0, 120, 20):
        log.append(rows(start, 20), partition_by=("p",))
        log.delete(col("x") == start + 3)
        log.append(pa.table({"x": [start], "p": pa.array([7], pa.int32())}), txn=("app", start))
        version = log.snapshot().version
        write_compaction(log.store, log.log_path, max(0, version - 4), version)
        if start % 40 == 0:
            log.checkpoint()
    log.restore(version=2)
    log.optimize()
    log.checkpoint()
    for each in (tmp_path / "t" / "_delta_log").glob("*.crc"):
        each.unlink()
    assert found(tmp_path / "t", deep=False) == []
    data_file(tmp_path / "t", 0).unlink()
    assert [kind for kind, _ in found(tmp_path / "t", deep=False)] == ["missing-file"]
