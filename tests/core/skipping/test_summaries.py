"""Figures of some files' rows for a planner: of all files, or none."""

import datetime as dt

import pytest

from counted_files import TWO, files_of, stats
from optimist.core.skipping.summaries import summarize


def figures(files, *columns):
    """The rows, and of each known column its nulls, its bounds and how many values differ."""
    found = summarize(files, columns)
    if found is None:
        return None
    return found.rows, {
        name: (one.nulls, *(b and b.as_py() for b in (one.low, one.high)), one.distinct)
        for name, one in found.columns.items()
    }


def test_figures_are_those_of_all_files():
    files = files_of(*TWO, p=["a", None])
    assert figures(files) == (14, {})
    assert figures(files, "i", "n", "p", "nowhere") == (
        14,
        {"i": (1, -1, 5, None), "n": (7, 4, 4, None), "p": (4, None, None, 1)},
    )
    chosen = files_of(*TWO, mask=[False, True])
    assert figures(chosen, "i", "d") == (
        4,
        {"i": (1, -1, 2, None), "d": (0, dt.date(1582, 10, 15), dt.date(2025, 2, 1), None)},
    )
    assert figures(files_of(), "i", "p") == (
        0,
        {"i": (0, None, None, None), "p": (0, None, None, 0)},
    )


def test_deleted_rows_are_not_counted():
    files = files_of(stats(10, {"i": 1}, {"i": 5}, {"i": 9}), deleted=[4], f=[0.5])
    assert figures(files, "i", "f") == (6, {"i": (6, 1, 5, None), "f": (0, 0.5, 0.5, 1)})
    assert figures(files_of(stats(3), deleted=[4])) is None  # more than there are


@pytest.mark.parametrize("text", [None, "{}", stats(-1), stats(2**63 - 1)])
def test_without_a_number_of_rows_nothing_is_known(text):
    assert figures(files_of(stats(3, {"i": 1}, {"i": 2}, {"i": 0}), text), "i") is None


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (stats(3), {}),  # no number of nulls
        (stats(3, {"i": 4}, None, {"i": 0}), {"i": (0, None, None, None)}),
        (stats(3, None, None, {"i": 3}), {"i": (3, 1, 2, None)}),
        (stats(3, {"i": 4}, {"i": 9}, {"i": -1}), {}),
    ],
)
def test_what_one_file_does_not_say_is_not_known_of_all(second, expected):
    files = files_of(stats(3, {"i": 1}, {"i": 2}, {"i": 0}), second)
    assert figures(files, "i") == (6, expected)
