"""Statistics of files that are there, computed anew."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog, Recomputed
from optimist.core.errors import ConcurrentDeleteReadException, TableError
from optimist.core.local import recomputed_statistics
from optimist.core.log.file_table import add_files

DEFAULTS = "spark.databricks.delta.properties.defaults."
ROWS = pa.table(
    {
        "id": pa.array([3, 1, 2], pa.int64()),
        "t": ["b", "a", None],
        "f": [1.5, -2.5, 0.0],
        "g": [1.5, float("nan"), 0.0],
        "s": [{"x": 7}, None, {"x": 9}],
        "l": [[1], [2, 3], []],
    }
)


def stats(log: DeltaLog) -> list[dict | None]:
    texts = log.snapshot().files["stats"].to_pylist()
    return [None if text is None else json.loads(text) for text in texts]


def without_statistics(path, **options: str) -> DeltaLog:
    given = {f"{DEFAULTS}{key}": text for key, text in options.items()}
    off = {"spark.databricks.delta.stats.collect": "false"}
    DeltaLog.for_path(str(path / "t"), {**given, **off}).append(ROWS)
    return DeltaLog.for_path(str(path / "t"), given)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_they_are_what_a_write_would_have_given(tmp_path, mode):
    log = without_statistics(tmp_path / "a", **{"columnMapping.mode": mode})
    (path,) = log.snapshot().files["path"].to_pylist()
    assert "minValues" not in (stats(log)[0] or {})
    rows = str(log.to_arrow().to_pylist())
    done = log.recompute_statistics()
    assert (done.num_files, done.num_changed, done.commit.version) == (1, 1, 1)
    assert str(log.to_arrow().to_pylist()) == rows
    assert log.snapshot().files["path"].to_pylist() == [path]
    (found,) = stats(log)
    schema = log.snapshot().schema
    names = {item.physical_name: item.name for item in schema}
    low = {names[key]: value for key, value in found["minValues"].items()}
    assert {key: low[key] for key in ("id", "t", "f")} == {"id": 1, "t": "a", "f": -2.5}
    assert "g" not in low
    assert list(low["s"].values()) == [7]
    info = log.history(1)[0].info
    assert (info.operation, info.operation_metrics["numFilesChanged"]) == ("COMPUTE STATS", "1")
    assert log.recompute_statistics() == Recomputed(None, 1, 0)
    if mode == "none":
        fresh = DeltaLog.for_path(str(tmp_path / "b"))
        fresh.append(ROWS)
        assert stats(fresh) == [found]
        table = deltalake.DeltaTable(log.table_path).to_pyarrow_table()
        assert sorted(table["id"].to_pylist()) == [1, 2, 3]


def test_they_follow_the_columns_that_get_them(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(ROWS)
    log.alter.set_properties({"delta.dataSkippingStatsColumns": "t"})
    log.recompute_statistics()
    assert stats(log)[0]["minValues"] == {"t": "a"}


def test_a_predicate_chooses_files(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for first in (0, 10):
        log.append(pa.table({"id": [first], "p": [first]}), partition_by=["p"])
    log.alter.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    done = log.recompute_statistics("p = 10")
    assert (done.num_files, done.num_changed) == (1, 1)


def test_deleted_rows_stay_deleted_and_bounds_are_wide(tmp_path):
    log = without_statistics(tmp_path, enableDeletionVectors="true")
    log.delete("id = 1")
    log.recompute_statistics()
    assert sorted(log.to_arrow(columns=["id"])["id"].to_pylist()) == [2, 3]
    (found,) = stats(log)
    assert (found["numRecords"], found["tightBounds"], found["minValues"]["id"]) == (3, False, 1)


def test_a_delete_meanwhile_is_a_conflict_and_no_row_comes_back(tmp_path, monkeypatch):
    log = without_statistics(tmp_path, enableDeletionVectors="true")
    other = DeltaLog.for_path(log.table_path)
    computed = recomputed_statistics.stats_from_footer

    def late(*given, **more):
        other.delete("id = 1")
        return computed(*given, **more)

    monkeypatch.setattr(recomputed_statistics, "stats_from_footer", late)
    with pytest.raises(ConcurrentDeleteReadException):
        log.recompute_statistics()
    assert sorted(log.to_arrow(columns=["id"])["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("tracked", [True, False])
def test_a_wrong_number_of_rows_is_mended_unless_ids_rest_on_it(tmp_path, tracked):
    options = {f"{DEFAULTS}enableRowTracking": str(tracked).lower()}
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    log.append(ROWS)
    (add,) = add_files(log.snapshot().files)
    file = tmp_path / "t" / add.path
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 2), file)
    if tracked:
        with pytest.raises(TableError) as caught:
            log.recompute_statistics()
        assert caught.value.kind == "DELTA_NUM_RECORDS_MISMATCH"
        assert log.snapshot().version == 0
    else:
        log.recompute_statistics()
        assert stats(log)[0]["numRecords"] == 6


def test_columns_that_readers_find_by_another_name_get_none(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    (add,) = add_files(log.snapshot().files)
    file = tmp_path / "t" / add.path
    rows = pq.read_table(file)
    pq.write_table(pa.table({"ID": rows["id"], "n": rows["n"].cast(pa.int16())}), file)
    before = log.to_arrow().to_pylist()
    log.recompute_statistics()
    assert stats(log) == [{"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}]
    assert log.to_arrow(predicate="id IS NOT NULL").to_pylist() == before


def test_damaged_files_are_told_by_name(tmp_path):
    log = without_statistics(tmp_path)
    (add,) = add_files(log.snapshot().files)
    (tmp_path / "t" / add.path).write_bytes(b"no parquet")
    with pytest.raises(TableError, match="can't be read as Parquet") as caught:
        log.recompute_statistics()
    assert caught.value.kind == "OPTIMIST_UNREADABLE_DATA_FILE"
    assert log.snapshot().version == 0
