"""The repair of a table: what is damaged one way each, what is saved, and kills between steps."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
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
from optimist.core import DeltaLog
from optimist.core.errors import StorageError, TableError, UsageError
from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name
from optimist.core.maintenance.fsck.findings import STEPS, CheckedTable
from optimist.core.plugins.logstore import LogStore
from optimist.logstores import LocalLogStore


def repaired(path: Path, store: LogStore | None = None, **how: bool) -> CheckedTable:
    log = DeltaLog(str(path), store or LocalLogStore(), clock=LateClock())
    return log.fsck(repair=True, **how)


def content(path: Path) -> list[dict]:
    """The rows of a handle that has seen nothing of the table before."""
    read = DeltaLog(str(path), LocalLogStore(), clock=LateClock()).to_arrow()
    return sorted(read.select(["p", "x", "text"]).to_pylist(), key=lambda row: row["x"])


def saved(path: Path) -> dict[str, bytes]:
    """The saved files by the names that they had."""
    files = (path / "_delta_log" / "_repairs").rglob("*.saved")
    return {each.name.removesuffix(".saved"): each.read_bytes() for each in files}


def bad_checkpoint(path: Path) -> set[str]:
    file = log_file(path, classic_checkpoint_name(6))
    file.write_bytes(file.read_bytes()[:-100])
    return {file.name}


def empty_checkpoint(path: Path) -> set[str]:
    log_file(path, classic_checkpoint_name(6)).write_bytes(b"")
    return {classic_checkpoint_name(6)}


def bad_newest_checkpoint(path: Path) -> set[str]:
    file = log_file(path, classic_checkpoint_name(9))
    file.write_bytes(b"PAR1 and no more")
    return {file.name, "_last_checkpoint"}  # which is older


def stale_hint(path: Path) -> set[str]:
    hint_of_another_version(path)
    return {"_last_checkpoint"}


def torn_hint(path: Path) -> set[str]:
    log_file(path, "_last_checkpoint").write_text('{"version":')
    return {"_last_checkpoint"}


def incomplete(path: Path) -> set[str]:
    return {missing_part(path)[1]}


def bad_checksum(path: Path) -> set[str]:
    log_file(path, checksum_name(4)).write_text("{")
    return {checksum_name(4)}


def bad_compacted(path: Path) -> set[str]:
    name = f"{7:020}.{8:020}.compacted.json"
    log_file(path, name).write_text('{"add":')
    return {name}


def incomplete_and_named(path: Path) -> set[str]:
    log_file(path, "_last_checkpoint").write_text('{"version":7,"size":1,"parts":2}')
    return {missing_part(path)[1]}


def all_together(path: Path) -> set[str]:
    damages = (bad_checkpoint, torn_hint, incomplete, bad_checksum, bad_compacted)
    return set().union(*(damage(path) for damage in damages))


DAMAGES = (
    bad_checkpoint, empty_checkpoint, bad_newest_checkpoint, stale_hint, torn_hint, incomplete,
    incomplete_and_named, bad_checksum, bad_compacted, all_together,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.sample(1)
def test_a_repair_leaves_nothing_to_find_and_the_same_rows(table, damage):
    before, names = content(table), damage(table)
    bytes_of = {name: log_file(table, name).read_bytes() for name in names}
    assert found(table, deep=False) != []
    left = repaired(table)
    assert left.findings.to_pylist() == []
    assert found(table) == []
    assert content(table) == before
    copies = saved(table)
    assert {name: copies[name] for name in names} == bytes_of
    assert set(copies) - names <= {"_last_checkpoint"}, "it is overwritten"
    steps = left.steps.to_pylist()
    assert {Path(each["path"]).name for each in steps if each["step"] == "save"} == set(copies)
    record = table / "_delta_log" / "_repairs" / str(left.record) / "steps.jsonl"
    _, *lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [{key: line[key] for key in STEPS.names} for line in lines] == steps
    assert repaired(table).steps.num_rows == 0
    opened(table).append(rows(5000))
    assert len(content(table)) == len(before) + 4


def test_a_missing_sidecar_is_repaired(tmp_path):
    log = make(tmp_path / "t", checkpointPolicy="v2")
    log.checkpoint()
    before = content(tmp_path / "t")
    for lost in (tmp_path / "t" / "_delta_log" / "_sidecars").iterdir():
        lost.unlink()
    assert repaired(tmp_path / "t").findings.to_pylist() == []
    assert found(tmp_path / "t") == []
    assert content(tmp_path / "t") == before


def torn_newest(path: Path) -> None:
    file = log_file(path, commit_name(9))
    file.write_bytes(file.read_bytes()[:-30])


def lost_in_between(path: Path) -> None:
    log_file(path, commit_name(8)).unlink()


def wrong_sums(path: Path) -> None:
    file = log_file(path, checksum_name(9))
    file.write_text(file.read_text().replace('"numFiles":', '"numFiles":1'))


def lost_vector(path: Path) -> None:
    next(path.glob("**/deletion_vector_*.bin")).unlink()


def lost_file(path: Path) -> None:
    data_file(path).unlink()


def foreign_name(path: Path) -> None:
    shutil.copy(log_file(path, commit_name(9)), log_file(path, "9.json"))


NO_REPAIR = (torn_newest, lost_in_between, wrong_sums, lost_vector, lost_file, foreign_name)


def state(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()}


@pytest.mark.parametrize("damage", NO_REPAIR, ids=lambda damage: damage.__name__)
@pytest.mark.sample(1)
def test_what_can_t_be_repaired_for_certain_stays_as_it_is(table, damage):
    damage(table)
    before, told = state(table), found(table, deep=False)
    assert told
    left = repaired(table)
    assert [each["kind"] for each in left.findings.to_pylist()] == [kind for kind, _ in told]
    assert left.steps.num_rows == 0
    assert state(table) == before


def clean_up(path: Path, before: int) -> None:
    for version in range(before):
        for name in (commit_name(version), checksum_name(version)):
            log_file(path, name).unlink(missing_ok=True)


def without_tombstones(path: Path, version: int) -> Path:
    """Damage a checkpoint where it has the removed files."""
    file = log_file(path, classic_checkpoint_name(version))
    data, footer = bytearray(file.read_bytes()), pq.ParquetFile(file).metadata
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            if column.path_in_schema == "remove.path":
                start, size = column.data_page_offset, column.total_compressed_size
                data[start : start + size] = b"\xff" * size
    file.write_bytes(data)
    return file


def test_a_checkpoint_that_versions_need_stays_though_a_part_of_it_is_damaged(table):
    """Only the tombstones can't be read, and the commits before the checkpoint are gone."""
    opened(table).checkpoint()
    clean_up(table, 6)
    file = without_tombstones(table, 9)
    assert found(table) == [("bad-checkpoint", classic_checkpoint_name(9))]
    log_file(table, commit_name(7)).unlink()
    log_file(table, checksum_name(7)).unlink()
    before = content(table)
    repaired(table)
    assert file.exists()
    assert content(table) == before


