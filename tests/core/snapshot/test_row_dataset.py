"""A scan as a dataset of pyarrow: for DuckDB, for Polars, and by itself."""

from __future__ import annotations

import datetime as dt
import math
import operator
import pickle

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odd_reads import counted_reads, make_odd_table, spelled
from optimist.core import DeltaLog
from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.core.predicates import Predicate
from optimist.core.snapshot.arrow_filter import translate_filter

UTC = dt.timezone.utc
F = ds.field


@pytest.fixture(scope="module", params=["none", "id"])
def odd(request, tmp_path_factory):
    return make_odd_table(tmp_path_factory.mktemp("odd"), request.param, has_vectors=True)


@pytest.fixture
def numbers(tmp_path):
    """A table of ten files of ten rows, whose statistics tell which rows are where."""
    log = DeltaLog.for_path(str(tmp_path / "numbers"))
    for start in range(0, 100, 10):
        ids = list(range(start, start + 10))
        log.append(pa.table({"id": ids, "half": [i // 2 for i in ids], "text": ["x" * 5000] * 10}))
    return log


FILTERS = [
    F("id") >= 40,
    (F("id") > 20) & (F("n") < 3),
    (F("id") < 5) | (F("n") == 2**53 + 1),
    F("p").is_null(),
    ~F("p").is_null() & ~(F("id") == 40),
    F("p").isin(["a b"]),
    F("p").isin(["a b", None]),
    ~F("p").isin(["a b"]),
    ~F("p").isin(["a b", None]),
    F("id").isin([21, 22, -1, 79]),
    F("x") > 1.0,
    ~(F("x") > 1.0),
    ~(F("x") <= 1.0),
    ~((F("x") > 1.0) | (F("id") > 70)),
    F("x") == math.nan,
    F("x") != math.nan,
    F("x") != 0.0,
    F("x") == 0.0,
    F("x").is_nan(),
    F("x").is_null(nan_is_null=True),
    ~F("x").is_null(nan_is_null=True),
    F("x") >= -math.inf,
    F("x").isin([math.nan, -0.0]),
    ~F("x").isin([0.0]),
    F("t") > dt.datetime(2026, 1, 3, tzinfo=UTC),
    F("day") == dt.date(2026, 1, 3),
    F("day") < dt.datetime(2026, 1, 3),
    F("n") + 1 > 2,
    F("id") > 2.5,
    F("v", "a") > 50,
    pa.compute.starts_with(F("p"), "x"),
    pa.scalar(30) < F("id"),
    F("id") == F("n"),
    F("id") > -5,
    ds.scalar(True),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_a_filter_keeps_the_rows_that_arrow_keeps(odd, condition):
    log, _ = odd
    dataset, everything = log.scan().to_dataset(), log.to_arrow()
    wanted = everything.filter(condition).sort_by("id")
    found = dataset.to_table(filter=condition).sort_by("id")
    assert spelled(found.to_pylist()) == spelled(wanted.to_pylist())
    few = dataset.to_table(columns=["p", "id"], filter=condition)
    assert few.sort_by("id") == wanted.select(["p", "id"])
    assert dataset.count_rows(filter=condition) == wanted.num_rows


@pytest.mark.sample(2)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    condition=st.recursive(
        st.sampled_from(FILTERS),
        lambda part: st.one_of(
            st.builds(operator.and_, part, part),
            st.builds(operator.or_, part, part),
            st.builds(operator.invert, part),
        ),
        max_leaves=5,
    )
)
def test_any_filter_keeps_the_rows_that_arrow_keeps(odd, condition):
    log, _ = odd
    found = log.scan().to_dataset().to_table(columns=["id"], filter=condition)
    wanted = log.to_arrow().filter(condition)
    assert sorted(found["id"].to_pylist()) == sorted(wanted["id"].to_pylist())


QUERIES = [
    "id >= 40",
    "id IN (3, 21, 79) OR n = 9007199254740993",
    "p IN ('a b', 'x=y/z') AND id > 30",
    "p IS NULL OR day = DATE '2026-01-03'",
    "p NOT IN ('a b') AND x > 1",
    "NOT (x > 1) AND id <> 40",
    "x = 'nan'::DOUBLE",
    "x >= 0 AND x < 'inf'::DOUBLE",
    "t > TIMESTAMPTZ '2026-01-02 00:00:00+00' AND p LIKE 'x%'",
    "id BETWEEN 20 AND 30 AND abs(n) > 1",
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", QUERIES)
def test_duckdb_gets_the_rows_that_it_gets_of_the_whole_table(odd, condition):
    log, _ = odd
    rows, whole = log.scan().to_dataset(), duckdb.from_arrow(log.to_arrow())
    assert rows is not None
    assert whole is not None
    query = "SELECT id, p, n FROM {} WHERE " + condition + " ORDER BY id"
    wanted = duckdb.sql("SET TimeZone = 'UTC'") or duckdb.sql(query.format("whole")).fetchall()
    assert duckdb.sql(query.format("rows")).fetchall() == wanted
    count = f"SELECT count(*), max(id) FROM rows WHERE {condition}"
    assert duckdb.sql(count).fetchall()[0][0] == len(wanted)


@pytest.mark.parametrize(
    ("condition", "opened"),
    [
        ("id >= 80", 2),
        ("id IN (5, 55)", 2),
        ("id < 10 AND length(text) > 5", 1),
        ("id < 0", 0),
        ("id = 7 OR half = 40", 2),
        ("length(text) > 5", 10),
    ],
)
def test_duckdb_opens_only_the_files_that_it_needs(numbers, monkeypatch, condition, opened):
    rows = numbers.scan().to_dataset()
    assert rows is not None
    with counted_reads(monkeypatch) as read:
        duckdb.sql(f"SELECT sum(half) FROM rows WHERE {condition}").fetchall()
    assert len(read) == opened


def test_duckdb_reads_only_the_columns_that_it_needs(numbers, monkeypatch):
    with counted_reads(monkeypatch) as read:
        numbers.scan(columns=["id"]).to_arrow()
    wanted = sum(read.values())
    rows = numbers.scan().to_dataset()
    assert rows is not None
    with counted_reads(monkeypatch) as read:
        assert duckdb.sql("SELECT sum(id) FROM rows").fetchall() == [(4950,)]
    assert sum(read.values()) == wanted


def test_polars_scans_the_dataset(numbers, monkeypatch):
    lazy = pl.scan_pyarrow_dataset(numbers.scan().to_dataset())
    with counted_reads(monkeypatch) as read:
        assert lazy.filter(pl.col("id") >= 80).select("half").collect().height == 20
    assert len(read) == 2


def test_columns_may_be_expressions(numbers):
    dataset = numbers.scan().to_dataset()
    found = dataset.to_table(columns={"twice": F("id") * 2}, filter=F("half") == 1)
    assert sorted(found["twice"].to_pylist()) == [4, 6]
    assert dataset.to_table(columns=[]).num_rows == dataset.count_rows() == 100
    assert dataset.head(3).num_rows == 3
    assert dataset.schema == numbers.scan().schema


def test_a_limit_comes_before_a_filter(numbers):
    dataset = numbers.scan(limit=10).to_dataset()
    assert dataset.to_table(filter=F("id") >= 0).num_rows == 10


def test_what_would_read_past_the_scan_is_refused(numbers):
    dataset = numbers.scan().to_dataset()
    for refused in (
        dataset.get_fragments,
        lambda: dataset.filter(F("id") > 1),
        lambda: dataset.sort_by("id"),
        lambda: pickle.dumps(dataset),
        lambda: dataset.to_table(columns=["id", "__filename"]),
        lambda: dataset.to_table(filter=F("__fragment_index") == 0),
    ):
        with pytest.raises(UsageError) as caught:
            refused()
        assert caught.value.kind == "OPTIMIST_NOT_BUILT_YET"
    assert dataset.to_table(filter=F("text") == '__filename "').num_rows == 0
    with pytest.raises(FileNotFoundError, match="rows-of-a-scan"):
        ds.Scanner.from_dataset(dataset).to_table()


@pytest.mark.parametrize("columns", [5, "id", [None], {"a": 5}, b"id"], ids=str)
def test_columns_of_a_wrong_type_are_one_clear_error(numbers, columns):
    with pytest.raises(ArgumentTypeError, match="columns"):
        numbers.scan().to_dataset().to_table(columns=columns)
    with pytest.raises(ArgumentTypeError, match="filter"):
        numbers.scan().to_dataset().scanner(filter="id > 1")


def test_filters_of_a_mapped_table_are_pushed_down(odd, monkeypatch):
    log, _ = odd
    with counted_reads(monkeypatch) as read:
        assert log.scan().to_dataset().to_table(filter=F("id") == 80).num_rows == 1
    assert len(read) == 1


def test_known_filters_are_translated(numbers):
    schema, table = numbers.scan().schema, numbers.snapshot().schema
    condition = (F("id") > -2) & ((F("half") + 1 > 2) | F("text").is_null()) & ~(F("half") == 3)
    assert str(translate_filter(condition, schema, table)) == "id > -2 AND NOT (half = 3)"
    assert translate_filter(F("nowhere") > 2, schema, table) == Predicate.TRUE
