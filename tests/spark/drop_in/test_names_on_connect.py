"""Names of Delta tables on Spark Connect: the same answers as in a classic session."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of
from named_statements import named_answers

pytestmark = pytest.mark.again  # a server of its own for two minutes
SCRIPT = Path(__file__).with_name("connect_names_script.py")
REFUSED = "UsageError OPTIMIST_UNSUPPORTED_STATEMENT"
NO_TABLE = "TableNotFoundError DELTA_TABLE_NOT_FOUND"
EXPECTED = {
    **{
        f"refused: {case}": REFUSED
        for case in (
            *("view of a path", "view of a version", "global view", "convert"),
            *("script", "variable", "json", "cache", "analyze", "two ways"),
            "hidden property",
            *("truncating script", "immediate into", "immediate using", "another format"),
        )
    },
    "refused: over another": "UsageError DELTA_NOT_A_DELTA_TABLE",
    "kept its format": [1, 2, 3],
    "described": [
        *("bigint", "other", "u", "EXTERNAL", "file:/u", "delta"),
        "[delta.enableChangeDataFeed=true,delta.feature.appendOnly=supported,"
        "delta.feature.changeDataFeed=supported,delta.feature.invariants=supported,"
        "delta.minReaderVersion=1,delta.minWriterVersion=7]",
    ],
    "emptied": [],
    "inserted": [3],
    "emptied by a variable": [],
    "refused: catalog": "UsageError DELTA_NOT_A_DELTA_TABLE",
    "views": [[1, 2, 3], [1, 2, 3]],
    "unnamed": REFUSED,
    "unnamed write": REFUSED,
    **{f"half: {case}": NO_TABLE for case in ("read", "written", "described", "forName", "table")},
    "half: made": [1],
    "half: dropped": False,
    "nameless: other columns": "SchemaError DELTA_CREATE_TABLE_SCHEME_MISMATCH",
    "nameless: not named": False,
    "nameless: named": [0, 1],
    "shared: read": [1],
    "shared: taken": "AnalysisException",
    "shared: gone": "AnalysisException",
    "shared: anew": [[2], [2]],
    "shared: renamed": [[2], [3]],
    "shared: dropped": False,
    "view: unnamed": REFUSED,
    "view: other zone": REFUSED,
    "view: zone": ["2026-01-01 00:00:00"],
    "view: deep": [1, 2, 3],
    "view: table gone": "AnalysisException",
    "view: table hidden": "AnalysisException",
    "catalog: cached": REFUSED,
    "catalog: truncated": [],
    "catalog: dropped": False,
    "streamed into a new table": [1, 2, 3],
    "streamed": [[1, 2, 3], [1, 2, 3]],
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("connect"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_client_is_told(told, name):
    assert told[name] == EXPECTED[name]


def test_names_mean_what_they_mean_in_a_classic_session(told, enabled, tmp_path):
    classic = dict(named_answers(enabled, str(tmp_path)))
    enabled.sql("USE default")
    for database in ("names", "other"):
        enabled.sql(f"DROP DATABASE {database} CASCADE")
    differing = {name: told[name] for name in classic if told[name] != classic[name]}
    assert differing == {}
    assert len(classic) > 100
