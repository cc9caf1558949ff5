"""Names and statements that a server computes: which are asked for, without a server."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from optimist.core.sql import Parameters
from optimist.spark.drop_in.connect.computed_names import immediate, with_constant_names
from optimist.spark.drop_in.connect.statements import ensure_can_be_had

GIVEN = Parameters(named={"t": "'db'"})


class Server:
    """A server that answers with its values, and notes what it was asked."""

    def __init__(self, *values, fails=False):
        self.values, self.fails, self.asked = values, fails, []

    def __call__(self, text):
        self.asked.append(text)
        return self

    def collect(self):
        if self.fails:
            raise AnalysisException("no column", errorClass="UNRESOLVED_COLUMN")
        return [self.values]


def test_computed_names_are_asked_for_at_once():
    server = Server("db.t", "it's")
    text = "SELECT IDENTIFIER(a || 'b') FROM x.IDENTIFIER(a) , identifier ( :t || '.t' -- c\n ) y"
    assert with_constant_names(server, text, GIVEN) == (
        "SELECT IDENTIFIER('db.t') FROM x.IDENTIFIER(a) , identifier ( 'it\\'s' -- c\n ) y"
    )
    assert server.asked == ["SELECT a || 'b', 'db' || '.t'"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM IDENTIFIER('t'), IDENTIFIER(:t)",
        "SELECT 'IDENTIFIER(a || b)' FROM t -- IDENTIFIER(c || d)",
        "SELECT * FROM IDENTIFIER(? || 't') WHERE a = ?",
        "SELECT identifier FROM t",
        "SELECT IDENTIFIER(a || 'b",
        "SELECT :nothing FROM IDENTIFIER(a || b)",
    ],
)
def test_a_text_without_names_that_can_be_computed_stays(text):
    server = Server()
    assert with_constant_names(server, text, GIVEN) == text
    assert server.asked == []


@pytest.mark.parametrize("server", [Server(fails=True), Server(None), Server("a", "b"), Server(1)])
def test_a_name_that_the_server_does_not_tell_stays(server):
    text = "SELECT * FROM IDENTIFIER(a || b)"
    assert with_constant_names(server, text, None) == text


@pytest.mark.parametrize("rows", [[], [("a",), ("b",)]])
def test_not_one_row_tells_no_name(rows):
    server = Server()
    server.collect = lambda: rows
    text = "SELECT * FROM IDENTIFIER('a' FROM range(2))"
    assert with_constant_names(server, text, None) == text
    assert immediate(server, "EXECUTE IMMEDIATE 'a' FROM range(2)", None).text is None


def test_a_question_that_is_interrupted_is_no_answer():
    class Interrupted(Server):
        def collect(self):
            raise PySparkException("interrupted", errorClass="OPERATION_CANCELED")

    with pytest.raises(PySparkException, match="interrupted"):
        with_constant_names(Interrupted(), "TRUNCATE TABLE IDENTIFIER(a || b)", None)
    with pytest.raises(PySparkException, match="interrupted"):
        immediate(Interrupted(), "EXECUTE IMMEDIATE a", None)


@pytest.mark.parametrize(
    ("text", "asked", "is_alone"),
    [
        ("EXECUTE IMMEDIATE 'SELECT 1';", "SELECT 'SELECT 1'", True),
        ("execute immediate x || 'y' INTO a", "SELECT x || 'y'", False),
        ("EXECUTE IMMEDIATE :t USING 1 AS a, 2", "SELECT 'db'", False),
    ],
)
def test_a_statement_that_is_a_value_is_asked_for(text, asked, is_alone):
    server = Server("SELECT 1")
    found = immediate(server, text, GIVEN)
    assert (found.text, found.is_alone) == ("SELECT 1", is_alone)
    assert server.asked == [asked]


def test_another_statement_is_no_value():
    assert immediate(Server(), "SELECT 'EXECUTE IMMEDIATE x'", None) is None
    assert immediate(Server(), "EXECUTE IMMEDIATE", None) is None
    assert immediate(Server(fails=True), "EXECUTE IMMEDIATE x", None).text is None


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("BEGIN TRUNCATE TABLE IDENTIFIER('t' || 'u'); END", True),
        ("BEGIN EXECUTE IMMEDIATE 'TRUNCATE TABLE t'; END", True),
        ("BEGIN SELECT TRUNCATE; END", False),
        ("BEGIN DELETE FROM IDENTIFIER('t'); END", False),
        ("EXECUTE IMMEDIATE 'TRUNCATE TABLE t'", True),
        ("TRUNCATE TABLE IDENTIFIER('t' || 'u')", True),
        ("TRUNCATE TABLE t", False),
    ],
)
def test_no_table_whose_name_is_computed_is_truncated_by_the_server(text, is_refused):
    if not is_refused:
        ensure_can_be_had(text, ())
        return
    with pytest.raises(Exception, match="TRUNCATE of a name"):
        ensure_can_be_had(text, ())
