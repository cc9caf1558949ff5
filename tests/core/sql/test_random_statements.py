"""A statement, written down in any of the ways that mean it, is read as that statement again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.errors import UsageError
from optimist.core.sql import SqlText, TableName, parse_command, parse_row_change
from sql_statements import commands, row_changes, texts_of

_MARKS = [
    ";",
    "(",
    ")",
    ",",
    ".",
    "=",
    "'",
    '"',
    "`",
    "--",
    "/*",
    "*/",
    "/*+",
    ":x",
    "?",
    "\\",
    "*",
]
_WORDS = [
    "optimize",
    "vacuum",
    "restore",
    "describe",
    "history",
    "t",
    "delta",
    "where",
    "zorder",
    "by",
    "create",
    "table",
    "shallow",
    "clone",
    "alter",
    "add",
    "constraint",
    "check",
    "cluster",
    "none",
    "to",
    "version",
    "as",
    "of",
    "3",
    "merge",
    "into",
    "using",
    "on",
    "when",
    "matched",
    "then",
    "update",
    "set",
    "delete",
    "from",
    "explain",
    "case",
    "end",
    "identifier",
]


@settings(max_examples=60)
@given(st.data())
def test_each_text_of_a_command_is_that_command(data):
    command = data.draw(commands)
    text = data.draw(texts_of(command))
    assert parse_command(text) == command
    assert parse_row_change(text) is None


@settings(max_examples=40)
@given(st.data())
def test_each_text_of_a_row_change_is_that_change(data):
    change = data.draw(row_changes)
    text = data.draw(texts_of(change))
    found = parse_row_change(text)
    assert found == change
    assert parse_command(text) is None
    if isinstance(found.condition, SqlText):
        assert text[slice(*found.condition.span)] == found.condition.sql


@given(st.data())
def test_the_span_of_a_table_is_where_it_stands(data):
    command = data.draw(commands)
    text = data.draw(texts_of(command))
    table = parse_command(text).table
    again = parse_command(f"DESCRIBE DETAIL {text[slice(*table.span)]}").table
    assert again == TableName(table.parts, table.is_text)


@settings(max_examples=100)
@pytest.mark.parametrize("parse", [parse_command, parse_row_change])
@given(st.lists(st.sampled_from([*_MARKS, *_WORDS]), max_size=12), st.sampled_from(["", " "]))
def test_any_text_is_a_statement_or_none_or_an_error_within_it(parse, pieces, blank):
    text = blank.join(pieces)
    try:
        parse(text)
    except UsageError as error:
        if error.kind == "PARSE_SYNTAX_ERROR":
            assert error.fields["line"] == 1
            assert 1 <= error.fields["column"] <= len(text) + 1
        else:
            assert error.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"
