"""The statistics of files whose rows a vector deletes (spec 10.10)."""

from __future__ import annotations

import json

import pytest

from optimist.core.data.statistics.loose_bounds import loosen_bounds


def test_bounds_stay_and_are_no_longer_tight():
    before = {"numRecords": 9, "minValues": {"a": 1}, "maxValues": {"a": 5}, "tightBounds": True}
    after = json.loads(loosen_bounds(json.dumps(before), num_rows=9, num_live=9))
    assert after == {**before, "tightBounds": False}


def test_numbers_and_texts_keep_every_digit_and_character():
    text = (
        '{"numRecords":2,"minValues":{"d":12345678901234567890.1234567890,"f":1.50E+300,'
        '"t":"é","half":"\\ud800","list":[1,true,null]},"maxValues":{},"tightBounds":true}'
    )
    assert loosen_bounds(text, num_rows=2, num_live=2) == text.replace("true}", "false}")


@pytest.mark.parametrize("text", [None, "", "{", "[1]", '"x"', '{"a":1,"a":2}'])
def test_statistics_that_are_absent_or_damaged_become_a_row_count(text):
    assert json.loads(loosen_bounds(text, num_rows=7, num_live=7)) == {
        "numRecords": 7,
        "tightBounds": False,
    }


def test_counts_of_nulls_are_widened_where_they_mean_all_of_the_live_rows():
    """Tight statistics of a file with a vector count live rows, wide ones all."""
    counts = {"all": 6, "none": 0, "some": 3, "in": {"all": 6, "odd": "x"}}
    before = json.dumps({"numRecords": 10, "nullCount": counts, "tightBounds": True})
    after = json.loads(loosen_bounds(before, num_rows=10, num_live=6))
    assert after["nullCount"] == {"all": 10, "none": 0, "some": 3, "in": {"all": 10, "odd": "x"}}


def test_wide_counts_and_those_of_no_rows_stay_as_they_are():
    wide = json.dumps({"numRecords": 10, "nullCount": {"a": 6}, "tightBounds": False})
    assert json.loads(loosen_bounds(wide, num_rows=10, num_live=6))["nullCount"] == {"a": 6}
    empty = json.dumps({"numRecords": 10, "nullCount": {"a": 0}})
    assert json.loads(loosen_bounds(empty, num_rows=10, num_live=0))["nullCount"] == {"a": 0}
