"""Clients of one Spark Connect server over the same names at the same time, and killed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of

SCRIPT = Path(__file__).with_name("connect_shared_names_script.py")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("shared"))


@pytest.mark.parametrize("moment", ["entry", "name", "back"])
def test_what_a_killed_client_leaves_is_mended_by_its_statement(told, moment):
    assert told[f"{moment}: killed"] == -9
    left = "AnalysisException" if moment == "name" else "TableNotFoundError DELTA_TABLE_NOT_FOUND"
    assert told[f"{moment}: left"] == left
    assert told[f"{moment}: again"] == "nothing"
    assert told[f"k_{moment}"] == ([] if moment == "name" else [1])
    assert (told[f"{moment}: dropped"], told[f"{moment}: gone"]) == ("nothing", False)


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("insert", "TableNotFoundError"),
        ("replace", "TableNotFoundError DELTA_TABLE_NOT_FOUND"),
        ("clone", "TableNotFoundError DELTA_TABLE_NOT_FOUND"),
        ("empty", "done"),
    ],
)
def test_a_table_that_is_dropped_within_a_statement_is_not_made_or_has_its_name_again(
    told, what, answer
):
    assert told[f"{what}: dropped"].startswith(answer)
    assert told[f"{what}: is there"] is (answer == "done")
    anew, is_managed = told[f"{what}: anew"], told[f"{what}: is managed"]
    if answer == "done":  # it got its name again with a location, and so its files stay
        assert (anew, is_managed) == ("UsageError DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION ", [])
    else:
        assert (anew, is_managed) == ("done", [True])


def test_a_name_that_is_dropped_before_its_place_is_known_is_told(told):
    assert told["forgotten: dropped"].startswith("TableNotFoundError DELTA_TABLE_NOT_FOUND")
    assert told["forgotten: anew"] == "done"


def test_a_table_that_is_made_before_a_failed_client_drops_the_name_keeps_its_rows(told):
    assert told["given back: failed"].startswith("SchemaError DELTA_EMPTY_DATA")
    assert told["given back: anew"] == "done"
    assert (told["given back: rows"], told["m_back"]) == ("done", [1])


@pytest.mark.parametrize(
    ("what", "columns", "rows"),
    [
        ("insert", ["id"], [1, 5]),
        ("alter", ["id", "x"], [1]),
        ("truncate", ["id"], []),
        ("into", ["id"], [1, 5]),
        ("append", ["id"], [1, 5]),
        ("save", ["id"], [5]),
    ],
)
def test_a_table_that_is_made_after_its_name_was_not_found_is_used(told, what, columns, rows):
    """The server would refuse it, change its entry alone, or drop it to overwrite it."""
    assert (told[f"made: {what}"], told[f"made: {what}: rows"]) == ("done", [columns, rows])


def test_a_stream_makes_no_table_without_a_name_and_writes_no_other_format(told):
    assert (told["stream: dropped"], told["stream: left"]) == (["PATH_NOT_FOUND"], False)
    assert told["stream: format"] == "AnalysisException _LEGACY_ERROR_TEMP_1192 "


def test_clients_that_share_names_read_whole_tables_and_get_clear_errors(told):
    assert [told["then a"], told["then b"], told["quiet"]] == ["done", "done", [7, 8]]
    assert sum(told["clients"].values()) == 40
    assert [step for step in told["clients"] if "WRONG" in step] == []