def test_a_checkpoint_stays_if_a_cleanup_makes_it_the_only_base_meanwhile(table):
    opened(table).checkpoint()
    opened(table).append(rows(5000))
    file = without_tombstones(table, 9)
    before = DeltaLog(str(table), LocalLogStore(), clock=LateClock()).to_arrow(version=9)

    class Cleaned(LocalLogStore):
        """A store whose log is cleaned up after fsck has read it."""

        def newest_claimed(self, log_path):
            clean_up(table, 9)
            log_file(table, classic_checkpoint_name(6)).unlink(missing_ok=True)
            return super().newest_claimed(log_path)

    repaired(table, Cleaned())
    assert file.exists()
    after = DeltaLog(str(table), LocalLogStore(), clock=LateClock()).to_arrow(version=9)
    assert after.num_rows == before.num_rows


def test_a_damaged_checkpoint_stays_if_it_alone_stands_for_commits_that_are_gone(table):
    """Another engine may read versions 6 to 8 from what this one takes for damaged."""
    opened(table).checkpoint()
    bad_checkpoint(table)
    clean_up(table, 6)
    before = state(table)
    left = repaired(table)
    assert [each["kind"] for each in left.findings.to_pylist()] == ["bad-checkpoint"]
    assert state(table) == before


def test_a_checkpoint_whose_reading_was_cut_once_stays(table):
    name = classic_checkpoint_name(6)

    class CutOnce(LocalLogStore):
        has_cut = False

        def open_read(self, path):
            file = super().open_read(path)
            if Path(path).name != name or self.has_cut:
                return file
            self.has_cut = True
            with file:
                return io.BytesIO(file.read(4000))

    for version in range(6):
        log_file(table, commit_name(version)).unlink()
    store = CutOnce()
    store.has_cut = True
    log = DeltaLog(str(table), store, clock=LateClock())
    log.snapshot().files  # noqa: B018 - reads the checkpoint
    store.has_cut = False
    left = log.fsck(repair=True)
    assert store.has_cut
    assert (left.findings.num_rows, left.steps.num_rows) == (0, 0)
    assert log_file(table, name).exists()


