"""Versions and ranges that are named by times are those that deltalake finds."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import deltalake as real
import pyarrow as pa
import pytest

import optimist.deltalake as ours
from optimist.deltalake.exceptions import DeltaError

LAST = 4
FIRST_DAY = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
EARLY, LATE = "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"


def noon(day: int) -> str:
    return f"2024-01-{day:02}T12:00:00Z"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose version n is from the day n + 1 at midnight and adds the row n."""
    path = tmp_path_factory.mktemp("times")
    for number in range(LAST + 1):
        rows = pa.table({"k": [number]})
        on = {"delta.enableChangeDataFeed": "true"}
        real.write_deltalake(path, rows, mode="append", configuration=None if number else on)
        put_back(path / "_delta_log" / f"{number:020}.json", FIRST_DAY + dt.timedelta(number))
    return path


def put_back(commit: Path, moment: dt.datetime) -> None:
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = int(moment.timestamp() * 1000)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    os.utime(commit, (moment.timestamp(), moment.timestamp()))


RANGES: list[dict[str, Any]] = [
    {"starting_version": 1, "starting_timestamp": noon(4)},
    {"starting_version": 3, "starting_timestamp": noon(1)},
    {"starting_version": 1, "starting_timestamp": EARLY},
    {"ending_version": 3, "ending_timestamp": noon(2)},
    {"ending_version": 1, "ending_timestamp": noon(4)},
    {"ending_version": 1, "ending_timestamp": LATE},
    {"ending_timestamp": LATE},
    {"ending_timestamp": "2024-01-03T00:00:00Z"},
    {"starting_timestamp": "2024-01-02T00:00:00Z", "ending_timestamp": LATE},
    {"starting_timestamp": noon(2), "ending_version": 2},
    {"starting_version": 2, "ending_version": 9},
    {"starting_version": 2, "starting_timestamp": noon(1), "ending_timestamp": noon(4)},
    {"starting_version": 2, "starting_timestamp": LATE, "allow_out_of_range": True},
]


@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_both_bounds_of_a_change_feed_hold(place: Path, bounds: dict[str, Any]) -> None:
    found = []
    for module in (real, ours):
        feed = pa.table(module.DeltaTable(place).load_cdf(**bounds))
        found.append(sorted(feed["k"].to_pylist()))
    assert found[1] == found[0]


@pytest.mark.parametrize(
    "bounds",
    [
        {"starting_version": 2, "starting_timestamp": LATE},
        {"starting_version": 3, "ending_version": 4, "ending_timestamp": noon(2)},
        {"starting_version": -1},
        {"starting_version": 9, "ending_timestamp": LATE},
        {"ending_timestamp": EARLY},
    ],
    ids=str,
)
def test_a_range_without_a_commit_is_an_error(place: Path, bounds: dict[str, Any]) -> None:
    with pytest.raises(DeltaError):
        ours.DeltaTable(place).load_cdf(**bounds)


@pytest.mark.parametrize("module", [real, ours], ids=["real", "ours"])
def test_a_time_outside_the_log_loads_the_nearest_version(place: Path, module: ModuleType) -> None:
    table = module.DeltaTable(place)
    expected = [(EARLY, 0), (noon(2), 1), ("2024-01-03T00:00:00Z", 2), (LATE, LAST)]
    for moment, version in expected:
        table.load_as_version(moment)
        assert table.version() == version, moment


def test_a_time_before_the_log_loads_the_oldest_version_that_is_left(tmp_path: Path) -> None:
    for number in range(3):
        ours.write_deltalake(tmp_path, pa.table({"k": [number]}), mode="append")
    table = ours.DeltaTable(tmp_path)
    table.create_checkpoint()
    for number in range(2):
        (tmp_path / "_delta_log" / f"{number:020}.json").unlink()
    table.load_as_version(EARLY)
    assert (table.version(), table.count()) == (2, 3)
