"""Docstrings and messages are filled: a break that an edit left inside a line of prose is found."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cli", "core", "deltalake_api", "locks", "logstores", "spark")
WIDTH = 100
FREE = 40
"""Columns that a line inside a paragraph may leave empty although the next word would fit."""

_ITEM = re.compile(r"\s*([-*|>@]|\d+\.|```|#|[\w.`]+(, [\w.]+)*( \([^)]*\))?: )")


def is_orphan(line: str, following: str) -> bool:
    """Whether the first word of the following line had room at the end of this one."""
    if not following.strip() or following.strip() == '"""' or _ITEM.match(following):
        return False
    if "|" in line or line.rstrip().endswith((":", "::")) or line.lstrip().startswith("@"):
        return False
    if _indent(following) < _indent(line):
        return False
    return WIDTH - len(line) >= FREE and len(line) + 1 + len(following.split()[0]) <= WIDTH


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def orphans_of_docstrings(text: str) -> Iterator[int]:
    """The numbers of lines in docstrings that are shorter than they need be."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for number in range(node.lineno, node.end_lineno or node.lineno):
                line = lines[number - 1]
                if line.strip() and is_orphan(line, lines[number]):
                    yield number


def orphans_of_messages(path: Path) -> Iterator[int]:
    """The same in texts that go on in a literal on the next line."""
    lines = path.read_text().split("\n")
    with path.open("rb") as file:
        tokens = [
            item
            for item in tokenize.tokenize(file.readline)
            if item.type not in (tokenize.NL, tokenize.COMMENT)
        ]
    for one, other in pairwise(tokens):
        if not (_is_prose(one) and _is_prose(other) and other.start[0] == one.end[0] + 1):
            continue
        line = lines[one.end[0] - 1]
        word = other.string.lstrip("f")[1:].split(" ")[0]
        if WIDTH - len(line) >= FREE and len(line) + 1 + len(word) <= WIDTH:
            yield one.end[0]


def _is_prose(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.STRING and not token.string.startswith(("b", "r", '"""'))


@pytest.mark.parametrize("room", ROOMS)
def test_no_line_of_prose_ends_before_it_is_full(room):
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        numbers = [*orphans_of_docstrings(path.read_text()), *orphans_of_messages(path)]
        found += [f"{path.relative_to(ROOT)}:{number}" for number in sorted(numbers)]
    assert found == []


def test_a_line_that_an_edit_left_short_is_found(tmp_path):
    short = '"""A module.\n\nOne line is\nleft.\n\n1. An item:\n   its text.\n2. Another.\n"""\n'
    assert list(orphans_of_docstrings(short)) == [3]
    path = tmp_path / "messages.py"
    path.write_text('X = (\n    "one "\n    "two"\n)\nY = (\n    b"\\x00"\n    b"\\x01"\n)\n')
    assert list(orphans_of_messages(path)) == [2]
