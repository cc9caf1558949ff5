"""Each public value has a short `repr` that tells it apart, however wide the table is."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import optimist.core
from optimist.core import (
    Column,
    ColumnChange,
    CommitState,
    DeltaLog,
    EngineOptions,
    FileProgress,
    Identity,
    NewColumn,
    Operation,
    UndoneRepair,
    VacuumProgress,
    col,
)
from optimist.core.errors.short_repr import REPR_LIMIT
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.fsck.findings import UNDONE_STEPS

WIDE = {f"column {number}": "string" for number in range(60)}
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
}


def values_of(log: DeltaLog, progress: list[FileProgress]) -> list[Any]:
    """What the methods of a handle return, one of each class at least."""
    log.create(WIDE | {"id": "bigint", "p": "string"}, partition_by=["p"], properties=PROPERTIES)
    rows = pa.table({"id": list(range(100)), "p": ["a", "b"] * 50})
    found: list[Any] = [log.append(rows), log, log.alter, log.store, log.table, log.transaction()]
    found += [log.delete("id = 5", progress=progress.append), log.update(set={"id": "id + 1"})]
    found += [log.merge(rows, ["id"]), log.merge(rows, ["id"]).when_matched_delete()]
    snapshot = log.snapshot()
    found += [snapshot, snapshot.scan("id = 1"), snapshot.count("id = 1"), snapshot.properties]
    found += [log.scan(), log.scan().to_dataset(), log.scan_changes(starting_version=1)]
    found += [log.metadata, log.protocol, log.schema(), log.schema().fields[0]]
    add = add_files(log.files())[0]
    found += [add, add.remove(5), log.start_transaction(), Operation.write("Append")]
    optimized = log.optimize()
    found += [optimized, optimized.added, log.recompute_statistics(), log.detail()]
    found += [log.clone(f"{log.table_path}-copy"), log.restore(1), next(log.follow())]
    found += [log.checkpoint(), log.vacuum(dry_run=True), log.resolve_commit("x", 1)]
    found += [log.fsck()]
    record = log.history(limit=1)[0]
    found += [record, record.info, log.sql("DESCRIBE HISTORY this")]
    return found


MADE_ALONE: list[Any] = [
    UndoneRepair("20260102T030405Z-1a2b3c4d", 0, UNDONE_STEPS.empty_table()),
    Column("id", "bigint", identity=Identity()),
    Identity(),
    NewColumn("x", "int"),
    ColumnChange("x", "int", comment="c" * 1000),
    CommitState.PENDING,
    EngineOptions(),
    VacuumProgress(num_listed=9, num_dead=3, num_deleted=0),
    (col("id") == 1) & col("p").isin(["x"] * 300),
    col("id"),
]


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    progress: list[FileProgress] = []
    place = tmp_path_factory.mktemp("reprs") / "of a table"
    return [*values_of(DeltaLog.for_path(place), progress), *progress, *MADE_ALONE]


def test_each_public_class_has_a_short_repr(values: list[Any]) -> None:
    kinds = [getattr(optimist.core, name) for name in optimist.core.__all__]
    classes = {kind for kind in kinds if inspect.isclass(kind)} - {optimist.core.OptimistError}
    assert {kind for kind in classes if not any(isinstance(each, kind) for each in values)} == set()
    long = {type(each): len(repr(each)) for each in values if len(repr(each)) > REPR_LIMIT}
    assert long == {}
    assert [each for each in values if " object at 0x" in repr(each)] == []


def test_a_repr_tells_what_there_is(tmp_path: Path) -> None:
    log = DeltaLog.for_path(tmp_path / "t")
    log.append(pa.table({"id": [1, 2, 3]}))
    done = log.delete("id = 2")
    commit = "CommitResult(version=1, attempts=1)"
    assert repr(done) == f"RowsChanged(commit={commit}, num_deleted=1, num_copied=2)"
    assert repr(log.delete("id = 2")) == "RowsChanged()"
    assert repr(log.snapshot().scan("id = 3").predicate) == "Predicate('id = 3')"
    assert repr(log.schema()) == "StructType('struct<id:long>')"
    assert repr(log.snapshot().scan()).startswith("Scan(files=<1 rows>, predicate=")


def test_no_repr_shows_the_password_of_a_long_url() -> None:
    log = DeltaLog.for_path(f"memory://user:pa55word@host/{'x' * 1000}")
    log.append(pa.table({"id": [1]}))
    log.alter.set_properties({"delta.enableChangeDataFeed": "true"})
    log.append(pa.table({"id": [2]}))
    changes = log.scan_changes(starting_version=2)
    for value in (log, log.snapshot(), log.scan(), changes, log.start_transaction()):
        assert "user:***@host" in repr(value)
        assert len(repr(value)) <= REPR_LIMIT


def test_a_repr_shows_no_secret() -> None:
    link = "https://account.example.com/p.parquet?sig=abcdefgh"
    made = optimist.core.AddFile(
        path=link, partition_values={}, size=1, modification_time=1, data_change=True
    )
    assert "abcdefgh" not in repr(made)
    assert "sig=***" in repr(Operation("CLONE", {"source": link}))
