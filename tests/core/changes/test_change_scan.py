"""`scan_changes`: the rows of `changes` as a stream, against versions compared row by row."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_reads import counted_reads
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, TableError, UsageError

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
STEPS = ("append", "delete", "update", "merge", "optimize", "restore", "add column", "widen")
PARTS = ["x", "y z", None]
KINDS_OF = {
    "append": {"insert"},
    "delete": {"delete"},
    "update": {"update_preimage", "update_postimage"},
    "merge": {"insert", "update_preimage", "update_postimage"},
    "restore": {"insert", "delete"},
}
NEW = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def make_table(path: Path, mode: str = "none", *, vectors: bool = False) -> DeltaLog:
    log = DeltaLog.for_path(path)
    properties = FEED | {"delta.enableTypeWidening": "true"} | (VECTORS if vectors else {})
    if mode != "none":
        properties["delta.columnMapping.mode"] = mode
    log.create(
        {"id": "bigint", "n": "int", "p": "string"}, partition_by=["p"], properties=properties
    )
    return log


def do_step(log: DeltaLog, step: str, at: int) -> None:
    """Do one step of a history; `at` chooses the rows, and makes each step's names its own."""
    ids = [10 * at + number for number in range(3)]
    rows = pa.table({"id": ids, "n": pa.array([at] * 3, pa.int32()), "p": PARTS})
    if step == "append":
        log.append(rows)
    elif step == "delete":
        log.delete(f"id >= {10 * at - 15} AND n < {at}")
    elif step == "update":
        log.update(set={"n": "n + 1"}, predicate=f"id < {10 * at - 5}")
    elif step == "merge":
        source = pa.table({"id": [1, 10 * at + 5], "n": pa.array([-at, at], pa.int32())})
        builder = log.merge(source, ["id"]).when_matched_update({"n": "s.n"})
        builder.when_not_matched_insert({"id": "s.id", "n": "s.n"}).execute()
    elif step == "optimize":
        log.optimize()
    elif step == "restore":
        log.restore(version=max(0, log.version() - 1))
    elif step == "add column":
        log.alter.add_columns({f"c{at}": "string"})
    elif str(log.schema().find("n").data_type) == "integer":
        log.alter.change_columns({"n": "bigint"})


Row = tuple[object, ...]


def rows_at(log: DeltaLog, version: int, columns: list[str]) -> Counter[Row]:
    """The rows of a version with the columns of a later one, null where they are newer."""
    found = log.to_arrow(version=version).to_pylist()
    return Counter(tuple(row.get(name) for name in columns) for row in found)


def net_changes(rows: list[dict[str, object]], columns: list[str]) -> dict[object, Counter[Row]]:
    """By version how many of each row came, less those that went."""
    net: dict[object, Counter[Row]] = {}
    for row in rows:
        values = tuple(row[name] for name in columns)
        counts = net.setdefault(row["_commit_version"], Counter())
        counts[values] += NEW[str(row["_change_type"])]
    return net


def plain(counts: Counter[Row]) -> dict[Row, int]:
    return {row: count for row, count in counts.items() if count}


@settings(max_examples=6, deadline=None)
@given(
    history=st.lists(st.sampled_from(STEPS), max_size=4),
    mode=st.sampled_from(["none", "name", "id"]),
    vectors=st.booleans(),
    data=st.data(),
)
def test_the_stream_tells_how_each_version_differs_from_the_one_before(
    tmp_path_factory, history, mode, vectors, data
):
    log = make_table(tmp_path_factory.mktemp("feed") / "t", mode, vectors=vectors)
    steps: dict[int, str] = {}
    for at, step in enumerate(["append", "update", *history], 1):
        before = log.version()
        do_step(log, step, at)
        steps.update(dict.fromkeys(range(before + 1, log.version() + 1), step))
    first = data.draw(st.integers(1, log.version()))
    last = data.draw(st.integers(first, log.version()))
    try:
        scan = log.scan_changes(starting_version=first, ending_version=last)
    except SchemaError as error:  # a restore took a column away
        assert error.kind == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
        assert "restore" in history
        return
    columns = log.snapshot(last).schema.names
    rows = scan.to_arrow().to_pylist()
    net = net_changes(rows, list(columns))
    for version in range(first, last + 1):
        now, then = (rows_at(log, each, list(columns)) for each in (version, version - 1))
        now.subtract(then)
        assert plain(net.get(version, Counter())) == plain(now), (version, steps[version])
    for row in rows:
        assert row["_change_type"] in KINDS_OF[steps[row["_commit_version"]]]
    in_order = log.scan_changes(starting_version=first, ending_version=last, in_order=True)
    versions = in_order.to_arrow()["_commit_version"].to_pylist()
    assert versions == sorted(versions)
    assert len(versions) == scan.count() == len(rows)


