"""Intents: what VACUUM spares for writers that have not committed yet, whatever the retention."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.intents.intents import INTENTS, begin_intent
from optimist.core.errors import ConfigError, StorageError, TableError
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.vacuum import vacuum as module
from optimist.core.maintenance.vacuum.heeded_intents import HeededIntents
from optimist.core.transaction.conflicts.operations import Operation

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
DAY_S = 24 * 60 * 60


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def opened(path: Path, **options: str) -> DeltaLog:
    given = {f"spark.optimist.{key.replace('_', '.')}": text for key, text in options.items()}
    return DeltaLog.for_path(str(path), {**UNCHECKED, **given})


def ids(log: DeltaLog) -> list[int]:
    return sorted(DeltaLog.for_path(log.table_path).to_arrow().column("id").to_pylist())


@pytest.fixture
def log(tmp_path) -> DeltaLog:
    """A table with one row."""
    made = opened(tmp_path / "table")
    made.append(rows(0))
    return made


def junk(log: DeltaLog, name: str = "part-of-someone.parquet") -> Path:
    return written(Path(log.table_path, name), b"x")


def written(path: Path, content: bytes) -> Path:
    """A file that seems a second old, for a VACUUM without retention to find it."""
    path.write_bytes(content)
    second_ago = path.stat().st_mtime - 1
    os.utime(path, (second_ago, second_ago))
    return path


def intents(log: DeltaLog) -> list[Path]:
    return sorted(Path(log.table_path, INTENTS).glob("*"))


# The order of a writer's steps and a VACUUM's


def an_append(log: DeltaLog, other: DeltaLog, stack: ExitStack) -> Iterator[None]:
    """An append, a step at a time: its intent, its file, its commit, its end."""
    txn = log.start_transaction(log.snapshot())
    files = stack.enter_context(UncommittedFiles(txn))
    (name,) = other.snapshot().files["path"].to_pylist()
    yield files.announce()
    yield written(Path(log.table_path, name), Path(other.table_path, name).read_bytes())
    yield files.commit(txn, add_files(other.snapshot().files), Operation.write("Append"))
    yield stack.close()


NUM_STEPS = 4


def all_schedules() -> list[tuple[int, ...]]:
    """How many steps of the writer are done before each of the four steps of a VACUUM."""
    chosen = combinations(range(NUM_STEPS + 4), 4)
    return [tuple(place - number for number, place in enumerate(each)) for each in chosen]


def rows_after(
    schedule: tuple[int, ...], path: Path, monkeypatch: pytest.MonkeyPatch, *, writer=an_append
) -> list[int]:
    """Play a schedule: the VACUUM lists, looks for intents, looks at the log, deletes."""
    log, other = opened(path / "table"), opened(path / "other")
    log.append(rows(0))
    other.append(rows(1))
    with ExitStack() as stack, monkeypatch.context() as patched:
        steps, done = writer(log, other, stack), 0

        def pausing(owner: object, name: str, step: int) -> None:
            original = getattr(owner, name)

            def call(*given, **named):
                nonlocal done
                while done < schedule[step]:
                    next(steps)
                    done += 1
                found = original(*given, **named)
                return iter(list(found)) if isinstance(found, Iterator) else found

            patched.setattr(owner, name, call)

        pausing(module, "listed_pages", 0)
        pausing(module.HeededIntents, "find", 1)
        pausing(module._Vacuum, "_still_dead", 2)
        pausing(module.Deletion, "delete", 3)
        opened(path / "table").vacuum(0)
        for _ in steps:
            pass
    return ids(log)


def losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **named: Any) -> Iterator[Any]:
    """The schedules after which the row of the append can't be read."""
    for number, schedule in enumerate(all_schedules()):
        try:
            assert rows_after(schedule, tmp_path / str(number), monkeypatch, **named) == [0, 1]
        except (TableError, StorageError):
            yield schedule


def test_no_order_of_the_steps_of_an_append_and_a_vacuum_loses_a_row(tmp_path, monkeypatch):
    assert len(all_schedules()) == 70
    assert list(losses(tmp_path, monkeypatch)) == []


@pytest.mark.again
def test_a_vacuum_that_looks_for_intents_before_it_lists_would_lose_rows(tmp_path, monkeypatch):
    find, candidates, seen = HeededIntents.find, module._Vacuum._find_candidates, []

    def looking(self, commits):
        seen[:] = [find(self._table, removes_stale=True)]
        return candidates(self, commits)

    monkeypatch.setattr(module._Vacuum, "_find_candidates", looking)
    monkeypatch.setattr(HeededIntents, "find", lambda *_, **__: seen[0])
    assert any(losses(tmp_path, monkeypatch))


@pytest.mark.again
def test_a_writer_that_makes_its_file_before_its_intent_would_lose_rows(tmp_path, monkeypatch):
    def hasty(log: DeltaLog, other: DeltaLog, stack: ExitStack) -> Iterator[None]:
        txn = log.start_transaction(log.snapshot())
        files = stack.enter_context(UncommittedFiles(txn))
        (name,) = other.snapshot().files["path"].to_pylist()
        yield written(Path(log.table_path, name), Path(other.table_path, name).read_bytes())
        yield files.announce()
        yield files.commit(txn, add_files(other.snapshot().files), Operation.write("Append"))
        yield stack.close()

    assert any(losses(tmp_path, monkeypatch, writer=hasty))


