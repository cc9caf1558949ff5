"""The checkpoint after RESTORE and CLONE, with typed columns of the checkpoint of the source."""

from __future__ import annotations

import io
import json
from itertools import count
from pathlib import Path
from random import Random  # noqa: TID251 - a table is its seed

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import AddFile, DeltaLog, Operation
from optimist.core.errors import StorageError
from optimist.core.log.file_table import add_files
from optimist.core.log.typed_rows import TypedFile
from optimist.core.log_upkeep import taken_rows
from optimist.core.log_upkeep.base_checkpoint import Changes
from optimist.core.log_upkeep.checkpoint_layout import Layout
from optimist.core.log_upkeep.struct_columns import StructColumns

SMALL = {"optimist.checkpoint.rowGroupRows": "8", "spark.sql.files.ignoreMissingFiles": "true"}
NUMBERS = map(str, count(1 << 31))
COLUMNS = pa.schema([("x", pa.int64()), ("d", pa.float64()), ("p", pa.string())])
PLACES = ["a", "b c", "ü", "", None]
ODD_TEXTS = [None, "no JSON", '{"numRecords":1}', '{"numRecords":2,"tightBounds":false}', ""]


@pytest.fixture
def parsed(monkeypatch):
    """How many files' texts are parsed, in one number."""
    counts = [0]
    real = StructColumns.columns

    def counting(self, files):
        counts[0] += files.num_rows
        return real(self, files)

    monkeypatch.setattr(StructColumns, "columns", counting)
    return counts


def some_adds(number_of, seed):
    chance = Random(seed)
    for number in range(number_of):
        low = chance.randint(-5, 1000)
        bounds = {"x": low, "d": chance.choice([1.5, "NaN", -0.0])}
        known = {"numRecords": 3, "minValues": bounds, "maxValues": {**bounds, "x": low + 7}}
        text = json.dumps({**known, "nullCount": {"x": 0, "d": 1}})
        stats = chance.choice([text, text, text, *ODD_TEXTS])
        values = {"p": chance.choice(PLACES)}
        yield AddFile(f"f{seed}-{number}", values, 10 + number, 1, True, stats=stats)


def commit(log, *actions):
    txn = log.start_transaction()
    txn.read_whole_table()
    txn.commit(actions, Operation("WRITE"))


def source_of(folder: Path, *, columns=COLUMNS, late=3, **given) -> DeltaLog:
    """A table of 60 files with a checkpoint, and two commits since that remove and add files."""
    log = DeltaLog.for_path(str(folder / "source"), SMALL)
    log.create(columns, partition_by=["p"], **given)
    commit(log, *some_adds(60, 1))
    log.checkpoint()
    gone = Random(2).sample(add_files(log.snapshot().files), 9)
    commit(log, *(each.remove(5) for each in gone))
    commit(log, *some_adds(late, 3), gone[0])
    return log


def cloned(log: DeltaLog, folder: Path, **given) -> DeltaLog:
    clone = DeltaLog.for_path(str(folder / "clone"), SMALL)
    opened(log).clone(clone.table_path, is_shallow=True, **given)
    return clone


def opened(log: DeltaLog) -> DeltaLog:
    """The table by another handle, which has its files in the order of the checkpoint."""
    return DeltaLog.for_path(log.table_path, {**SMALL, "optimist.log.maxFileBytes": next(NUMBERS)})


def adds_of_checkpoint(log: DeltaLog) -> dict[str, str]:
    """Each add of the newest checkpoint as text, by its path."""
    name = sorted(Path(log.log_path).glob("*.checkpoint.parquet"))[-1]
    file = pq.ParquetFile(io.BytesIO(name.read_bytes()))
    assert file.num_row_groups > 2
    column = file.read(columns=["add"]).column("add").combine_chunks().drop_null()
    return {row["path"]: repr(sorted(row.items())) for row in column.to_pylist()}


def adds_of_texts(log: DeltaLog) -> dict[str, str]:
    """The adds that the checkpoint should have, made from the files' own texts."""
    snapshot = opened(log).snapshot()
    layout = Layout.of(snapshot, is_large=True)
    rows = [layout.rows(batch) for batch in snapshot.files.to_batches()]
    found = [row for each in rows for row in each.to_pylist()]
    return {row["path"]: repr(sorted(row.items())) for row in found}


