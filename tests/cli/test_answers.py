"""Answers as text: JSON of odd values, and tables that no value can break."""

from __future__ import annotations

import io
import json
import math
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.cli.answers import show as shown
from optimist.cli.answers.answer import Answer
from optimist.cli.answers.json_columns import json_lines, json_texts, plain_texts
from optimist.cli.answers.json_text import write_json
from optimist.cli.answers.plain_tables import write_aligned, write_tabbed
from optimist.cli.answers.terminal_tables import write_to_terminal

UTC = timezone.utc


def of(values, kind):
    return json.loads(json_texts(pa.array(values, kind))[0].as_py())


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (-(2**63), pa.int64(), -(2**63)),
        (2**64 - 1, pa.uint64(), 2**64 - 1),
        (1.5, pa.float32(), 1.5),
        (1.5, pa.float16(), 1.5),
        (math.nan, pa.float64(), "NaN"),
        (-math.inf, pa.float64(), "-Infinity"),
        (math.inf, pa.float16(), "Infinity"),
        (1e300, pa.float64(), 1e300),
        (Decimal("9" * 30 + ".12345678"), pa.decimal128(38, 8), "9" * 30 + ".12345678"),
        (b"\x00\xff", pa.binary(), "00ff"),
        (b"ab", pa.binary(2), "6162"),
        (b"", pa.large_binary(), ""),
        (datetime(1, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC"), "0001-01-01T00:00:00.000000Z"),
        (
            datetime(2026, 7, 1, tzinfo=UTC),
            pa.timestamp("ms", "Europe/Berlin"),
            "2026-07-01T00:00:00.000Z",
        ),
        (datetime(2026, 1, 1, 5), pa.timestamp("us"), "2026-01-01T05:00:00.000000"),
        (date(9999, 12, 31), pa.date32(), "9999-12-31"),
        (True, pa.bool_(), True),
        (None, pa.null(), None),
        ([1, None], pa.large_list(pa.int8()), [1, None]),
        ([1, 2], pa.list_(pa.int8(), 2), [1, 2]),
        ([], pa.list_(pa.string()), []),
        ({"x": [{"y": None}]}, None, {"x": [{"y": None}]}),
        ([("a", 1), ("b", None)], pa.map_(pa.string(), pa.int64()), {"a": 1, "b": None}),
        ([(1, "x")], pa.map_(pa.int64(), pa.string()), [{"key": 1, "value": "x"}]),
        ("a", pa.dictionary(pa.int8(), pa.string()), "a"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_of_each_type(value, kind, expected):
    found = of([value], kind)
    assert found == expected
    assert type(found) is type(expected)
    assert of([None, value][:1], kind) is None
    sliced = pa.array([None, value, value], kind).slice(1)
    assert [json.loads(text.as_py()) for text in json_texts(sliced)] == [expected, expected]


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_comes_back_and_controls_no_terminal(values):
    lines = json_lines(pa.record_batch({'a"\n': pa.array(values, pa.string())}))
    assert [json.loads(line) for line in lines.to_pylist()] == [{'a"\n': x} for x in values]
    for text in [*lines.to_pylist(), *plain_texts(pa.array(values, pa.string())).to_pylist()]:
        assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in text)
        assert not set(text) & set("\u202e\u2066\u2028")


_VALUES = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.none() | st.fixed_dictionaries({"a": st.none() | st.lists(st.integers(0, 9))})))
def test_nested_values_come_back_from_any_slice(values):
    array = pa.array(values, pa.struct([("a", pa.list_(pa.int64()))]))
    for start in range(len(values) + 1):
        texts = json_texts(array.slice(start)).to_pylist()
        assert [json.loads(text) for text in texts] == values[start:]


def test_a_document_of_many_batches_and_of_none():
    rows = pa.table({"x": pa.chunked_array([[1, 2], [], [3]], pa.int64())})
    for facts in ({}, {"a": "\ud800", "b": None}):
        stream = io.BytesIO()
        write_json(Answer(facts, {"rows": rows, "none": rows.slice(3)}), stream)
        expected = {**facts, "rows": [{"x": 1}, {"x": 2}, {"x": 3}], "none": []}
        assert json.loads(stream.getvalue()) == expected
    stream = io.BytesIO()
    write_json(Answer(), stream)
    assert json.loads(stream.getvalue()) == {}


