"""Merges, odd names, values and schemas, and files outside the table, from Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of
from merge_session import MERGES_TOLD
from odd_session import NAMES_TOLD

SCRIPT = Path(__file__).with_name("connect_odd_script.py")
EXPECTED = {
    "merges": MERGES_TOLD,
    "odd names": NAMES_TOLD,
    "odd values": True,
    "wrong answers": [],
    "outside read": [0, 1, 2, 100, 101, 102],
    "outside rewritten": "TableError OPTIMIST_REWRITE_OF_OUTSIDE_FILE",
    "outside never": "OPTIMIST_PATH_OUTSIDE_TABLE",
    "foreign read": "OPTIMIST_FOREIGN_DATA_PATH",
    "foreign delete": "TableError OPTIMIST_FOREIGN_DATA_PATH",
    "canary": True,
    "deepest": True,
    "deepest row": True,
    "deepest leaf": [2],
    "deepest written": True,
    "too deep": "SchemaError OPTIMIST_SCHEMA_TOO_DEEP",
    "far too deep": "SchemaError OPTIMIST_SCHEMA_TOO_DEEP",
    "nobody's collation": "SchemaError OPTIMIST_UNKNOWN_TYPE",
    "unknown collation": "SchemaError OPTIMIST_UNKNOWN_TYPE",
    "known collation": "nothing",
    "mistakes": {},  # none ends otherwise than in a classic session
    "after the mistakes": 1,
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("connect"))


@pytest.mark.parametrize("name", EXPECTED)
def test_spark_connect_does_with_odd_tables_what_classic_spark_does(told, name):
    assert told[name] == EXPECTED[name]
