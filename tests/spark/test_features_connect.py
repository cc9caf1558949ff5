"""From Spark Connect: mapped columns, identities, row ids, changes of columns, names, blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from altered_session import ALTERED_TOLD
from connect_process import results_of
from created_session import CREATED_TOLD
from mapped_session import MAPPED_TOLD

pytestmark = pytest.mark.again  # a server of its own for a minute

SCRIPT = Path(__file__).with_name("connect_features_script.py")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("connect"))


SEVERAL = [
    *([18, 18], [19, 19], [20, -20], [21, -21], [22, -22], [23, 0], [24, 9], [25, 9], [26, 9]),
]
EXPECTED = {
    "within": SEVERAL,
    "several": [1, SEVERAL],
    "version 2": [0, 1, 2],
    "registered": 0,
    "times": [4, 1],
    "behind views": [[1, True], [2, False]],
    "cut plans": [
        "ConcurrentAppendException DELTA_CONCURRENT_APPEND",
        "UsageError OPTIMIST_NO_REARRANGEMENT",
    ],
    "sources of cut plans": [
        ["spark.sql.maxPlanStringLength", 0, False],
        ["spark.sql.redaction.string.regex", 0, True],
    ],
    "rows of cut plans": [0, 1, 2, 9],
    "appended by a cut plan": "nothing",
    "blind append of a cut plan": False,
    "row ids": [[0, 0, 0], [3, 3, 0], [4, 4, 0], [5, 5, 0], [20, 2, 2]],
    "row ids read": [[0, 0, 0], [3, 3, 0], [4, 4, 0], [5, 5, 0], [20, 2, 2]],
    "some columns": [["a", "id", "id"], [[5, 1, 1], [None, 2, 2]]],
    "their scan": [0],
    "only metadata": [[0, "f.parquet"], [1, "f.parquet"]],
    "all columns": "PythonException",
    "no such column": "SchemaError DELTA_COLUMN_NOT_FOUND",
    "identities": [7, 9, 11, 13, 15, 17, 19, 23],
    **MAPPED_TOLD,
    **CREATED_TOLD,
    **ALTERED_TOLD,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_spark_connect_does_what_classic_spark_does(told, name):
    assert told[name] == EXPECTED[name]
