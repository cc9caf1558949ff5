"""The same statements on Spark Connect and in a classic session; and what only a client can lose.

A client sends what the server does not know: which version a cached frame shows, what a parameter
means. One session of Spark Connect answers all of it.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from connect_process import results_of
from parameter_answers import ZONE, parameter_answers

pytestmark = pytest.mark.again  # test_spark_connect.py has a server already
SCRIPT = Path(__file__).with_name("connect_answers_script.py")
LOST = ["ConcurrentAppendException DELTA_CONCURRENT_APPEND", [0, 1, 2, 10, 11]]
DRAWN = "UsageError INVALID_NON_DETERMINISTIC_EXPRESSIONS"
NO_TABLE = "TableNotFoundError DELTA_MISSING_DELTA_TABLE"
OLDER = {
    **dict.fromkeys(("delete", "update", "merge", "truncate"), NO_TABLE),
    **dict.fromkeys(
        ("insert", "insertInto", "append", "partitions", "saveAsTable"),
        "UsageError DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
    ),
}
EXPECTED = {
    "cached: overwrite": LOST,
    "cached: replaceWhere": LOST,
    "cached: replaceOn": LOST,
    "cached: replace": LOST,
    "cached: insert": LOST,
    "cached: merge": ["nothing", [0, 1, 2, 10, 11]],
    "kept": True,
    "kept without a frame": 0,
    "cleared": [[1, 2, 10, 11], [1, 2, 10, 11, 20]],
    "made anew": [[10, 11], [10, 11]],
    "fixed subqueries": [[4], [6]],
    "text partition": [[2, "01"], [3, "abc"], [9, "1"]],
    "formats": [[[5, 0, 1, 4]], [2, 4, 4, 5, 6, 7, 70, 100], [[6], [7]]],
    "cached query": [8, True],
    "badly cached query": ["IllegalArgumentException", False],
    "into a view": "UsageError OPTIMIST_UNSUPPORTED_STATEMENT",
    "defaults": [[0, "none"], [1, "none"], [3, "none"], [4, "x"], [5, "none"], [7, "mine"]],
    "refused: cache of a path": "UsageError OPTIMIST_UNSUPPORTED_STATEMENT",
    "refused: view by the format": "UsageError OPTIMIST_UNSUPPORTED_STATEMENT",
    "refused: directory": "UsageError OPTIMIST_UNSUPPORTED_STATEMENT",
    "variables": [1, [[2]], [[3]]],
    "environment": [2, len(ZONE)],
    "odd variable": "UsageError OPTIMIST_UNSUPPORTED_STATEMENT",
    "no variables": [2, len("${x.n}")],
    "read values": [[[0, 0], [1, 201], [2, 20]], []],
    "a key twice": "UsageError PARSE_SYNTAX_ERROR",
    "adjoining texts": [["a", "bc"]],
    "Spark's own": ["col_name", "data_type", "comment"],
    "drawn: delete": DRAWN,
    "drawn: quoted": DRAWN,
    "drawn: update": DRAWN,
    "drawn: merge": "UsageError DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    "drawn: replaceWhere": DRAWN,
    "drawn once": [[199, 0]],
    "other case": "SchemaError DELTA_COLUMN_NOT_FOUND",
    "all rows": ["199", 2],
    "cast: append": [[0, 1, 7, 7], "struct<id:bigint>"],
    "cast: overwrite": [0, 1, 7],
    "cast: partitions": [7],
    **{f"a version: {way}": kind for way, kind in OLDER.items()},
    "a version: afterwards": [[7], False],
    "changed conf": "ConfigError OPTIMIST_SESSION_CHANGED",
    "changed conf left": 9,
    "changed quotes": [[1]],
    "far filters that lose rows": [],
    "far filters without rows": [],
    "far filters that skip nothing": [],
    "counted without files": [40, [[1, 20]], [[0, 10], [1, 10], [2, 10], [3, 10]]],
    "texts counted": [2, [[2]]],
    "other object": [2, True],
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("connect"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_client_is_told(told, name):
    assert told[name] == EXPECTED[name]


def test_a_parameter_means_what_it_means_in_a_classic_session(told, enabled, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", ZONE)
    time.tzset()
    try:
        classic = parameter_answers(enabled, f"{tmp_path}/parameters")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert len(classic) > 30
    assert told["parameters"] == classic