def test_a_repair_that_dies_at_any_step_is_ended_by_the_next(table, tmp_path):
    for damage in (bad_checkpoint, bad_checksum):
        damage(table)
    before = content(table)
    for lives in range(0, 40, 2):
        path = tmp_path / f"dies-{lives}"
        shutil.copytree(table, path)
        try:
            repaired(path, DyingStore(lives))
        except StorageError:
            assert content(path) == before
            assert repaired(path).findings.num_rows == 0
        else:
            break
        assert content(path) == before
        assert found(path, deep=False) == []
    assert lives >= 8


def test_the_hint_never_names_a_checkpoint_that_a_dead_repair_has_removed(table, tmp_path):
    """deltalake and DuckDB could then not open the table."""
    opened(table).checkpoint()
    bad_newest_checkpoint(table)
    for lives in range(14):
        path = tmp_path / f"dies-{lives}"
        shutil.copytree(table, path)
        with suppress(StorageError):
            repaired(path, DyingStore(lives))
        if not log_file(path, classic_checkpoint_name(9)).exists():
            assert not log_file(path, "_last_checkpoint").exists()


def test_missing_files_are_dropped_only_if_that_is_wanted_and_restore_undoes_it(table):
    before = content(table)
    file = data_file(table)
    lost = file.read_bytes()
    file.unlink()
    assert [each["kind"] for each in repaired(table).findings.to_pylist()] == ["missing-file"]
    left = repaired(table, drop_missing_files=True)
    assert left.findings.num_rows == 0
    assert content(table) == [row for row in before if row["p"] != 30]
    record = opened(table).history(1)[0]
    assert record.info.operation == "FSCK"
    assert record.info.operation_metrics == {"numRemovedFiles": "1"}
    file.write_bytes(lost)
    opened(table).restore(9)
    assert content(table) == before
    with pytest.raises(UsageError, match="Only a repair"):
        opened(table).fsck(drop_missing_files=True)


def test_not_all_files_of_a_table_are_dropped(tmp_path):
    opened(tmp_path / "t").append(rows(0))
    (file,) = (tmp_path / "t").glob("**/*.parquet")
    file.unlink()
    with pytest.raises(TableError, match="Not one of the 1 files"):
        repaired(tmp_path / "t", drop_missing_files=True)
    assert len(opened(tmp_path / "t").history()) == 1


def test_the_rows_of_a_clone_stay_while_its_source_is_away(table, tmp_path):
    opened(table).clone(str(tmp_path / "clone"), is_shallow=True)
    opened(tmp_path / "clone").append(rows(5000))
    before = content(tmp_path / "clone")
    table.rename(tmp_path / "away")
    with pytest.raises(TableError, match="outside of the directory"):
        repaired(tmp_path / "clone", drop_missing_files=True)
    (tmp_path / "away").rename(table)
    assert content(tmp_path / "clone") == before
    data_file(table).unlink()
    assert repaired(tmp_path / "clone", drop_missing_files=True).findings.num_rows == 0
    assert content(tmp_path / "clone") == [row for row in before if row["p"] != 30]


