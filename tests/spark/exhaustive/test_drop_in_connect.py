"""`enable` on Spark Connect: format("delta"), SQL over paths, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of

SCRIPT = Path(__file__).with_name("connect_drop_in_script.py")
REFUSED = "UsageError OPTIMIST_UNSUPPORTED_STATEMENT"
NOT_BUILT = "UsageError OPTIMIST_NOT_BUILT_YET"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("connect"))


EXPECTED = {
    "enabled": True,
    "errors if it exists": "UsageError DELTA_PATH_EXISTS",
    "saved": [0, 0, 1, 2, 3, 4, 5],
    "replaced": [0, 0, 1, 2, 4, 5],
    "a version": [0, 1, 2, 3, 4, 5],
    "a version in the path": [0, 0, 1, 2, 3, 4, 5],
    "ignored options": [0, 0, 1, 2, 4, 5],
    "no feed": "TableError DELTA_MISSING_CHANGE_DATA",
    "by name": [0, 0, 1, 2, 4, 5],
    "by spark.table": [0, 0, 1, 2, 4, 5],
    "saveAsTable of a path": None,
    "after writeTo": [0, 0, 0, 1, 2, 2, 3, 4, 4, 5],
    "a schema": "UsageError DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
    "two paths": "UsageError OPTIMIST_NO_TABLE_PATH",
    "no path": "UsageError OPTIMIST_NO_TABLE_PATH",
    "an option of Delta that would be ignored": NOT_BUILT,
    "a name": REFUSED,
    "other formats": 6,
    "a query": [[0], [1], [2], [3], [4]],
    "a version by SQL": [[1], [2]],
    "a version in the name": [[2]],
    "a join": [[0, 0], [4, None]],
    "a CTE": [[25]],
    "a subquery": [[1]],
    "its own qualifier": [[4]],
    "the rest is kept": [["{} delta.`/x`", 0]],
    "a union": [[4]],
    "a time": [[3]],
    "explained": 1,
    "a named parameter": [[3]],
    "places": [["a", 3]],
    "a frame": [[4]],
    "a temporary view": [[3], [4]],
    "into a table of others": [0, 1],
    "deleted": [[1]],
    "updated": [[2]],
    "merged": [[6, 4, 1, 1]],
    "after the merge": [
        [0, "NEW!", None],
        [2, "m", 7],
        [3, "m", 7],
        [4, "m", 7],
        [6, "m", 7],
    ],
    "merged by a name": [[1, 0, 1, 0]],
    "table_changes": [
        ["delete", 1],
        ["insert", 6],
        ["update_postimage", 2],
        ["update_preimage", 2],
    ],
    "table_changes by path": [[1]],
    "history": [4, 3],
    "detail": True,
    "OPTIMIZE": NOT_BUILT,
    "VACUUM": NOT_BUILT,
    "RESTORE": NOT_BUILT,
    "wrong": "UsageError PARSE_SYNTAX_ERROR",
    "history of a name": "UsageError OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
    "create": REFUSED,
    "CTAS": REFUSED,
    "create at a path": REFUSED,
    "insert": REFUSED,
    "a view that stays": REFUSED,
    "a script": REFUSED,
    "execute": REFUSED,
    "alter": REFUSED,
    "gone": "TableNotFoundError DELTA_PATH_DOES_NOT_EXIST",
    "explain": REFUSED,
    "of the server": "AnalysisException",
    "disabled": True,
    "SQL of others": [["delta"]],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_client_has(told, name):
    assert told[name] == EXPECTED[name]


def test_everything_told_is_expected(told):
    assert set(told) == set(EXPECTED)
