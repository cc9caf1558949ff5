"""`saveAsTable` of a Spark Connect client over names of other formats, without asking the server.

The server would make an entry of Delta and drop it again as it fails, and the server of Spark 4.0
fails where it has nothing to do.
"""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from calls_on_disk import SAVES, Rows, WantedError, call, rows_on_disk
from catalog_on_disk import Client, Entry, Server, answer, tables_in
from interleaved_names import DONE, FAILED, Step, Table
from optimist.core.errors import OptimistError


@pytest.fixture
def client(tmp_path):
    with rows_on_disk():
        yield Client(Server(tmp_path))


def saved(client, what, *, source, rows=None):
    try:
        call(client, what, "a", rows or Rows(client, 7), source)
    except OptimistError as error:
        return error.kind
    except AnalysisException as error:
        return error.getCondition()
    return DONE


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("save if new", DONE),
        ("save append", "_LEGACY_ERROR_TEMP_1159"),
        ("save overwrite", "OPTIMIST_UNSUPPORTED_STATEMENT"),
    ],
)
def test_rows_of_another_format_leave_a_delta_table_as_it_is(client, what, told):
    assert answer(client, Step("as", "a", "", 1)) == DONE
    assert saved(client, what, source="parquet") == told
    assert tables_in(client.server) == {"a": Table((1,))}


def test_an_ignored_query_with_an_error_is_an_error(client):
    class Wrong:
        @property
        def schema(self):
            raise WantedError

    answer(client, Step("as", "a", "", 1))
    with pytest.raises(WantedError):
        saved(client, "save if new", source="parquet", rows=Wrong())


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("save", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("save if new", DONE),
        ("save append", "_LEGACY_ERROR_TEMP_1159"),
        ("save overwrite", "DELTA_NOT_A_DELTA_TABLE"),
    ],
)
def test_rows_of_delta_leave_another_table_as_it_is(client, what, told):
    there = client.server.entries["a"] = Entry("EXTERNAL", "/files", "parquet")
    assert saved(client, what, source="delta") == told
    assert client.server.entries == {"a": there}


@pytest.mark.parametrize("what", SAVES)
def test_rows_of_another_format_are_the_servers_where_nothing_is(client, what):
    assert saved(client, what, source="parquet") == "TABLE_OR_VIEW_NOT_FOUND"
    assert not str(answer(client, Step(what, "a", "", 1))).startswith(FAILED)
