"""Rows read without Spark: `scan`, `to_arrow`, `head`, frames; against a model, row by row."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from odd_reads import counted_reads, make_odd_table, spelled
from optimist.core import DeltaLog, col
from optimist.core.errors import ConfigError, SchemaError, TableError, UsageError
from optimist.core.imports import import_by_need
from optimist.core.snapshot import frames, local_scan

MODES = ["none", "name", "id"]
QUESTIONS = {
    "id >= 40": lambda row: row["id"] >= 40,
    "p IS NULL": lambda row: row["p"] is None,
    "p = 'x=y/z' AND n > 2": lambda row: row["p"] == "x=y/z" and (row["n"] or 0) > 2,
    "day = DATE '2026-01-03'": lambda row: str(row["day"]) == "2026-01-03",
    "n = 9007199254740993": lambda row: row["n"] == 2**53 + 1,
    "id < 0": lambda row: False,
}


@pytest.fixture(scope="module", params=[(mode, dv) for mode in MODES for dv in (True, False)])
def odd(request, tmp_path_factory):
    mode, has_vectors = request.param
    return make_odd_table(tmp_path_factory.mktemp("odd"), mode, has_vectors=has_vectors)


@pytest.fixture
def numbers(tmp_path):
    """A table of ten files of ten rows, whose statistics tell which rows are where."""
    log = DeltaLog.for_path(str(tmp_path / "numbers"))
    for start in range(0, 100, 10):
        ids = list(range(start, start + 10))
        log.append(pa.table({"id": ids, "half": [i // 2 for i in ids], "text": ["x" * 5000] * 10}))
    return log


@pytest.fixture
def small_files(tmp_path, monkeypatch):
    """A table of ninety files of one row, which two threads read in runs."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    log = DeltaLog.for_path(str(tmp_path / "small"))
    for number in range(90):
        log.append(pa.table({"id": [number]}))
    return log


def no_reader_is_left():
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "optimist-read":
            thread.join(10)
    return not any(each.name == "optimist-read" for each in threading.enumerate())


def ids_of(rows):
    return sorted(row["id"] for row in rows)


# The rows are right


@pytest.mark.parametrize("in_order", [True, False])
def test_all_rows_are_those_of_the_model(odd, in_order):
    log, rows = odd
    scan = log.scan(in_order=in_order)
    assert spelled(scan.to_arrow().to_pylist()) == spelled(rows)
    assert spelled(scan.to_reader().read_all().to_pylist()) == spelled(rows)
    assert spelled(pa.table(scan).to_pylist()) == spelled(rows)  # by the stream's interface
    assert scan.count() == log.count() == len(rows)
    assert scan.schema == pa.schema(scan) == log.to_arrow().schema


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_predicate_keeps_the_rows_of_the_model(odd, question):
    log, rows = odd
    kept = [row for row in rows if QUESTIONS[question](row)]
    assert spelled(log.scan(question).to_arrow().to_pylist()) == spelled(kept)
    assert spelled(log.snapshot().to_arrow(question).to_pylist()) == spelled(kept)
    assert log.scan(question).count() == log.snapshot().count_rows(question) == len(kept)
    named = log.scan(question, ["p", "id"]).to_arrow()
    assert named.column_names == ["p", "id"]
    assert ids_of(named.to_pylist()) == ids_of(kept)


def test_row_ids_are_columns(odd):
    log, rows = odd
    found = log.scan(columns=["id", "_metadata.row_id"]).to_arrow()
    assert len(set(found["_metadata.row_id"].to_pylist())) == len(rows)


@pytest.mark.parametrize("limit", [0, 1, 7, 1000])
def test_a_limit_gives_so_many_rows(odd, limit):
    log, rows = odd
    everything = spelled(rows)
    found = spelled(log.scan(limit=limit).to_arrow().to_pylist())
    assert len(found) == log.scan(limit=limit).count() == min(limit, len(rows))
    assert set(found) <= set(everything)
    assert log.head(limit).num_rows == log.snapshot().head(limit).num_rows == len(found)


def test_polars_has_the_rows(odd):
    log, rows = odd
    for frame in (log.to_polars(), log.snapshot().to_polars(), pl.DataFrame(log.scan())):
        assert spelled(frame.to_dicts()) == spelled(rows)


