"""Streams of a Spark Connect client: source and sink in one process of their own."""

from pathlib import Path

import pyspark
import pytest

from connect_process import results_of

SCRIPT = Path(__file__).with_name("connect_stream_script.py")
TELLS_START = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
pytestmark = pytest.mark.again  # each query waits for Python workers of its own


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("streams"))


@pytest.mark.skipif(not TELLS_START, reason="this PySpark tells sources no limits")
def test_limits_make_batches(told):
    assert told["batches"] == 2
    assert told["operations"] == ["STREAMING UPDATE"] * 2


def test_each_row_comes_once_over_restarts_and_crashes(told):
    assert told["rows"] == [0, 1, 2, 3, 4, 5]
    assert told["rows after a restart"] == [0, 1, 2, 3, 4, 5, 6]
    assert told["rows after a crash"] == [0, 1, 2, 3, 4, 5, 6]
    assert told["operations after a crash"] == ["STREAMING UPDATE"] * (told["batches"] + 1)


def test_a_start_that_is_latest_is_kept_or_refused(told):
    if TELLS_START:
        assert told["rows since the start"] == [7]
    else:
        assert told["a start that is latest"] == "UsageError OPTIMIST_NOT_BUILT_YET"


def test_complete_mode_replaces_all_rows(told):
    assert told["sum"] == [{"count": 8}]


def test_a_query_that_reads_the_table_it_writes_is_no_blind_append(told):
    assert told["rows of its own"] == [1, 2]
    assert told["a blind append of its own"] is False


def test_a_stream_of_changes_gives_each_once(told):
    whole = [[1, "insert", 1], [1, "insert", 2]]
    assert told["the table as changes"] == whole
    assert told["changes after a restart"] == [
        *whole,
        [2, "update_postimage", 9],
        [2, "update_preimage", 1],
        [3, "delete", 2],
        [4, "insert", 3],
    ]
    assert told["a table without a feed"] == "TableError DELTA_MISSING_CHANGE_DATA"


def test_what_streams_can_not_do_is_refused_in_delta_s_words(told):
    assert told["update mode"] == "UsageError DELTA_UNSUPPORTED_OUTPUT_MODE"
    assert told["a schema"] == "UsageError DELTA_UNSUPPORTED_SCHEMA_DURING_READ"
    unbuilt = "UsageError OPTIMIST_NOT_BUILT_YET"
    assert told["a log of schemas"] == ("nothing" if TELLS_START else unbuilt)
    refused = "ArgumentTypeError OPTIMIST_INVALID_ARGUMENT_TYPE"
    calls = ("load", "table", "start", "toTable")
    assert told["path objects"] == dict.fromkeys(calls, refused)
    assert told["a wrong option"] == "UsageError DELTA_ILLEGAL_OPTION"
    travel = "UsageError DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"
    assert [told["an older version"], told["an older version in the path"]] == [travel, travel]
    anew = "SchemaError DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert told["rows of columns made anew"] == anew
    assert told["a deletion"] == "TableError DELTA_SOURCE_IGNORE_DELETE"
    assert told["rows past the deletion"] == [0, 1, 2, 3, 4, 5, 6, 7]
