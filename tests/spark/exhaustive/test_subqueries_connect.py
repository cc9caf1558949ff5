"""Conditions with subqueries on Spark Connect: rows are changed that a SELECT by the same finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of
from exhaustive_cases import in_proportion
from subquery_runs import COMMANDS

SCRIPT = Path(__file__).with_name("connect_subqueries_script.py")
SEEDS = in_proportion(60)
CONFLICT = "ConcurrentAppendException DELTA_CONCURRENT_APPEND"
REFUSED = "UsageError DELTA_UNSUPPORTED_SUBQUERY"
EXPECTED = {
    "a star outside": "AnalysisException",
    "a random subquery": "UsageError INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    "a column of its own": "AnalysisException",
    "an outer join": REFUSED,
    "a column": REFUSED,
    "replaceWhere": REFUSED,
    "after the refusals": True,
    "the history": True,
    "views left": [],
    "texts": [[at, at] for at in range(1, 5)],
    "DELETE by path": [[1, 1], [3, 3], [4, 4], [5, 5]],
    "UPDATE by path": [*([at, at] for at in range(1, 5)), [5, 15]],
    "MERGE by path": [[1, 11], [2, 12]],
    "EXISTS by path": [[1, 1], [2, 2]],
    "an old view": CONFLICT,
    "an overwrite": CONFLICT,
    "a chosen version": "nothing",
    "views": [[1, 1], [2, 2], [4, 4], [5, 5]],
    "methods": [[1, 1], [2, 2], [4, 4]],
    "DELETE beside a commit": [CONFLICT, True],
    "DELETE again": ["nothing", [[5, 5], [500, 0]]],
    "UPDATE beside a commit": [CONFLICT, True],
    "UPDATE again": ["nothing", [[5, 5], [500, 0], [501, 99]]],
    "MERGE beside a commit": [CONFLICT, True],
    "MERGE again": ["nothing", [[5, 5], [500, 0], [501, 99]]],
    "ON beside a commit": [CONFLICT, True],
    "ON again": ["nothing", [[5, 5], [500, 0], [501, 99]]],
    "a value beside a commit": [CONFLICT, True],
    "a value again": ["nothing", [[5, 501], [500, 0], [501, 0]]],
    **{command: {} for command in COMMANDS},
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connect")
    return results_of(SCRIPT, folder, str(SEEDS), timeout_s=3500)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", EXPECTED)
def test_conditions_with_subqueries(told, name):
    assert told[name] == EXPECTED[name]
