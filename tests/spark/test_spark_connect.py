"""Reading, writing and changing tables from Spark Connect, where there is no JVM at hand."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pytest

from connect_process import results_of

SCRIPT = Path(__file__).with_name("connect_session_script.py")
ALL = [i for i in range(60) if not (i >= 40 and i % 3 == 2) and i not in (36, 37, 39)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def told(folder):
    return results_of(SCRIPT, folder)


STAR = "UsageError INVALID_USAGE_OF_STAR_OR_REGEX"
EXPECTED = {
    "created": 0,
    "read": [1, 4, 7],
    "union": [0, 1, 58, 59],
    "own store": "ConfigError OPTIMIST_LOGSTORE_NOT_IMPORTED",
    "own store wrote": False,
    "own store in the server": 0,
    "own store read": [0, 1, 2],
    "deleted": ALL,
    "merged": [2, 1, 0, 1],
    "merged rows": [20, 300],
    "updated": [0, 1, 2],
    "partition": ["num_affected_rows"],
    "old version": 60,
    "blind append": True,
    "append from itself": False,
    "append from a view": False,
    "stale overwrite": "ConcurrentAppendException DELTA_CONCURRENT_APPEND",
    "replaced": True,
    "dynamic": [0, 2, 4],
    "rand": "UsageError INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    "rand column": "UsageError INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    "subquery": "nothing",
    "unresolved": "AnalysisException",
    "no column": "SchemaError DELTA_COLUMN_NOT_FOUND",
    "too new": "TableError DELTA_VERSION_NOT_FOUND",
    "failed write": "SparkRuntimeException",
    "nothing left": True,
    "changes": [["insert", 3], ["insert", 4]],
    "changes of an overwrite": [
        [1, "insert", 3],
        [1, "insert", 4],
        *([2, "delete", i] for i in range(5)),
        [2, "insert", 9],
    ],
    "changes that are recorded": [
        [4, "delete", 10],
        *([5, "update_postimage", i] for i in (114, 115)),
        *([5, "update_preimage", i] for i in (14, 15)),
        [6, "delete", 11],
        [6, "delete", 12],
        [6, "insert", 11],
    ],
    "largest decimals": ["9" * 38, "-" + "9" * 38],
    "no column or text": "ArgumentTypeError OPTIMIST_INVALID_ARGUMENT_TYPE",
    "no frame": "ArgumentTypeError OPTIMIST_INVALID_ARGUMENT_TYPE",
    "folder of a partition": True,
    "mistyped struct": "SchemaError DELTA_COLUMN_NOT_FOUND",
    "overflow": "ArithmeticException",
    "struct field": [[7, "s", None]],
    "by name": [[4, "3"]],
    "strict": "SchemaError CANNOT_UP_CAST_DATATYPE",
    "legacy": [1215752191],
    "marked": [*(i for i in range(16) if i % 3), 116, 117, 119],
    "vectors updated": "1",
    "odd path": [5, 30],
    "empty path": "UsageError OPTIMIST_NO_TABLE_PATH",
    "conditions": [27, 29],
    "partitions": [29, 270],
    "other frame": "AnalysisException",
    "star": STAR,
    "star in update": STAR,
    "star in replaceWhere": STAR,
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
