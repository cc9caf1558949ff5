"""Streams of a Spark Connect client that go on past changes of columns by a log of schemas."""

from pathlib import Path

import pyspark
import pytest

from connect_process import results_of

SCRIPT = Path(__file__).with_name("connect_tracked_script.py")
TELLS_START = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
EVOLVED = "SchemaError DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "SchemaError DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
ONE, TWO = {"id": 1, "name": "one"}, {"id": 2, "name": "two"}
THREE, FOUR = {"id": 3, "title": "three"}, {"id": 4, "title": "four"}

pytestmark = [
    pytest.mark.again,
    pytest.mark.skipif(not TELLS_START, reason="this PySpark tells sources no offsets"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("tracked"))


def test_a_rename_stops_the_query_and_is_gone_on_from_once_it_is_allowed(told):
    assert told["first"] == "nothing"
    assert told["at a rename"] == EVOLVED
    assert told["rows before it"] == [ONE, TWO]
    assert told["after it, not allowed"] == BLOCKED
    assert told["after it, allowed"] == "nothing"
    assert told["rows after it"] == [ONE, TWO, THREE]


def test_a_batch_that_is_run_again_gives_the_same_rows(told):
    assert told["after a crash"] == "nothing"
    assert told["rows after a crash"] == [ONE, TWO, THREE]


def test_a_column_that_was_made_anew_is_not_read_by_its_old_place(told):
    assert told["at a column made anew"] == EVOLVED
    assert [told["after it"], told["again"]] == ["nothing", "nothing"]
    assert told["rows after a column made anew"] == [ONE, TWO, THREE, FOUR]
    assert told["rows at the end"] == [ONE, TWO, THREE, FOUR]


def test_a_start_before_the_newest_columns_is_read_by_those_of_its_time(told):
    assert told["from an old version"] == [
        "TableError DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
        EVOLVED,
        "nothing",
    ]
    assert told["rows from an old version"] == [ONE, {"id": 2, "title": "two"}]


def test_a_stream_of_changes_goes_on_past_a_change_of_columns(told):
    assert told["changes"] == "nothing"
    assert told["changes at a column"] == [EVOLVED, "nothing"]
    assert told["rows of changes"] == [
        {**ONE, "kind": "insert"},
        {**ONE, "kind": "delete"},
        {**TWO, "more": 7, "kind": "insert"},
    ]


def test_one_place_holds_the_logs_of_two_tables(told):
    assert told["one query"] == "nothing"
    assert told["one query at the change"] == [EVOLVED, "nothing"]
    assert told["a query of another table"] == "nothing"
    assert told["rows of another table"] == [ONE]