def ensure_as_texts(log: DeltaLog) -> None:
    found = adds_of_checkpoint(log)
    assert found == adds_of_texts(log)
    assert len(found) == log.snapshot().num_files


@pytest.mark.parametrize("late", [0, 3, 40])
def test_a_clone_takes_typed_columns_and_parses_only_what_came_later(tmp_path, parsed, late):
    log = source_of(tmp_path, late=late)
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    last_group = 60 % 8
    assert parsed[0] <= late + 1 + last_group
    ensure_as_texts(clone)
    assert clone.snapshot().num_files == 60 - 9 + late + 1


def test_a_clone_of_a_clone_takes_them_again(tmp_path, parsed):
    clone = cloned(source_of(tmp_path), tmp_path)
    parsed[0] = 0
    again = cloned(clone, tmp_path / "again")
    assert parsed[0] < 16
    ensure_as_texts(again)


def test_a_restored_version_takes_them_from_its_own_checkpoint(tmp_path, parsed):
    log = source_of(tmp_path)
    version = log.snapshot().version
    commit(log, *(each.remove(7) for each in add_files(log.snapshot().files)))
    commit(log, *some_adds(20, 8))
    log.checkpoint()
    parsed[0] = 0
    opened(log).restore(version)
    assert parsed[0] < 16
    ensure_as_texts(log)
    assert log.snapshot().num_files == 60 - 9 + 4


def test_a_restore_of_few_files_continues_the_tables_own_checkpoint(tmp_path, parsed):
    log = source_of(tmp_path)
    version = log.snapshot().version
    commit(log, *some_adds(4, 9))
    parsed[0] = 0
    opened(log).restore(version)
    assert parsed[0] < 16
    ensure_as_texts(log)


def test_files_in_another_order_are_parsed(tmp_path, parsed):
    log = source_of(tmp_path)
    clone = DeltaLog.for_path(str(tmp_path / "clone"), SMALL)
    parsed[0] = 0
    log.clone(clone.table_path, is_shallow=True)  # this handle has them in the order of the commits
    assert parsed[0] >= clone.snapshot().num_files
    ensure_as_texts(clone)


def test_files_that_the_checkpoint_has_and_the_version_not_are_seen(tmp_path, parsed, monkeypatch):
    log = source_of(tmp_path)

    def unchanged(*given):
        found = real(*given)
        return Changes(found.added, found.removed, found.touched.slice(0, 0))

    real = taken_rows.changes_since_checkpoint
    monkeypatch.setattr(taken_rows, "changes_since_checkpoint", unchanged)
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    assert parsed[0] >= clone.snapshot().num_files
    ensure_as_texts(clone)


def forge_last_text(monkeypatch, reader):
    """Let a method of `TypedFile` that reads rows give the last file of each batch other texts."""
    real = getattr(TypedFile, reader)

    def forged(self, *given):
        for batch in real(self, *given):
            columns = {name: batch.column(name) for name in batch.schema.names}
            if "stats" in columns:
                texts = columns["stats"].to_pylist()
                columns["stats"] = pa.array([*texts[:-1], '{"numRecords":77}'], pa.string())
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)

    monkeypatch.setattr(TypedFile, reader, forged)


def test_typed_columns_of_another_text_are_not_taken(tmp_path, parsed, monkeypatch):
    """As if the source's checkpoint were forged, or replaced since the files were read."""
    log = source_of(tmp_path)
    forge_last_text(monkeypatch, "adds_of")
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    assert parsed[0] >= clone.snapshot().num_files
    ensure_as_texts(clone)


def test_a_source_that_fails_costs_time_and_no_checkpoint(tmp_path, parsed, monkeypatch):
    log = source_of(tmp_path)

    def fail(*_):
        raise StorageError("no", kind="OPTIMIST_STORE_FAILED", path="x", retryable=True)

    monkeypatch.setattr(TypedFile, "adds_of", fail)
    clone = cloned(log, tmp_path)
    monkeypatch.undo()
    ensure_as_texts(clone)


def test_other_columns_with_statistics_are_not_taken(tmp_path, parsed):
    log = source_of(tmp_path)
    parsed[0] = 0
    clone = cloned(log, tmp_path, properties={"delta.dataSkippingNumIndexedCols": "1"})
    assert parsed[0] >= clone.snapshot().num_files
    ensure_as_texts(clone)


