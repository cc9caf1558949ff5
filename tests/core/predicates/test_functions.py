"""The table of functions gives Spark's answers, which are recorded (see `spark_answers`)."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from function_cases import answers_here
from optimist.core.predicates.functions.table import FUNCTIONS, Function

_RECORD = json.loads(
    gzip.decompress((Path(__file__).parent / "spark_answers.json.gz").read_bytes())
)
_TYPES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_INTEGERS = re.compile(rf"\b({'|'.join(_TYPES)})\b")
_GROUPS = 16


@pytest.mark.sample(4)
@pytest.mark.parametrize("group", range(_GROUPS))
def test_expressions_have_the_types_and_the_values_of_spark(group: int) -> None:
    wrong = []
    for sql, (name, expected) in list(_RECORD.items())[group::_GROUPS]:
        data_type, found = answers_here(sql, expected)
        if data_type != _INTEGERS.sub(lambda match: _TYPES[match[0]], name):
            wrong.append((sql, name, data_type))
        differing = [
            i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]
        ]
        wrong += [(sql, index, found[index], expected[index]) for index in differing[:3]]
    assert wrong == []


def test_the_page_of_functions_has_the_table_of_the_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "functions.md").read_text("utf-8")
    rows = [_row_of(item) for item in dict.fromkeys(FUNCTIONS.values())]
    table = "\n".join(["| function | takes | gives |", "|---|---|---|", *rows])
    assert f"\n\n{table}\n\n" in page


def _row_of(item: Function) -> str:
    names = ", ".join(f"`{_shown(name)}`" for name in item.names)
    return f"| {names} | {item.takes} | {item.gives} |"


def _shown(name: str) -> str:
    """Return an operator as users write it, within a table of Markdown."""
    return {"DIV": "DIV", "-x": "-x", "+x": "+x"}.get(name, name).replace("|", "\\|")


def test_every_function_has_recorded_answers() -> None:
    missing = [
        item.names
        for item in dict.fromkeys(FUNCTIONS.values())
        if not any(_calls(name, sql) for name in item.names for sql in _RECORD)
    ]
    assert missing == []


def _calls(name: str, sql: str) -> bool:
    name = name.partition(" ...")[0].rstrip("]")
    if name.replace("_", "").isalnum() and name.islower():
        return f"{name}(" in sql
    return (
        name.rstrip("x") in sql if name in ("-x", "+x", "~x") else f" {name} " in sql or name in sql
    )
