"""Two clients over the same names, one within each request of the other: no table is lost.

Whatever succeeded happened in some order, and whatever failed left everything as it was.
"""

from __future__ import annotations

import pytest

from calls_on_disk import rows_on_disk
from catalog_on_disk import Client, Entry, Server, answer, interleaved, tables_in
from interleaved_names import DONE, Step, Table, is_one_of, may_be
from optimist.core.errors import TableNotFoundError
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.sql import TableName
from optimist.core.sql.statements import ConvertToDelta
from optimist.spark.commands.maintenance import named_conversions

MOST_REQUESTS = 9
OTHERS = (
    ("drop",),
    ("drop", "as"),
    ("create or replace", "insert"),
    ("rename", "create"),
)


@pytest.fixture
def server(tmp_path):
    with rows_on_disk():
        yield Server(tmp_path / "warehouse")


@pytest.mark.parametrize("others", OTHERS, ids=" ".join)
@pytest.mark.parametrize("what", ["fail", "as", "create or replace"])
def test_what_succeeds_has_happened_and_what_fails_has_not(server, what, others):
    folder = server.folder
    for at in range(1, MOST_REQUESTS + 1):
        server.entries, server.folder = {}, folder / str(at)
        if what == "create or replace":
            answer(Client(server), Step("as", "a", "", 1))
        begun, outer = tables_in(server), Step(what, "a", "b", 2)
        inner = [Step(each, "a", "b", 3 + row) for row, each in enumerate(others)]
        told, answers = interleaved(server, outer, inner, at)
        taken = list(zip(inner, answers, strict=True))
        found, states = tables_in(server), list(may_be(begun, (outer, told), taken))
        assert is_one_of(found, states), (at, begun, (outer, told), taken, found, states)


@pytest.mark.parametrize("at", range(2, 6))
def test_a_table_of_the_name_of_converted_files_keeps_its_rows(server, monkeypatch, at):
    """Another client drops the Parquet table, and makes one of its name, at some request."""
    files = f"{server.folder}/files"
    server.entries["a"] = Entry("EXTERNAL", files, "parquet")
    left, taken = [at], []

    def count(*_):
        left[0] -= 1
        if left[0] == 0:
            steps = (Step("drop", "a", "", 0), Step("as", "a", "", 5))
            taken.extend(answer(Client(server), step) for step in steps)

    monkeypatch.setattr(named_conversions, "convert_named_files", count)
    monkeypatch.setattr(named_conversions, "files_on_server", lambda *_: (files, ConvertRequest()))
    server.before = count
    told = ""
    try:
        named_conversions.convert_on_server(Client(server), ConvertToDelta(TableName(("a",))))
    except TableNotFoundError as error:
        told = error.kind
    server.before = lambda: None
    if taken == [DONE, DONE]:
        assert (told, tables_in(server)) == ("DELTA_TABLE_NOT_FOUND", {"a": Table((5,))})
    else:  # after the last request
        assert {name: each.location for name, each in server.entries.items()} == {"a": files}