@pytest.fixture
def feed(tmp_path):
    """A table whose versions 1 to 6 have changes of its files, of vectors and of change files."""
    log = make_table(tmp_path / "feed", "name", vectors=True)
    for at, step in enumerate(["append", "append", "update", "merge", "append"], 1):
        do_step(log, step, at)
    log.delete("id = 11")
    return log


def spelled(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_each_form_has_the_rows_of_the_table(feed):
    scan = feed.scan_changes(starting_version=1)
    wanted = feed.changes(starting_version=1)
    assert scan.versions == range(1, 7)
    assert (scan.version, scan.schema) == (6, wanted.schema)
    assert set(wanted["_change_type"].to_pylist()) == set(NEW)
    for found in (pa.table(scan), scan.to_reader().read_all(), scan.to_arrow()):
        assert spelled(found) == spelled(wanted)
    for frame in (scan.to_polars(), pl.DataFrame(scan), scan.to_polars_lazy().collect()):
        assert frame.height == wanted.num_rows
    assert len(scan.to_pandas()) == scan.count() == wanted.num_rows
    assert scan.to_dataset().to_table().num_rows == wanted.num_rows
    told = "SELECT _change_type, count(*) FROM scan GROUP BY ALL"
    counts = Counter(wanted["_change_type"].to_pylist())
    assert dict(duckdb.sql(told).fetchall()) == counts


def test_a_predicate_may_name_the_columns_of_the_change(feed):
    kept_by = {
        "_change_type = 'delete'": lambda row: row["_change_type"] == "delete",
        "_commit_version >= 3 AND n > 1": lambda row: row["_commit_version"] >= 3 and row["n"] > 1,
        "id = 1": lambda row: row["id"] == 1,
    }
    rows = feed.changes(starting_version=1).to_pylist()
    for question in kept_by:
        scan = feed.scan_changes(question, ["_commit_version", "id"], starting_version=1)
        kept = [row for row in rows if kept_by[question](row)]
        assert spelled(scan.to_arrow()) == sorted(
            repr({"_commit_version": row["_commit_version"], "id": row["id"]}) for row in kept
        )
        assert scan.count() == len(kept)


def test_files_that_nobody_wants_are_not_opened(feed, monkeypatch):
    with counted_reads(monkeypatch) as read:
        scan = feed.scan_changes("_commit_version = 5", starting_version=1)
        assert len(read) == 0
        assert scan.to_arrow().num_rows == 3
    assert len(read) == 3
    lazy = feed.scan_changes(starting_version=1, in_order=True).to_polars_lazy()
    with counted_reads(monkeypatch) as read:
        assert lazy.head(1).collect().height == 1
    assert len(read) == 1


def test_a_stream_that_is_closed_leaves_no_thread(feed, monkeypatch):
    def readers() -> list[threading.Thread]:
        gc.collect()
        found = [each for each in threading.enumerate() if each.name == "optimist-read"]
        for each in found:
            each.join(10)
        return [each for each in found if each.is_alive()]

    reader = feed.scan_changes(starting_version=1).to_reader()
    assert reader.read_next_batch().num_rows
    reader.close()
    assert readers() == []
    batches = feed.scan_changes(starting_version=1).to_batches()
    next(batches)
    del batches
    assert readers() == []


def test_the_range_is_chosen_when_the_scan_is_made(feed):
    scan = feed.scan_changes(starting_version=5)
    before = spelled(scan.to_arrow())
    do_step(feed, "append", 9)
    assert spelled(scan.to_arrow()) == before
    assert repr(scan) == f"ChangeScan(table_path={feed.table_path!r}, versions=range(5, 7))"


def test_a_file_that_is_gone_is_an_error_of_the_table(feed):
    for file in Path(feed.table_path).rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    with pytest.raises(TableError) as caught:
        feed.scan_changes(starting_version=1).to_reader().read_all()
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"


def test_what_is_wrong_is_refused_when_the_scan_is_made(feed):
    for wrong in (
        lambda: feed.scan_changes(),
        lambda: feed.scan_changes("ix = 1", starting_version=1),
        lambda: feed.scan_changes(columns="id", starting_version=1),
        lambda: feed.scan_changes(starting_version=3, ending_version=1),
    ):
        with pytest.raises(UsageError):
            wrong()