@pytest.mark.again
def test_writers_that_announce_nothing_would_lose_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(UncommittedFiles, "announce", lambda _: None)
    assert any(losses(tmp_path, monkeypatch))


# What is spared


def test_files_of_a_write_that_has_not_committed_stay_and_old_ones_go(log):
    intent = begin_intent(log.table, None)
    assert intent is not None
    young, old = junk(log), junk(log, "old.parquet")
    os.utime(old, (0, old.stat().st_mtime - DAY_S))
    done = log.vacuum(0)
    assert (done.num_files, done.num_live_intents, done.stale_intents) == (1, 1, ())
    assert young.exists()
    intent.end()
    assert log.vacuum(0).num_files == 1
    assert not young.exists()


def test_files_that_a_commit_removed_go_beside_a_write_that_has_not_committed(log):
    log.append(rows(1))
    log.delete("id = 1")
    intent = begin_intent(log.table, None)
    assert log.vacuum(0, dry_run=True).num_files == 1
    assert log.vacuum(0).num_files == 1
    assert intent is not None
    assert ids(log) == [0]


def test_a_dry_run_tells_of_stale_intents_and_leaves_them(log):
    begun = begin_intent(log.table, None)
    name = intents(log)[0]
    assert begun is not None
    content = name.read_bytes()
    begun.end()
    name.parent.mkdir(exist_ok=True)
    name.write_bytes(content)
    told = log.vacuum(0, dry_run=True)
    assert told.stale_intents == (f"{name.name}: no process holds its lock",)
    assert intents(log) == [name]
    assert log.vacuum(0).stale_intents == told.stale_intents
    assert intents(log) == []


@pytest.mark.parametrize("content", [b"", b"another-machine"])
def test_an_intent_of_another_machine_is_heeded_until_it_is_old(content, log):
    directory = Path(log.table_path, INTENTS)
    directory.mkdir(exist_ok=True)
    path = directory / "2h-0b5dd3b6-0000-4000-8000-000000000000"
    path.write_bytes(content)
    kept = junk(log)
    assert log.vacuum(0).num_live_intents == 1
    assert kept.exists()
    hours_ago = path.stat().st_mtime - 2 * 60 * 60 - 60
    os.utime(path, (hours_ago, hours_ago))
    assert log.vacuum(0).stale_intents == (f"{path.name}: it is more than 2 hours old",)
    assert not kept.exists()


@pytest.mark.parametrize("name", ["notes.txt", "0h-0b5dd3b6-0000-4000-8000-000000000000", "h-1"])
def test_a_file_that_is_no_intent_is_neither_heeded_nor_removed(name, log):
    directory = Path(log.table_path, INTENTS)
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(b"x")
    junk(log)
    done = log.vacuum(0)
    assert (done.num_files, done.num_live_intents, done.stale_intents) == (1, 0, ())
    assert (directory / name).exists()


def test_an_intent_behind_a_link_out_of_the_table_is_refused_and_nothing_is_written(log, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    Path(log.table_path, INTENTS).rmdir()
    Path(log.table_path, INTENTS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TableError):
        log.append(rows(1))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert ids(log) == [0]


# When an intent ends


def test_a_write_leaves_no_intent_behind(log):
    log.append(rows(1, 2))
    log.update(set={"id": "id + 10"}, predicate="id = 1")
    log.delete("id = 2")
    assert intents(log) == []


def test_a_write_that_fails_leaves_neither_files_nor_an_intent(log, monkeypatch):
    before = sorted(Path(log.table_path).iterdir())

    def failing(*_, **__):
        assert intents(log)
        raise StorageError("The disk is full.", kind="OPTIMIST_STORAGE_FAILED")

    monkeypatch.setattr("optimist.core.local.write.make_durable", failing)
    with pytest.raises(StorageError):
        log.append(rows(1))
    assert sorted(Path(log.table_path).iterdir()) == before


def test_the_intent_of_a_commit_without_an_answer_stays(log, monkeypatch):
    txn = log.start_transaction(log.snapshot())

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log.store, "put_if_absent", interrupt)
    with pytest.raises(KeyboardInterrupt), UncommittedFiles(txn) as files:
        files.announce()
        files.commit(txn, [], Operation.write("Append"))
    assert len(intents(log)) == 1


def test_no_intent_is_made_where_it_is_switched_off(tmp_path, monkeypatch):
    log = opened(tmp_path / "table", intents_enabled="false")
    monkeypatch.setattr("optimist.core.data.intents.intents.LocalIntent", None)
    log.append(rows(0))
    assert ids(log) == [0]


@pytest.mark.parametrize("hours", ["0", "-1", "1.5", "100000", "a day"])
def test_hours_that_make_no_sense_are_refused(hours, tmp_path):
    with pytest.raises(ConfigError):
        opened(tmp_path / "table", intents_hours=hours)


def _write_and_wait(path: str, told: Any) -> None:
    log = opened(Path(path))
    UncommittedFiles(log.start_transaction(log.snapshot())).announce()
    junk(log, "killed.parquet")
    told.send(True)
    signal.pause()


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(log):
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_write_and_wait, args=(log.table_path, there))
    process.start()
    assert here.recv()
    assert log.vacuum(0).num_live_intents == 1
    assert Path(log.table_path, "killed.parquet").exists()
    process.kill()
    process.join()
    done = log.vacuum(0)
    assert (done.num_files, len(done.stale_intents)) == (1, 1)
    assert not Path(log.table_path, "killed.parquet").exists()
