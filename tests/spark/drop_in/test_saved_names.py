"""`saveAsTable` of a Spark Connect client over names of other formats, without asking the server.

The server would make an entry of Delta and drop it again as it fails, and the server of Spark 4.0
fails where it has nothing to do.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from calls_on_disk import SAVES, Rows, WantedError, call, rows_on_disk
from catalog_on_disk import Client, Entry, Server, answer, tables_in
from interleaved_names import DONE, FAILED, Step, Table
from optimist.core.errors import OptimistError, UsageError
from optimist.spark.drop_in.connect.writers import WRITER


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


def test_a_table_is_renamed_to_the_name_that_a_failed_statement_has_given_back(client):
    assert answer(client, Step("fail", "a", "", 1)).startswith(FAILED)
    assert [
        answer(client, Step(*step)) for step in (("as", "b", "", 2), ("rename", "b", "a", 0))
    ] == [
        DONE,
        DONE,
    ]
    assert tables_in(client.server) == {"a": Table((2,))}


class ParquetServer:
    """What the server does with rows of Parquet: to overwrite a table, it drops any that is there.

    Attributes:
        writer: The writer, whose mode a call changes, as in PySpark.
        first: What happens before the server saves.
        has_files: Whether the option `path` names a place with files.
    """

    def __init__(self, client, first=lambda: None, *, has_files=False):
        self.server, self.first, self.has_files = client.server, first, has_files
        asked = SimpleNamespace(source="parquet", mode="overwrite", options={})
        self.writer = SimpleNamespace(_spark=client, _write=asked)

    def save(self, name, _, mode=None, **others):
        assert others == {"partitionBy": None}
        self.first()
        self.writer._write.mode = mode or self.writer._write.mode
        if self.writer._write.mode == "error":
            if name in self.server.entries:
                raise AnalysisException("taken", errorClass="TABLE_OR_VIEW_ALREADY_EXISTS")
            if self.has_files:
                raise AnalysisException("files", errorClass="_LEGACY_ERROR_TEMP_1241")
        if name in self.server.entries:
            self.server.run(f"DROP TABLE `{name}`")
        self.server.entries[name] = Entry("MANAGED", f"{self.server.folder}/{name}", "parquet")

    def overwrite(self, name, **named):
        WRITER["saveAsTable"](self.save, self.writer, name, **named)


@pytest.mark.parametrize("named", [{}, {"mode": "Overwrite"}])
def test_rows_of_another_format_replace_no_delta_table_that_is_made_meanwhile(client, named):
    made = []
    parquet = ParquetServer(client, lambda: made.append(answer(client, Step("as", "a", "", 1))))
    with pytest.raises(UsageError, match="drop the table first"):
        parquet.overwrite("a", **named)
    assert made == [DONE]
    assert tables_in(client.server) == {"a": Table((1,))}
    assert parquet.writer._write.mode == "overwrite"


def test_rows_of_another_format_replace_a_table_of_theirs(client):
    client.server.entries["a"] = Entry("EXTERNAL", "/files", "csv")
    parquet = ParquetServer(client)
    for name in "ab":
        parquet.overwrite(name)
        parquet.overwrite(name, mode="overwrite")
    assert [each.provider for each in client.server.entries.values()] == ["parquet", "parquet"]


def test_files_at_the_place_of_a_new_table_are_overwritten(client):
    ParquetServer(client, has_files=True).overwrite("a")
    assert client.server.entries["a"].provider == "parquet"


def test_an_error_of_the_server_is_told_and_nothing_is_overwritten(client):
    def fail():
        raise AnalysisException("no rows", errorClass="UNRESOLVED_COLUMN")

    client.server.entries["a"] = Entry("EXTERNAL", "/files", "csv")
    with pytest.raises(AnalysisException, match="no rows"):
        ParquetServer(client, fail).overwrite("a")
    assert client.server.entries["a"].provider == "csv"


def test_a_name_that_is_made_after_it_was_not_found_is_renamed_only_with_its_table(client):
    """Another client registers the name right after this one has asked for it, and no table."""
    server, left = client.server, [2]

    def register():
        left[0] -= 1
        if left[0] == 0:
            server.run("CREATE TABLE `a` USING delta")

    server.before = register
    told = answer(client, Step("rename", "a", "b", 0))
    assert told == f"{FAILED} TableNotFoundError DELTA_TABLE_NOT_FOUND"
    assert list(server.entries) == ["a"]