def written(write, answer: Answer) -> list[str]:
    stream = io.BytesIO()
    write(answer, stream)
    return stream.getvalue().decode().split("\n")


ODD = Answer(
    {"fact": "y\x1b\tz", "half": "\ud800"},
    {"rows": pa.table({"n\n": [5, None], "text": ["a\nb\t\x1b[31m", "x" * 300], "l": ["", "z"]})},
)


def test_aligned_tables_are_whole_and_one_line_a_row():
    lines = written(write_aligned, ODD)
    assert lines[0] == "fact  y\\x1b\\tz"
    assert lines[3].startswith("n\\u000a  text  ")
    assert lines[4] == "      5  a\\u000ab\\u0009\\u001b[31m", "no spaces at the end"
    assert lines[5] == "   NULL  " + "x" * 300 + "  z"
    assert len(lines) == 7


def test_tabs_stand_between_columns_and_nowhere_else():
    assert written(write_tabbed, ODD) == [
        "fact\ty\\x1b\\tz",
        "half\t\\ud800",
        "",
        "n\\u000a\ttext\tl",
        "5\ta\\u000ab\\u0009\\u001b[31m\t",
        "NULL\t" + "x" * 300 + "\tz",
        "",
    ]
    two = Answer({}, {"a": pa.table({"x": [1]}), "b": pa.table({})})
    assert written(write_tabbed, two) == ["a:", "x", "1", "", "b:", ""]


def test_a_terminal_cuts_long_cells_and_keeps_short_ones(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    metrics = "{" + ", ".join(f'"metric{i}": "{i}"' for i in range(60)) + "}"
    rows = pa.table({"version": [123], "operation": ["WRITE"], "metrics": [metrics]})
    write_to_terminal(Answer({}, {"rows": rows}))
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.rstrip().startswith("    123  WRITE      {")
    assert (len(line), line[-1]) == (80, "…")
    write_to_terminal(Answer({}, {"rows": rows}, ("metrics",)))
    told = capsys.readouterr().out
    assert '"59"' in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_terminal_of_80_columns_is_not_exceeded(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = pa.table({"number": [1], "text": ["word " * 60], "[bold]": ["[red]x[/red]\x1b[31m"]})
    write_to_terminal(Answer({"fact": "y" * 200}, {"a": rows, "b": rows}))
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert "y" * 60 in told
    assert "\x1b" not in told
    assert "[bold]" in told


def test_a_long_table_is_not_fitted_to_the_terminal(capsys, monkeypatch):
    monkeypatch.setattr(shown.sys.stdout, "isatty", lambda: True, raising=False)
    rows = pa.table({"x": range(shown.MOST_ROWS_FITTED + 1)})
    shown.show(Answer({}, {"rows": rows}), as_json=False)
    assert capsys.readouterr().out.count("\n") == shown.MOST_ROWS_FITTED + 2


def test_bytes_that_are_no_text_end_no_answer_and_control_no_terminal():
    offsets = pa.array([0, 3, 3, 6], pa.int32()).buffers()[1]
    data = pa.py_buffer(b"a\xff\xfed\x9b\xc3")
    valid = pa.array([True, False, True]).buffers()[1]
    texts = pa.StringArray.from_buffers(3, offsets, data, valid)
    expected = ["a\ufffd\ufffd", None, "d\ufffd\ufffd"]
    nested = pa.StructArray.from_arrays([texts, pa.array([1, 2, 3])], ["t", "n"])
    rows = pa.RecordBatch.from_arrays([texts, nested], ["t", "s"])
    told = [json.loads(line) for line in json_lines(rows).to_pylist()]
    assert [row["t"] for row in told] == expected
    assert [row["s"]["t"] for row in told] == expected
    assert plain_texts(texts, null="-").to_pylist() == [expected[0], "-", expected[2]]
