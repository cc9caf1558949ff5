"""Names of Delta tables where the session has Hive's support: what a session without it does."""

from __future__ import annotations

from pathlib import Path

import pyspark

from connect_process import results_of

_SCRIPT = Path(__file__).with_name("hive_session_script.py")
_CONVERTED = [
    [5, 6],
    [["a"]],
    [["delta.minReaderVersion", "1"], ["delta.minWriterVersion", "2"]],
]
_ON_CONNECT = Path(__file__).with_name("connect_hive_script.py")


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


def test_clients_of_connect_and_classic_sessions_share_a_metastore(tmp_path):
    told = {}
    for session in ("first", "second", "third", "fourth"):
        told |= results_of(_ON_CONNECT, tmp_path, session)
    is_refused = pyspark.__version__.startswith("4.0")
    assert told == {
        "view made": "UsageError OPTIMIST_UNSUPPORTED_STATEMENT" if is_refused else "nothing",
        "names": ["far", *([] if is_refused else ["front"]), "kept", "renamed"],
        "made": [[1, 2], [1], [0, 1, 2]],
        "columns": ["id", "p"],
        "view of a client": [1],
        "converted": _CONVERTED,
        "converted before": _CONVERTED,
        "converted by a client": _CONVERTED,
        "converted, at last": [_CONVERTED, _CONVERTED],
        "seen": [[1, 2], [1], [0, 1, 2]],
        "later": [[1, 2, 3], [1], [1, 3], []],
        "dropped": "AnalysisException",
        "a view": [1, 3],
        "front of another": [1],
        "merged": [2, 11, 13],
        "at last": [[2, 11, 13], [], [7], [2, 11, 13], [4], ["id", "x"]],
    }
