"""`DeltaLog.write` of streams: odd batches, failures half-way, sizes of files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import Column, DeltaLog, Identity
from optimist.core.errors import SchemaError, UsageError
from partitioned_rows import files_below, parted, table_of


@pytest.fixture
def log(tmp_path) -> DeltaLog:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.write(table_of([1, 2, 3], ["a", "b", "b"]), partition_by=["p"])
    return log


def stream_of(batches) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table_of([1], ["a"]).schema, batches)


def test_a_stream_of_odd_batches_goes_in(log, monkeypatch):
    monkeypatch.setattr("optimist.core.local.row_pieces._ROWS", 3)
    whole = table_of(list(range(20)), [f"p{n % 3}" for n in range(20)]).combine_chunks()
    (batch,) = whole.to_batches()
    pieces = [
        batch.slice(0, 0),
        batch.slice(0, 7),
        batch.slice(7, 1),
        batch.slice(8),
        batch.slice(20),
    ]
    log.write(stream_of(iter(pieces)), "overwrite")
    assert sorted(log.to_arrow()["id"].to_pylist()) == list(range(20))
    assert log.snapshot().files.num_rows == 3
    log.write(stream_of(iter([])), "overwrite", predicate="p = 'p1'")
    assert log.count() == 13


def test_numbers_and_defaults_go_on_from_piece_to_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.core.local.row_pieces._ROWS", 2)
    log = DeltaLog.for_path(str(tmp_path / "t"))
    columns = [
        Column("n", "bigint", identity=Identity(start=10, step=-2)),
        Column("x", "bigint"),
        Column("y", "bigint", generated_as="x * 2"),
    ]
    log.create(columns)
    for _ in range(2):
        log.write(pa.table({"x": list(range(5))}))
    found = sorted(log.to_arrow().to_pylist(), key=lambda row: -row["n"])
    assert [row["n"] for row in found] == list(range(10, -10, -2))
    assert all(row["y"] == 2 * row["x"] for row in found)


def test_a_stream_that_fails_half_way_leaves_nothing(log, monkeypatch):
    monkeypatch.setattr("optimist.core.local.row_pieces._ROWS", 1)

    def failing():
        yield from table_of([7, 8], ["x", "y"]).to_batches()
        raise ZeroDivisionError("the source is gone")

    before = files_below(log)
    for arguments in ({}, {"mode": "overwrite"}, {"mode": "overwrite", "predicate": "p <> 'a'"}):
        with pytest.raises(ZeroDivisionError):
            log.write(stream_of(failing()), **arguments)
        assert files_below(log) == before
    assert parted(log) == {"a": [1], "b": [2, 3]}


def test_a_row_that_breaks_a_rule_late_in_a_stream_leaves_nothing(log, monkeypatch):
    monkeypatch.setattr("optimist.core.local.row_pieces._ROWS", 2)
    log.alter.add_constraint("small", "id < 100")
    before = files_below(log)
    with pytest.raises(SchemaError):
        log.write(table_of([4, 5, 6, 7, 100], ["c"] * 5), "overwrite")
    assert files_below(log) == before


@pytest.mark.parametrize("columns", [{"id": ["t"], "p": ["x"]}, {"id": [4], "q": ["x"]}])
def test_a_stream_of_other_batches_than_it_says_is_one_clear_error(log, columns):
    other = pa.table(columns).to_batches()
    with pytest.raises(UsageError, match="stream of rows") as caught:
        log.write(stream_of(iter(other)))
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT"
    assert log.version() == 0


def test_a_stream_may_say_not_null_where_its_batches_do_not(log):
    rows = table_of([4], ["c"])
    strict = pa.schema([item.with_nullable(False) for item in rows.schema])
    log.write(pa.RecordBatchReader.from_batches(strict, rows.to_batches()))
    assert parted(log) == {"a": [1], "b": [2, 3], "c": [4]}


def test_a_stream_that_nobody_needs_is_not_read(log):
    def never():
        raise AssertionError
        yield

    assert log.write(stream_of(never()), "ignore") is None
    log.write(table_of([4], ["c"]), txn=("job", 1))
    assert log.write(stream_of(never()), txn=("job", 1)) is None


def test_a_size_makes_several_files_of_one_stream(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    rows = pa.table({"x": [f"text {n * 7919} of many" for n in range(300_000)]})
    log.write(rows, target_file_size=200_000)
    sizes = log.files()["size"].to_pylist()
    assert len(sizes) > 2
    assert log.count() == 300_000
    log.write(rows, "overwrite")
    assert log.files().num_rows == 1
