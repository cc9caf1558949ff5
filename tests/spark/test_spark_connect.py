"""Reading, writing and changing tables from Spark Connect, where there is no JVM at hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import deltalake
import pytest

SCRIPT = Path(__file__).with_name("connect_session_script.py")
ALL = [i for i in range(60) if not (i >= 40 and i % 3 == 2) and i not in (36, 37, 39)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def told(folder):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=folder,
    )
    lines = [line for line in done.stdout.splitlines() if "RESULT " in line]
    results = dict(json.loads(line.partition("RESULT ")[2]) for line in lines)
    assert done.returncode == 0, (results, done.stderr[-3000:])
    return results


EXPECTED = {
    "created": 0,
    "read": [1, 4, 7],
    "union": [0, 1, 58, 59],
    "deleted": ALL,
    "updated": [0, 1, 2],
    "partition": None,
    "old version": 60,
    "blind append": True,
    "append from itself": False,
    "append from a view": False,
    "stale overwrite": "ConcurrentAppendException DELTA_CONCURRENT_APPEND",
    "replaced": True,
    "rand": "UsageError DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    "rand column": "UsageError DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    "subquery": "UsageError DELTA_UNSUPPORTED_SUBQUERY",
    "unresolved": "AnalysisException",
    "no column": "UsageError DELTA_COLUMN_NOT_FOUND",
    "too new": "TableError DELTA_VERSION_NOT_FOUND",
    "failed write": "SparkRuntimeException",
    "nothing left": True,
    "changes": [["insert", 3], ["insert", 4]],
    "history": ["WRITE", "WRITE"],
    "detail": "delta",
    "native": "ConfigError OPTIMIST_CLASSIC_SPARK_NEEDED",
    "gone": "TableError DELTA_FILE_NOT_FOUND_DETAILED",
}


def test_the_session_is_one_of_spark_connect(told):
    assert told["module"].startswith("pyspark.sql.connect")


@pytest.mark.parametrize("name", EXPECTED)
def test_spark_connect_does_what_classic_spark_does(told, name):
    assert told[name] == EXPECTED[name]


def test_a_column_as_a_condition_stands_in_the_history(told):
    assert "39" in told["predicate"]["predicate"]


def test_other_engines_read_the_table(told, folder):
    assert told["created"] == 0
    assert deltalake.DeltaTable(str(folder / "table")).version() >= 8