def test_pandas_has_the_rows_and_no_number_changes(odd):
    log, rows = odd
    for frame in (log.to_pandas(), log.snapshot().to_pandas()):
        assert frame["n"].dtype == pd.Int64Dtype()  # a float could not hold the greatest
        assert frame["id"].dtype == "int64"
        found = zip(frame["id"], frame["n"], frame["p"], strict=True)
        named = {i: (None if n is pd.NA else int(n), p) for i, n, p in found}
        assert named == {row["id"]: (row["n"], row["p"]) for row in rows}


def test_duckdb_asks_the_scan(odd):
    log, rows = odd
    scan = log.scan()  # DuckDB finds it by its name
    assert scan is not None
    found = duckdb.sql("SELECT id, n, p, day FROM scan WHERE id >= 40 ORDER BY id").fetchall()
    wanted = [(r["id"], r["n"], r["p"], r["day"]) for r in rows if r["id"] >= 40]
    assert found == wanted
    assert duckdb.sql("SELECT count(*) FROM scan").fetchall() == [(len(rows),)]  # read again


def test_a_scan_can_be_appended_to_a_table(numbers, tmp_path):
    copy = DeltaLog.for_path(str(tmp_path / "copy"))
    copy.append(numbers.scan("id < 15"))
    assert ids_of(copy.to_arrow().to_pylist()) == list(range(15))


# Versions


def test_older_versions_are_read(numbers):
    assert numbers.count(version=2) == 30
    assert ids_of(numbers.to_arrow("id >= 15", version=2).to_pylist()) == list(range(15, 30))
    assert numbers.head(99, ["id"], version=0).num_rows == 10
    assert len(numbers.to_pandas(version=1)) == len(numbers.to_polars(version=1)) == 20
    moment = numbers.snapshot(3).timestamp_ms
    assert numbers.scan(timestamp=moment).version >= 3
    with pytest.raises(UsageError) as caught:
        numbers.to_arrow(version=1, timestamp=moment)
    assert caught.value.kind == "DELTA_ONEOF_IN_TIMETRAVEL"


def test_a_scan_keeps_its_version(numbers):
    scan = numbers.scan()
    numbers.append(pa.table({"id": [1000]}))
    assert scan.to_arrow().num_rows == 100
    assert numbers.scan().to_arrow().num_rows == 101


def test_rows_come_in_the_order_of_the_files_where_asked(numbers):
    in_order = numbers.scan(columns=["id"], in_order=True)
    ids = in_order.to_arrow()["id"].to_pylist()
    assert ids == in_order.to_arrow()["id"].to_pylist()
    firsts = ids[::10]
    assert ids == [first + number for first in firsts for number in range(10)]


# What is read


