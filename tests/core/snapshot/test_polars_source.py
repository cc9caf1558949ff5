"""A scan as a lazy frame of Polars: the rows are right, and what a query does not need stays."""

from __future__ import annotations

import datetime as dt
import operator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from odd_reads import counted_reads, make_odd_table, spelled
from optimist.core import DeltaLog
from optimist.core.predicates import Predicate
from optimist.core.snapshot.polars_source import translate_filter

UTC = dt.timezone.utc
C = pl.col


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
    C("id") >= 40,
    (C("id") > 20) & (C("n") < 3),
    (C("id") < 5) | C("x").is_nan(),
    (C("id") < 5) | (C("n") == 2**53 + 1),
    C("p").is_null(),
    ~C("p").is_null() & ~(C("id") == 40),
    ~((C("id") > 20) & (C("x").abs() > 1)),
    C("p").is_in(["a b", None]),
    ~C("p").is_in(["a b", None]),
    C("id").is_in([]),
    ~C("id").is_in([]),
    C("id").is_in([21, 22, 79]),
    C("id").is_between(21, 40, closed="right"),
    C("x") == float("nan"),
    C("x") >= float("-inf"),
    C("x") > 1,
    C("x").is_in([float("nan"), -0.0]),
    C("x") == 0,
    C("t") > dt.datetime(2026, 1, 3, tzinfo=UTC),
    C("day") == dt.date(2026, 1, 3),
    C("day").dt.day() == 3,
    C("n").cast(pl.Float64) == 2.0,
    C("n") != 3,
    C("n").eq_missing(None),
    C("p").str.starts_with("x"),
    C("v").struct.field("a") > 50,
    pl.lit(30) < C("id"),
    C("id") == C("n"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_a_filter_keeps_the_rows_that_polars_keeps(odd, condition):
    log, _ = odd
    everything = log.to_polars()
    found = log.scan().to_polars_lazy().filter(condition)
    wanted = everything.filter(condition).sort("id")
    assert_frame_equal(found.collect().sort("id"), wanted)
    assert_frame_equal(found.select("id").collect().sort("id"), wanted.select("id"))
    below = log.scan("id < 60", ["x", "id", "n"]).to_polars_lazy().filter(C("n") > 1)
    assert below.collect().height == everything.filter((C("id") < 60) & (C("n") > 1)).height


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
def test_any_filter_keeps_the_rows_that_polars_keeps(odd, condition):
    log, _ = odd
    found = log.scan().to_polars_lazy().filter(condition).collect()
    wanted = log.to_polars().filter(condition)
    assert sorted(found["id"]) == sorted(wanted["id"])


def test_all_rows_and_columns_come(odd):
    log, rows = odd
    lazy = log.scan().to_polars_lazy()
    assert spelled(lazy.collect().to_dicts()) == spelled(rows)
    assert lazy.collect_schema() == log.to_polars().schema
    assert lazy.select(pl.len()).collect().item() == len(rows)
    assert lazy.join(lazy, on="id").collect().height == len(rows)


def test_a_slice_and_a_filter_keep_their_order(numbers):
    lazy = numbers.scan().to_polars_lazy()
    assert lazy.head(15).collect().height == 15
    assert lazy.filter(C("id") < 7).head(99).collect().height == 7
    assert lazy.head(10).filter(C("id") >= 0).collect().height == 10
    assert numbers.scan(limit=10).to_polars_lazy().filter(C("id") >= 0).collect().height == 10
    assert numbers.scan(limit=10).to_polars_lazy().head(20).collect().height == 10
    assert lazy.slice(95, 20).collect().height == 5


@pytest.mark.parametrize(
    ("query", "opened"),
    [
        (lambda lazy: lazy.filter(C("id") >= 80), 2),
        (lambda lazy: lazy.filter(C("id").is_in([5, 55])), 2),
        (lambda lazy: lazy.filter((C("id") < 10) & (C("text").str.len_chars() > 5)), 1),
        (lambda lazy: lazy.filter((C("id") < 10) | (C("text").str.len_chars() > 5)), 10),
        (lambda lazy: lazy.filter(C("id") < 0), 0),
        (lambda lazy: lazy.head(12), 2),
    ],
)
def test_files_that_a_query_does_not_need_are_not_opened(numbers, monkeypatch, query, opened):
    with counted_reads(monkeypatch) as read:
        query(numbers.scan().to_polars_lazy()).collect()
    assert len(read) == opened


def test_columns_that_a_query_does_not_need_are_not_read(numbers, monkeypatch):
    with counted_reads(monkeypatch) as read:
        numbers.scan(columns=["id"]).to_arrow()
    wanted = sum(read.values())
    with counted_reads(monkeypatch) as read:
        numbers.scan().to_polars_lazy().select(C("id").sum()).collect()
    assert sum(read.values()) == wanted


def test_what_polars_describes_in_an_unknown_way_is_not_pushed_down(numbers):
    class Odd:
        meta = None

    schema = numbers.snapshot().schema
    assert translate_filter(Odd(), schema) == Predicate.TRUE
    assert translate_filter(C("nowhere") == 1, schema) == Predicate.TRUE
    long = pl.any_horizontal([C("id") == n for n in range(20)])
    assert translate_filter(long, schema) == Predicate.TRUE
    assert str(translate_filter(C("id") == 7, schema)) == "id = 7"


def test_an_error_of_a_file_says_what_happened(numbers):
    (path,) = numbers.files("id = 55")["path"].to_pylist()
    (Path(numbers.table_path) / path).unlink()
    with pytest.raises(Exception, match="is missing, although the table's log names it"):
        numbers.scan().to_polars_lazy().collect()
