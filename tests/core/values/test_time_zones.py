"""Zones as Spark's sessions, users and partition values name them."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import UsageError
from optimist.core.values.time_zones import parse_zone, session_zone

WINTER = dt.datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("Z", 0),
        ("utc", 0),
        ("Etc/UTC", 0),
        ("+01:00", 1),
        ("-0130", -1.5),
        ("GMT+1", 1),
        ("UT-3", -3),
        ("UTC+18:00", 18),
        ("Europe/Berlin", 1),
        ("PST", -8),
        ("EST", -5),
    ],
)
def test_a_zone_is_named_or_an_offset(text, hours):
    assert parse_zone(text).utcoffset(WINTER) == dt.timedelta(hours=hours)


@pytest.mark.parametrize(
    "text",
    ["", "+18:01", "-25", "+01:60", "+1:0", "+\u0661", "Nowhere/Town", "../x", "Europe", "a\0"],
)
def test_what_is_no_zone_is_told(text):
    with pytest.raises(ValueError, match=r"."):
        parse_zone(text)
    with pytest.raises(UsageError) as caught:
        session_zone(text)
    assert caught.value.kind == "OPTIMIST_UNKNOWN_TIME_ZONE"


@given(st.text() | st.from_regex(r"(UTC|GMT|UT)?[+-][0-9]{1,3}(:?[0-9]{2})?"))
def test_any_text_is_a_zone_or_no_zone(text):
    try:
        zone = parse_zone(text)
    except ValueError:
        return
    assert abs(zone.utcoffset(WINTER)) <= dt.timedelta(hours=18)