def test_many_small_files_are_read_in_runs_and_in_order(small_files):
    assert small_files.to_arrow()["id"].to_pylist() == list(range(90))
    found = small_files.scan("id % 2 = 0", ["id"]).to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(0, 90, 2))
    assert small_files.head(3)["id"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("predicate", [None, "id % 1 = 0"])
def test_rows_before_a_missing_file_of_a_run_come_before_its_error(small_files, predicate):
    path = small_files.files("id = 40")["path"][0].as_py()
    (Path(small_files.table_path) / path).unlink()
    found = []
    with pytest.raises(TableError) as caught:
        for batch in small_files.scan(predicate, in_order=True):
            found += batch["id"].to_pylist()
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert found == list(range(40))


def test_a_filter_of_small_files_leaves_a_few_batches_with_all_columns_in_order(small_files):
    texts = pa.table({"id": [90, 91], "text": ["x", None]})
    small_files.write(texts, schema_mode="merge")
    found = list(small_files.scan("id % 3 = 0 OR text = 'x'", ["text", "id"], in_order=True))
    rows = [row for batch in found for row in batch.to_pylist()]
    assert rows == [
        {"text": "x" if number == 90 else None, "id": number} for number in range(0, 91, 3)
    ]
    assert len(found) < 30


def test_a_filter_waits_for_few_bytes_however_few_the_rows_are(small_files, monkeypatch):
    def filtered():
        return list(small_files.scan("id >= 0", ["id"], in_order=True))

    together = filtered()
    monkeypatch.setattr(local_scan, "_BYTES_TOGETHER", 1)
    one_by_one = filtered()
    assert max(batch.num_rows for batch in one_by_one) == 1
    assert max(batch.num_rows for batch in together) > 1
    assert pa.Table.from_batches(one_by_one) == pa.Table.from_batches(together)


def test_a_reader_that_stops_within_a_run_leaves_no_thread(small_files):
    rows = small_files.scan(in_order=True).to_batches()
    next(rows)
    rows.close()
    assert no_reader_is_left()


def test_files_that_cannot_match_are_not_opened(numbers, monkeypatch):
    with counted_reads(monkeypatch) as read:
        assert numbers.scan("id >= 80").to_arrow().num_rows == 20
    assert len(read) == 2


def test_columns_that_nobody_wants_are_not_read(numbers, monkeypatch):
    with counted_reads(monkeypatch) as read:
        numbers.scan(columns=["id"]).to_arrow()
    few = sum(read.values())
    with counted_reads(monkeypatch) as read:
        numbers.scan().to_arrow()
    assert few < sum(read.values())


def test_making_a_scan_opens_no_data_file(numbers, monkeypatch):
    with counted_reads(monkeypatch) as read:
        scan = numbers.scan("half = 7", limit=1)
        pa.schema(scan)
        numbers.scan().count()
        iter(scan)
    assert len(read) == 0


@pytest.mark.parametrize(
    ("question", "limit", "opened"),
    [(None, 10, 1), (None, 11, 2), ("id >= 20", 25, 3), (None, 0, 0)],
)
def test_a_limit_opens_the_files_that_it_takes(numbers, monkeypatch, question, limit, opened):
    with counted_reads(monkeypatch) as read:
        assert numbers.to_arrow(question, limit=limit).num_rows == limit
    assert len(read) == opened


def test_a_limit_that_the_log_cannot_judge_reads_file_by_file(numbers, monkeypatch):
    with counted_reads(monkeypatch) as read:
        assert numbers.to_arrow("text LIKE '%x%'", limit=15).num_rows == 15
    assert len(read) == 2


# Readers that stop


@pytest.mark.again
def test_a_reader_that_stops_half_way_leaves_no_thread(numbers, monkeypatch):
    with counted_reads(monkeypatch):
        reader = numbers.scan().to_reader()
        assert reader.read_next_batch().num_rows == 10
        reader.close()
        assert no_reader_is_left()
        batches = iter(numbers.scan())
        next(batches)
        assert no_reader_is_left()  # nobody waits for the consumer
        del batches
    assert no_reader_is_left()


def test_an_error_of_a_file_keeps_its_class(numbers):
    (path,) = numbers.files("id = 55")["path"].to_pylist()
    (Path(numbers.table_path) / path).unlink()
    with pytest.raises(TableError) as caught:
        numbers.scan().to_reader().read_all()
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert no_reader_is_left()


# What is refused


def test_wrong_requests_are_refused_when_the_scan_is_made(numbers):
    for wrong in (
        lambda: numbers.scan("ix = 1"),
        lambda: numbers.scan("soundex(id) = 1"),
        lambda: numbers.scan(limit=-1),
        lambda: numbers.scan(columns=[]),
        lambda: numbers.scan(columns="id"),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(SchemaError):
        numbers.scan(columns=["ix"])


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_a_missing_library_is_one_clear_error(numbers, monkeypatch, name):
    def missing(module):
        if module == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return import_by_need(module)

    monkeypatch.setattr(frames, "import_by_need", missing)
    with pytest.raises(ConfigError, match=f"pip install {name}") as caught:
        getattr(numbers, f"to_{name}")()
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"


# Within a transaction


def test_a_transaction_reads_what_it_has_done_and_counts_it_as_read(numbers):
    with numbers.transaction() as txn:
        txn.append(pa.table({"id": [100, 101]}))
        assert txn.scan("id >= 95", ["id"]).to_arrow().num_rows == 7
        assert len(txn.to_polars(col("id") > 99)) == len(txn.to_pandas("id > 99")) == 2
        assert txn.count(version=0) == txn.head(99, version=0).num_rows == 10
    assert numbers.count() == 102


def test_rows_of_a_table_that_the_handle_has_made_are_read_with_the_credentials_of_its_store(
    tmp_path, monkeypatch
):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"a": [1, 2]}))  # so no log was ever read
    asked = []
    monkeypatch.setattr(type(log.store), "data_access", lambda _, path: asked.append(path) or None)
    assert log.scan().to_arrow().num_rows == log.snapshot().scan_rows().count() == 2
    assert asked == [log.table_path] * 2
