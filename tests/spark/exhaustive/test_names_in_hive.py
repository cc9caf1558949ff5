"""Names of Delta tables where the session has Hive's support: what a session without it does."""

from __future__ import annotations

from pathlib import Path

from connect_process import results_of

_SCRIPT = Path(__file__).with_name("hive_session_script.py")


def test_names_in_a_metastore_of_hive(tmp_path):
    assert results_of(_SCRIPT, tmp_path) == {
        "new session": 19,
        "clone": 19,
        "columns": ["id", "p"],
        "partitions": [0, 1],
        "view": [9],
        "version": [20],
        "changes": [1],
        "by name": 19,
        "is delta": True,
        "renamed": 19,
        "dropped": [False, True],
    }
