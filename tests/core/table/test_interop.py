"""deltalake and we write one table in turns, and read what the other wrote."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog

COLUMNS = {
    "id": pa.array([1, 2, None], pa.int64()),
    "small": pa.array([1, -2, 3], pa.int16()),
    "text": pa.array(["a", "é😈", ""], pa.string()),
    "flag": pa.array([True, None, False]),
    "number": pa.array([1.5, float("nan"), -0.0]),
    "price": pa.array([Decimal("1.20"), Decimal("-3.00"), None], pa.decimal128(10, 2)),
    "day": pa.array([dt.date(2024, 1, 2), dt.date(1500, 1, 1), None]),
    "at": pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 678901)] * 3, pa.timestamp("us", "UTC")),
    "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
    "nested": pa.array([{"a": 1, "b": ["x", None]}, None, {"a": None, "b": []}],
                       pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
    "pairs": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
}  # fmt: skip
ROWS = pa.table(COLUMNS)


def rows_of(path):
    return deltalake.DeltaTable(str(path)).to_pyarrow_table()


def test_every_type_we_write_is_read_back_by_deltalake(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    assert log.append(ROWS).version == 0
    found = rows_of(tmp_path).select(ROWS.column_names).cast(ROWS.schema)
    assert found.slice(0, 1).to_pylist() == ROWS.slice(0, 1).to_pylist()
    assert str(found.to_pylist()) == str(ROWS.to_pylist())  # NaN is not equal to itself


def test_both_append_in_turns_and_agree(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    for number in range(0, 30, 2):
        log.append(pa.table({"id": [number]}))
        deltalake.write_deltalake(str(tmp_path), pa.table({"id": [number + 1]}), mode="append")
    snapshot = log.snapshot()
    table = deltalake.DeltaTable(str(tmp_path))
    assert snapshot.version == table.version() == 29
    assert sorted(rows_of(tmp_path)["id"].to_pylist()) == list(range(30))
    ours = {path.rpartition("/")[2] for path in snapshot.files.column("path").to_pylist()}
    assert ours == {uri.rpartition("/")[2] for uri in table.file_uris()}
    assert [record.version for record in log.history(limit=3)] == [29, 28, 27]


def test_we_see_what_deltalake_deleted_and_compacted(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    for number in range(4):
        log.append(pa.table({"id": [number, number + 10]}))
    table = deltalake.DeltaTable(str(tmp_path))
    table.delete("id = 2")
    assert log.snapshot().num_files == 4
    table.optimize.compact()
    snapshot = log.snapshot()
    assert snapshot.num_files == 1
    assert snapshot.version == 5


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["a b", "a:b", "ä/ö%20", None, ""], "text"),
        ([dt.date(2024, 1, 2), dt.date(1500, 1, 1), None, None, None], "day"),
        ([1, -2, None, 2**40, 0], "number"),
        ([True, False, None, True, False], "flag"),
    ],
)
def test_partition_values_survive_the_trip(tmp_path, value, shown):
    rows = pa.table({"p": value, "id": [1, 2, 3, 4, 5]})
    DeltaLog.for_path(str(tmp_path)).append(rows, partition_by=["p"])
    found = rows_of(tmp_path).select(["p", "id"]).sort_by("id").to_pylist()
    expected = [
        {"p": None if row["p"] == "" else row["p"], "id": row["id"]} for row in rows.to_pylist()
    ]
    assert found == expected


def test_deltalake_opens_our_checkpoint_without_the_commits(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    for number in range(12):
        log.append(pa.table({"id": [number]}))
    for version in range(10):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    assert (tmp_path / "_delta_log" / f"{10:020}.checkpoint.parquet").exists()
    assert sorted(rows_of(tmp_path)["id"].to_pylist()) == list(range(12))
    assert DeltaLog(str(tmp_path), log.store).snapshot().num_files == 12
