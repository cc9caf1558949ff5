"""The undo of a repair: the same bytes, nothing over later work, kills, records that lie."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from checked_tables import (
    DyingStore,
    LateClock,
    data_file,
    found,
    hint_of_another_version,
    log_file,
    make,
    missing_part,
    opened,
    rows,
)
from optimist.core import CheckedTable, DeltaLog, UndoneRepair
from optimist.core.errors import StorageError, TableError, UsageError
from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name
from optimist.logstores import LocalLogStore


def repaired(path: Path, **how: bool) -> CheckedTable:
    done = DeltaLog(str(path), LocalLogStore(), clock=LateClock()).fsck(repair=True, **how)
    assert done.findings.num_rows == 0
    assert done.record is not None
    return done


def undone(path: Path, record: str | None, store: LocalLogStore | None = None) -> UndoneRepair:
    log = DeltaLog(str(path), store or LocalLogStore(), clock=LateClock())
    return log.undo_repair(str(record))


def left(done: UndoneRepair) -> dict[str, str]:
    return {
        Path(each["path"]).name: each["leftBecause"]
        for each in done.steps.to_pylist()
        if each["leftBecause"] is not None
    }


def log_bytes(path: Path) -> dict[str, bytes]:
    """The files of the log, without copies and without sidecars."""
    return {
        each.name: each.read_bytes() for each in (path / "_delta_log").iterdir() if each.is_file()
    }


def bad_checkpoint(path: Path) -> None:
    file = log_file(path, classic_checkpoint_name(6))
    file.write_bytes(file.read_bytes()[:-100])


def bad_newest_checkpoint(path: Path) -> None:
    """It is named by the hint, and the new checkpoint takes its place."""
    opened(path).checkpoint()
    log_file(path, classic_checkpoint_name(9)).write_bytes(b"PAR1 and no more")


def stale_hint(path: Path) -> None:
    hint_of_another_version(path)


def without_hint(path: Path) -> None:
    bad_checkpoint(path)
    log_file(path, "_last_checkpoint").unlink()


def incomplete(path: Path) -> None:
    missing_part(path)


def bad_checksum(path: Path) -> None:
    log_file(path, checksum_name(4)).write_text("{")


def bad_compacted(path: Path) -> None:
    log_file(path, f"{7:020}.{8:020}.compacted.json").write_text('{"add":')


def all_together(path: Path) -> None:
    for damage in (bad_checkpoint, stale_hint, incomplete, bad_checksum, bad_compacted):
        damage(path)


DAMAGES = (
    bad_checkpoint, bad_newest_checkpoint, stale_hint, without_hint, incomplete, bad_checksum,
    bad_compacted, all_together,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.sample(1)
def test_the_log_has_the_same_bytes_as_before_the_repair(table, damage):
    damage(table)
    before, told = log_bytes(table), found(table)
    record = repaired(table).record
    assert log_bytes(table) != before
    done = undone(table, record)
    assert (done.num_left, left(done)) == (0, {})
    assert log_bytes(table) == before
    assert found(table) == told
    assert undone(table, record).steps.num_rows == 0
    assert log_bytes(table) == before
    repaired(table)


def test_a_checkpoint_with_sidecars_is_undone(tmp_path):
    log = make(tmp_path / "t", checkpointPolicy="v2")
    log.checkpoint()
    for lost in (tmp_path / "t" / "_delta_log" / "_sidecars").iterdir():
        lost.unlink()
    before = log_bytes(tmp_path / "t")
    record = repaired(tmp_path / "t").record
    assert undone(tmp_path / "t", record).num_left == 0
    assert log_bytes(tmp_path / "t") == before


def untrue_statistics(path: Path) -> None:
    """Other bounds in every commit of a log that has only commits."""
    name = data_file(path).name
    for each in (path / "_delta_log").iterdir():
        if each.suffix in (".crc", ".parquet") or each.name == "_last_checkpoint":
            each.unlink()
    for each in (path / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in each.read_text().splitlines()]
        for line in lines:
            if "add" in line and line["add"]["path"].endswith(name):
                stats = json.loads(line["add"]["stats"])
                stats["maxValues"]["x"] = 31
                line["add"]["stats"] = json.dumps(stats)
        each.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def files_of(path: Path) -> list[dict]:
    files = DeltaLog(str(path), LocalLogStore(), clock=LateClock()).snapshot().files
    return sorted(files.select(["path", "stats"]).to_pylist(), key=lambda file: file["path"])


def test_statistics_become_what_they_were_and_no_row_changes(table):
    untrue_statistics(table)
    before, told = files_of(table), found(table)
    record = repaired(table, deep=True).record
    assert files_of(table) != before
    done = undone(table, record)
    assert [each["step"] for each in done.steps.to_pylist()] == ["commit 11: RESTORE to version 9"]
    assert (files_of(table), found(table)) == (before, told)
    changes = opened(table).changes(starting_version=10, ending_version=11)
    assert changes.num_rows == 0
    assert undone(table, record).steps.num_rows == 0
    opened(table).append(rows(5000))
    assert undone(table, record).steps.num_rows == 0


def test_dropped_files_come_back_if_they_are_there(table):
    before, file = files_of(table), data_file(table)
    lost = file.read_bytes()
    file.unlink()
    record = repaired(table, drop_missing_files=True).record
    done = undone(table, record)
    assert done.num_left == 1
    assert "not exist" in left(done)["t"] or "gone" in left(done)["t"]
    file.write_bytes(lost)
    assert undone(table, record).num_left == 0
    assert files_of(table) == before
    assert undone(table, record).steps.num_rows == 0


def test_two_commits_of_one_repair_are_undone_one_after_the_other(table):
    untrue_statistics(table)
    lost = next(table.glob("**/p=50/*.parquet"))
    content = lost.read_bytes()
    lost.unlink()
    before = files_of(table)
    record = repaired(table, deep=True, drop_missing_files=True).record
    lost.write_bytes(content)
    assert undone(table, record).num_left == 0
    assert files_of(table) == before
    assert undone(table, record).steps.num_rows == 0


def test_a_commit_after_the_repair_stays(table):
    file = data_file(table)
    lost = file.read_bytes()
    file.unlink()
    bad_checksum(table)
    record = repaired(table, drop_missing_files=True).record
    file.write_bytes(lost)
    opened(table).append(rows(5000))
    before = files_of(table)
    done = undone(table, record)
    assert left(done) == {"t": "others have committed since"}
    assert files_of(table) == before
    assert log_file(table, checksum_name(4)).read_text() == "{"


def test_what_others_have_written_since_stays(table):
    all_together(table)
    record = repaired(table).record
    opened(table).append(rows(5000))
    opened(table).checkpoint()
    log_file(table, checksum_name(4)).write_text("of another")
    hint, before = log_file(table, "_last_checkpoint").read_bytes(), files_of(table)
    done = undone(table, record)
    assert left(done) == {
        "_last_checkpoint": "another file is there",
        checksum_name(4): "another file is there",
    }
    assert log_file(table, "_last_checkpoint").read_bytes() == hint
    assert log_file(table, checksum_name(4)).read_text() == "of another"
    assert files_of(table) == before


def test_a_checkpoint_that_the_log_needs_by_now_stays(table):
    bad_newest_checkpoint(table)
    record = repaired(table).record
    for version in range(9):
        for name in (
            commit_name(version),
            checksum_name(version),
            classic_checkpoint_name(version),
        ):
            log_file(table, name).unlink(missing_ok=True)
    before = files_of(table)
    done = undone(table, record)
    assert done.num_left == 2
    assert "is needed" in done.steps["leftBecause"].to_pylist()[1]
    assert files_of(table) == before


def test_an_undo_that_dies_at_any_step_is_ended_by_the_next(table, tmp_path):
    bad_newest_checkpoint(table)
    bad_checksum(table)
    before, files = log_bytes(table), files_of(table)
    for lives in range(20):
        path = tmp_path / f"dies-{lives}"
        shutil.copytree(table, path)
        record = repaired(path).record
        store = DyingStore(lives)
        with suppress(StorageError):
            undone(path, record, store)
        assert files_of(path) == files
        if not log_file(path, classic_checkpoint_name(9)).exists():
            assert not log_file(path, "_last_checkpoint").exists(), "engines fail on such a hint"
        if store.lives >= 0:
            break
        undone(path, record)
        assert log_bytes(path) == before
    assert lives >= 4


def test_another_log_at_the_same_path_is_not_touched(table, tmp_path):
    bad_checkpoint(table)
    record = repaired(table).record
    shutil.move(table / "_delta_log" / "_repairs", tmp_path / "kept")
    shutil.rmtree(table)
    make(table)
    shutil.move(tmp_path / "kept", table / "_delta_log" / "_repairs")
    before = log_bytes(table)
    with pytest.raises(TableError, match="not the one that was repaired"):
        undone(table, record)
    assert log_bytes(table) == before


@pytest.mark.parametrize("wrong", ["", "../..", "20260102T030405Z-1a2b3c4d", "x/steps.jsonl"])
def test_a_name_that_is_no_record_is_refused(table, wrong):
    with pytest.raises(UsageError, match="There is no record"):
        undone(table, wrong)


def rewritten(path: Path, record: str | None, change: Callable[[dict], None]) -> None:
    file = path / "_delta_log" / "_repairs" / str(record) / "steps.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        change(line)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize("name", [commit_name(8), "x.parquet", "..", ".s3-optimization-0"])
def test_a_record_that_names_what_no_repair_touches_is_refused(table, name):
    bad_checksum(table)
    record = repaired(table).record

    def change(line: dict) -> None:
        if line["step"] == "save":
            line["path"] = f"/elsewhere/{name}"

    rewritten(table, record, change)
    before = log_bytes(table)
    with pytest.raises(TableError, match="a repair does not touch"):
        undone(table, record)
    assert log_bytes(table) == before


def test_a_record_leads_to_no_other_directory_and_to_no_commit_of_another_operation(
    table, tmp_path
):
    bad_checksum(table)
    record = repaired(table).record

    def change(line: dict) -> None:
        if line["step"] == "save":
            line["path"] = f"{tmp_path}/{checksum_name(4)}"
        if line["step"] == "remove":
            line["step"] = "commit 9: FSCK"

    rewritten(table, record, change)
    before = files_of(table)
    done = undone(table, record)
    assert left(done) == {"t": "it is no commit of the operation FSCK"}
    assert not (tmp_path / checksum_name(4)).exists()
    assert log_file(table, checksum_name(4)).read_text() == "{"
    assert files_of(table) == before


def test_no_link_leads_a_copy_out_of_the_table(table, tmp_path):
    bad_checksum(table)
    record = repaired(table).record
    secret = tmp_path / "secret"
    secret.write_text("geheim")
    (copy,) = (table / "_delta_log" / "_repairs").rglob("*.saved")
    copy.unlink()
    copy.symlink_to(secret)
    with pytest.raises(TableError, match="symbolic link"):
        undone(table, record)
    assert not log_file(table, checksum_name(4)).exists()