def test_times_without_a_zone_are_not_taken_over_from_another_session(tmp_path, parsed):
    columns = pa.schema([("x", pa.int64()), ("d", pa.float64()), ("p", pa.timestamp("us", "UTC"))])
    asked = {"delta.checkpoint.writeStatsAsStruct": "true"}
    log = DeltaLog.for_path(str(tmp_path / "source"), SMALL)
    log.create(columns, partition_by=["p"], properties=asked)
    adds = [
        AddFile(f"f{n}", {"p": f"2026-11-{n % 28 + 1:02d} 10:00:00"}, 1, 1, True) for n in range(40)
    ]
    commit(log, *adds)
    log.checkpoint()
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    assert parsed[0] >= 40
    ensure_as_texts(clone)


V2 = {"delta.checkpointPolicy": "v2"}


def adds_of_sidecars(log: DeltaLog) -> dict[str, str]:
    """Each add of the sidecars of the newest version's checkpoint as text, by its path."""
    segment = opened(log).snapshot().segment
    manifest = segment.checkpoint.open(log.store).manifest()
    assert len(manifest.sidecars) > 2
    found = {}
    for each in manifest.sidecars:
        file = pq.ParquetFile(Path(log.log_path, "_sidecars", each.file_name))
        rows = file.read(columns=["add"]).column("add").combine_chunks().drop_null().to_pylist()
        found |= {row["path"]: repr(sorted(row.items())) for row in rows}
    return found


def ensure_sidecars_as_texts(log: DeltaLog) -> None:
    found = adds_of_sidecars(log)
    assert found == adds_of_texts(log)
    assert len(found) == log.snapshot().num_files


@pytest.mark.parametrize("late", [0, 3, 40])
def test_sidecars_are_taken_and_only_what_came_later_is_parsed(tmp_path, parsed, late):
    log = source_of(tmp_path, late=late, properties=V2)
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    assert parsed[0] <= late + 1
    ensure_sidecars_as_texts(clone)
    assert clone.snapshot().num_files == 60 - 9 + late + 1


@pytest.mark.parametrize("late", [4, 30])
def test_sidecars_that_joined_after_the_last_sort_are_taken_too(tmp_path, parsed, late):
    log = DeltaLog.for_path(str(tmp_path / "source"), SMALL)
    log.create(COLUMNS, partition_by=["p"], properties=V2)
    for number, seed in ((60, 1), (late, 3)):
        commit(log, *some_adds(number, seed))
        log.checkpoint()
    checkpoint = opened(log).snapshot().segment.checkpoint.open(log.store)
    assert {bool(each.tags["optimist.sort"]) for each in checkpoint.sidecars()} == {True, False}
    commit(log, *some_adds(2, 8))
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    assert parsed[0] <= 2 + 8
    ensure_sidecars_as_texts(clone)


def test_a_clone_with_sidecars_of_a_clone_takes_them_again(tmp_path, parsed):
    clone = cloned(source_of(tmp_path, properties=V2), tmp_path)
    parsed[0] = 0
    again = cloned(clone, tmp_path / "again")
    assert parsed[0] == 0
    ensure_sidecars_as_texts(again)


def test_a_restored_version_takes_them_from_its_own_sidecars(tmp_path, parsed):
    log = source_of(tmp_path, properties=V2)
    version = log.snapshot().version
    commit(log, *(each.remove(7) for each in add_files(log.snapshot().files)))
    commit(log, *some_adds(20, 8))
    log.checkpoint()
    parsed[0] = 0
    opened(log).restore(version)
    assert parsed[0] <= 4
    ensure_sidecars_as_texts(log)


def test_rows_of_sidecars_with_another_text_are_not_taken(tmp_path, parsed, monkeypatch):
    log = source_of(tmp_path, properties=V2)
    forge_last_text(monkeypatch, "rows")
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    assert parsed[0] >= clone.snapshot().num_files
    ensure_sidecars_as_texts(clone)


def test_a_sidecar_of_the_source_that_is_gone_costs_time_and_no_checkpoint(
    tmp_path, parsed, monkeypatch
):
    log = source_of(tmp_path, properties=V2)

    def fail(*_):
        raise StorageError("no", kind="OPTIMIST_STORE_FAILED", path="x", retryable=True)

    monkeypatch.setattr(TypedFile, "rows", fail)
    parsed[0] = 0
    clone = cloned(log, tmp_path)
    monkeypatch.undo()
    assert parsed[0] >= clone.snapshot().num_files
    ensure_sidecars_as_texts(clone)
