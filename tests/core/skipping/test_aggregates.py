"""Counts and bounds that the log gives for files: exact, or none."""

import datetime as dt

import pytest

from counted_files import TWO, files_of, stats
from optimist.core.skipping.aggregates import Wanted, aggregated


def asked(text):
    """`min i` is the least value of i; `rows` is alone."""
    return [Wanted(*each.split()) for each in text.split(", ")]


def answer(text, *parts):
    found = aggregated(parts, [asked(text)] * len(parts))
    return None if found is None else [tuple(row.values()) for row in found.to_pylist()]


def test_counts_and_bounds_are_those_of_all_files():
    files = files_of(*TWO)
    text = "rows, count i, count n, min i, max i, min n, max d"
    assert answer(text, files) == [(14, 13, 7, -1, 5, 4, dt.date(2026, 2, 1))]
    assert answer(text, files, files)[0][:3] == (28, 26, 14)
    chosen = files_of(*TWO, mask=[False, True])
    assert answer(text, chosen) == [(4, 3, 0, -1, 2, None, dt.date(2025, 2, 1))]


def test_groups_are_those_that_have_rows():
    files = files_of(*TWO, stats(3), stats(0), stats(5), p=["a", None, "a", "b", "c"],
                     deleted=[None, None, None, None, 5])  # fmt: skip
    found = answer("group p, rows", files)
    assert sorted(found, key=str) == [("a", 13), (None, 4)]
    assert sorted(answer("group p", files), key=str) == [("a",), (None,)]
    assert answer("min p, max p, count p", files) == [("a", "a", 13)]


def test_without_files_nothing_is_counted():
    assert answer("rows, count i, min i, max p", files_of()) == [(0, 0, None, None)]
    assert answer("group p, rows", files_of()) == []
    assert answer("rows, min i", files_of(stats(0), None, mask=[True, False])) == [(0, None)]


def test_vectors_leave_counts_and_take_bounds_away():
    files = files_of(stats(10, {"i": 1}, {"i": 5}, {"i": 0, "n": 10, "d": 4}), deleted=[3])
    assert answer("rows, count i, count n, min n", files) == [(7, 7, 0, None)]
    assert answer("min i", files) is None
    assert answer("count d", files) is None
    loose = files_of(stats(10, {"i": 1}, {"i": 5}, {"i": 1}, tightBounds=False))
    assert answer("rows", loose) == [(10,)]
    assert answer("max i", loose) is answer("count i", loose) is None


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("rows", None),
        ("rows", "{}"),
        ("rows", stats(-1)),
        ("rows", stats("10")),
        ("min i", stats(10, {}, {}, {"i": 2})),
        ("min i", stats(10, {"i": 1}, {"i": 5}, {"i": 10})),
        ("min i", stats(10, {"i": 6}, {"i": 5}, {"i": 0})),
        ("max i", stats(10, {"i": 1}, {"i": 5e3 + 0.5}, {"i": 0})),
        ("max i", stats(10, {"i": 1}, {"i": 2**40}, {"i": 0})),
        ("max n", stats(10, {"n": 1}, {"n": 1e18}, {"n": 0})),
        ("min d", stats(10, {"d": "1582-10-14"}, {"d": "2026-02-01"}, {"d": 0})),
        ("max d", stats(10, {"d": "2026-02-01"}, {"d": "+12026-02-01"}, {"d": 0})),
        ("min t", stats(10, {"t": "2026-01-01T00:00:00.000Z"}, {}, {"t": 0})),
        ("max s", stats(10, {"s": "a"}, {"s": "b"}, {"s": 0})),
        ("min x", stats(10, {"x": 0.0}, {"x": 1.0}, {"x": 0})),
        ("max m", stats(10, {"m": 0.1}, {"m": 0.3}, {"m": 0})),
        ("count i", stats(10)),
        ("count i", stats(10, nulls={"i": 11})),
        ("count i", stats(10, {"i": 1}, {"i": 5}, {"i": 10})),
        ("min i", stats(10, {"i": 1}, {"i": 5}, {"i": 11})),
        ("min i", stats(10, {"i": 1}, {"i": 5}, {"i": 0}, tightBounds="false")),
        ("count a", stats(10, nulls={"a": 0})),
        ("group i", stats(10, {"i": 1}, {"i": 1}, {"i": 0})),
        ("group f", stats(10)),
        ("min f", stats(10)),
    ],
)
def test_what_may_be_inexact_is_no_answer(text, file):
    assert answer(text, files_of(TWO[0], file)) is None


def test_files_that_do_not_count_need_no_statistics():
    files = files_of(TWO[0], None, stats(0), mask=[True, False, True])
    assert answer("rows, max i", files) == [(10, 5)]


def test_impossible_counts_are_no_answer():
    assert answer("rows", files_of(stats(2**62), stats(2**62))) is None
    assert answer("rows", files_of(stats(5), deleted=[6])) is None
    assert answer("rows", files_of(stats(5), deleted=[-1])) is None
