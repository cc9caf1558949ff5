"""How VACUUM runs: beside a commit, of many files, failing, and killed at any step."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aged_table import Aged, rows
from optimist.core import DeltaLog
from optimist.core.data.storage.listed_files import LISTED_SCHEMA
from optimist.core.errors import StorageError
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.vacuum import dead_files, file_deletion
from optimist.core.maintenance.vacuum import vacuum as module
from optimist.core.maintenance.vacuum.vacuum import VacuumProgress
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore


@pytest.mark.parametrize("killed_after", [0, 1, 2])
def test_a_run_that_fails_says_so_and_the_next_one_finishes(killed_after, tmp_path, monkeypatch):
    table = Aged(tmp_path)
    for first in range(0, 40, 10):
        table.log.append(rows(first, first + 10))
    table.log.delete("id < 30")
    table.pass_hours(24 * 8)
    monkeypatch.setattr(file_deletion, "_BATCH", 1)
    remove, calls = file_deletion.remove_files, []

    def failing(paths, access=None):
        if len(calls) == killed_after:
            raise StorageError("The disk is gone.", kind="OPTIMIST_STORAGE_ERROR")
        calls.append(paths)
        remove(paths, access)

    monkeypatch.setattr(file_deletion, "remove_files", failing)
    with pytest.raises(StorageError):
        table.log.vacuum()
    end = table.log.history(1)[0].info
    assert end is not None
    assert end.operation_parameters == {"status": "FAILED"}
    assert end.operation_metrics is not None
    assert end.operation_metrics["numDeletedFiles"] == str(killed_after)
    assert not (table.path / "_delta_log" / "_last_vacuum_info").exists()
    monkeypatch.setattr(file_deletion, "remove_files", remove)
    assert table.log.vacuum().num_files == 3 - killed_after
    assert table.ids() == list(range(30, 40))


def test_what_was_committed_while_it_listed_stays(tmp_path, monkeypatch):
    table = Aged(tmp_path)
    writer = DeltaLog(str(table.path), LocalLogStore({}), table.options, clock=table.clock)
    other = Aged(tmp_path / "other")
    other.log.append(rows(0, 10))
    (name,) = other.files()
    file = other.log.snapshot().files
    (other.path / name).rename(table.path / name)
    table.pass_hours(24 * 8)
    listed = module.listed_pages

    def committing(*given):
        yield from listed(*given)
        writer.start_transaction().commit(add_files(file), Operation.write("Append"))

    monkeypatch.setattr(module, "listed_pages", committing)
    assert table.log.vacuum().num_files == 0
    assert table.ids() == list(range(10))


def test_many_files_are_deleted_by_several_threads_with_progress(tmp_path, monkeypatch):
    prefix = "spark.databricks.delta.vacuum.parallelDelete."
    table = Aged(tmp_path, {f"{prefix}enabled": "true", f"{prefix}parallelism": "3"})
    monkeypatch.setattr(file_deletion, "_BATCH", 10)
    for number in range(95):
        (table.path / f"{number}.parquet").write_bytes(b"x")
        (table.path / f".{number}.parquet.crc").write_bytes(b"x")
    table.pass_hours(24 * 8)
    told: list[VacuumProgress] = []
    assert table.log.vacuum(progress=told.append).num_files == 95
    assert told[0] == VacuumProgress(95, 95, 0)
    assert told[-1] == VacuumProgress(95, 95, 95)
    assert [path.name for path in table.path.iterdir()] == ["_delta_log"]


def test_what_many_commits_removed_is_deleted_together(tmp_path, monkeypatch):
    table = Aged(tmp_path)
    for number in range(12):
        table.log.append(rows(number, number + 1))
    for number in range(10):
        table.log.delete(f"id = {number}")
    table.pass_hours(24 * 8)
    remove, sizes = file_deletion.remove_files, []

    def noted(paths, access=None):
        sizes.append(len(paths))
        remove(paths, access)

    monkeypatch.setattr(file_deletion, "remove_files", noted)
    assert table.log.vacuum(mode="LITE").num_files == 10
    assert sizes == [10]
    assert table.ids() == [10, 11]


def test_dead_files_come_back_in_full_pages(monkeypatch):
    monkeypatch.setattr(dead_files, "_PAGE_ROWS", 100)
    given = [(f"{number}.parquet", number, 1, False) for number in range(1234)]
    with dead_files.DeadFiles() as dead:
        for start, end in [(0, 3), (3, 3), (3, 99), (99, 450), (450, 451), (451, 1234)]:
            columns = zip(*given[start:end], strict=True) if end > start else [[]] * 4
            columns = [pa.array(list(values)) for values in columns]
            columns = [c.cast(f.type) for c, f in zip(columns, LISTED_SCHEMA, strict=True)]
            dead.add(pa.RecordBatch.from_arrays(columns, schema=LISTED_SCHEMA))
        pages = list(dead.batches())
    assert [page.num_rows for page in pages] == [100] * 12 + [34]
    found = [tuple(row.values()) for page in pages for row in page.to_pylist()]
    assert (found, dead.num_files, dead.size_bytes) == (given, 1234, sum(range(1234)))


class Killed(BaseException):
    """The process is gone: nothing of it runs after this."""


@pytest.mark.parametrize("mode", ["FULL", "LITE"])
@pytest.mark.parametrize("step", ["begin", "kept", "first", "second", "end", "recorded"])
def test_a_run_that_is_killed_at_any_step_is_finished_by_the_next(
    step, mode, tmp_path, monkeypatch
):
    table = Aged(tmp_path)
    for first in range(0, 40, 10):
        table.log.append(rows(first, first + 10))
    table.log.delete("id < 30")
    table.pass_hours(24 * 8)
    calls: list[str] = []

    def dying(owner: object, name: str, at: str) -> None:
        original = getattr(owner, name)

        def call(*given, **named):
            calls.append(at)
            if at == step and (at != "kept" or calls.count("kept") == 2):
                monkeypatch.setattr(module._VacuumLog, "end", lambda *_, **__: None)
                raise Killed
            return original(*given, **named)

        monkeypatch.setattr(owner, name, call)

    removed = file_deletion.remove_files

    def remove(paths, access=None):
        calls.append("file")
        if step in ("first", "second") and calls.count("file") == 1 + (step == "second"):
            monkeypatch.setattr(module._VacuumLog, "end", lambda *_, **__: None)
            raise Killed
        removed(paths, access)

    with monkeypatch.context() as monkeypatch:
        monkeypatch.setattr(file_deletion, "_BATCH", 1)
        monkeypatch.setattr(file_deletion, "remove_files", remove)
        dying(module._VacuumLog, "begin", "begin")
        dying(module, "KeptPaths", "kept")
        dying(module._VacuumLog, "end", "end")
        dying(module, "record_vacuumed", "recorded")
        with pytest.raises(Killed):
            table.log.vacuum(mode=mode)
    left = len(table.files()) - 1
    assert left == {"begin": 3, "kept": 3, "first": 3, "second": 2}.get(step, 0)
    assert table.ids() == list(range(30, 40))
    assert table.log.vacuum().num_files == left
    assert len(table.files()) == 1
    assert table.ids() == list(range(30, 40))