def test_the_rows_of_one_of_two_sources_stay_while_that_one_is_away(table, tmp_path):
    """The clone of a clone names the files of both."""
    opened(table).clone(str(tmp_path / "clone"), is_shallow=True)
    opened(tmp_path / "clone").append(rows(5000), partition_by=("p",))
    opened(tmp_path / "clone").clone(str(tmp_path / "second"), is_shallow=True)
    before = content(tmp_path / "second")
    for away in (table, tmp_path / "clone"):
        away.rename(tmp_path / "away")
        with pytest.raises(TableError, match=f"outside of the directory, in {away},"):
            repaired(tmp_path / "second", drop_missing_files=True)
        (tmp_path / "away").rename(away)
    assert content(tmp_path / "second") == before


def test_the_rows_behind_a_link_stay_while_its_target_is_away(table, tmp_path):
    (folder,) = table.glob("**/p=60")
    folder.rename(tmp_path / "p=60")
    folder.symlink_to(tmp_path / "p=60")
    before = content(table)
    assert found(table) == []
    (tmp_path / "p=60").rename(tmp_path / "away")
    with pytest.raises(TableError, match="outside of the directory"):
        repaired(table, drop_missing_files=True)
    (tmp_path / "away").rename(tmp_path / "p=60")
    assert content(table) == before


def test_a_path_of_very_many_directories_like_partitions_costs_no_more_than_others(tmp_path):
    opened(tmp_path / "t").append(rows(0))
    opened(tmp_path / "t").append(rows(10))
    place = str(tmp_path / "away") + "/a==b" * 60 + "/z"
    commit = log_file(tmp_path / "t", commit_name(1))
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for add in (line["add"] for line in lines if "add" in line):
        add["path"] = f"{place}/f=1/data.parquet"
    commit.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    log_file(tmp_path / "t", checksum_name(1)).unlink()
    with pytest.raises(TableError, match="Not one of the 1 files outside of the directory"):
        repaired(tmp_path / "t", drop_missing_files=True)


def edited_adds(path: Path, change: Callable[[dict], None]) -> None:
    """Change the adds of all commits, where there is no checkpoint and no checksum."""
    for each in (path / "_delta_log").iterdir():
        if each.suffix in (".crc", ".parquet") or each.name == "_last_checkpoint":
            each.unlink()
    for each in (path / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in each.read_text().splitlines()]
        for line in lines:
            if "add" in line:
                change(line["add"])
        each.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_untrue_statistics_are_made_true(table):
    name = data_file(table).name

    def change(add: dict) -> None:
        if add["path"].endswith(name):
            stats = json.loads(add["stats"])
            stats["maxValues"]["x"] = 31
            add["stats"] = json.dumps(stats)

    edited_adds(table, change)
    before = content(table)
    assert found(table) == [("untrue-statistics", name)]
    left = repaired(table, deep=True)
    assert left.findings.to_pylist() == []
    assert content(table) == before
    log = opened(table)
    assert log.to_arrow("x = 33").num_rows == 1
    record = log.history(1)[0].info
    assert (record.operation, record.operation_metrics["numFilesChanged"]) == ("COMPUTE STATS", "1")


def test_a_file_that_another_has_replaced_meanwhile_is_not_removed(table):
    name = checksum_name(4)
    whole = log_file(table, name).read_bytes()
    log_file(table, name).write_text("{")

    class Replacing(LocalLogStore):
        def put_file_if_absent(self, path, file):
            done = super().put_file_if_absent(path, file)
            log_file(table, name).write_bytes(whole)
            return done

    assert repaired(table, Replacing()).findings.num_rows == 0
    assert log_file(table, name).read_bytes() == whole


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
def test_no_link_leads_a_repair_out_of_the_table(table, tmp_path):
    bad_checksum(table)
    (tmp_path / "elsewhere").mkdir()
    (table / "_delta_log" / "_repairs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TableError, match="symbolic link"):
        repaired(table)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert log_file(table, checksum_name(4)).exists()
