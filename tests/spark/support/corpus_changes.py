"""The corpus of statements that change: a table of odd names, what is done to it, what it holds.

`changes.txt` has a case in each block of lines. Each begins with the table of `make_table`, which
`{t}` is; `{n}` is a name without a table yet. The rows were worked out by hand.

| line begins with | the rest |
|---|---|
| `>` | a statement that works |
| `@` | the values of its parameters |
| `?` and `#` | a query, and a command that shows something |
| `=` | the rows of the query |
| `!` | the condition of an error, and the statement that ends in it |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpus import FOLDER, told
from optimist.core import DeltaLog
from optimist.core.requests.table_definition import Column

__all__ = ["Case", "Line", "cases", "differences", "make_table"]

_TYPES = {
    "id": "bigint",
    "Part.Of": "int",
    "näme x": "string",
    "amt": "decimal(10,2)",
    "pos": "struct<x: int, y: int>",
    "tags": "array<string>",
}
_ROWS = (
    (1, 10, "one", "1.50", (1, 1), ["a"]),
    (2, 10, "two", None, (2, 2), []),
    (3, 20, None, "3.00", None, None),
    (4, None, "four", "-4.25", (4, None), ["a", None]),
)


@dataclass(frozen=True)
class Line:
    """One statement: what is expected of it, and the values of its parameters."""

    mark: str
    text: str
    arguments: dict[str, Any] | list[Any] | None = None
    expected: Any = None

    @property
    def is_error(self) -> bool:
        """Whether the statement is refused."""
        return self.mark == "!"


@dataclass(frozen=True)
class Case:
    """Statements that build on each other."""

    name: str
    lines: tuple[Line, ...]


def cases() -> list[Case]:
    """The corpus."""
    blocks = (FOLDER / "changes.txt").read_text(encoding="utf-8").strip().split("\n\n")
    parsed = [tuple(_lines(block)) for block in blocks]
    return [Case(lines[0].text[:60], lines) for lines in parsed]


def _lines(block: str) -> Iterator[Line]:
    lines = block.splitlines()
    for at, text in enumerate(lines):
        mark, rest = text[0], text[2:]
        more = lines[at + 1] if at + 1 < len(lines) else ""
        if mark == "!":
            condition, _, statement = rest.partition(" ")
            yield Line(mark, statement, expected=condition)
        elif mark == ">":
            yield Line(mark, rest, json.loads(more[2:]) if more.startswith("@") else None)
        elif mark in "?#":
            yield Line(mark, rest, expected=json.loads(more[2:]))


def make_table(path: str) -> None:
    """Versions 0 and 1 of the table: made, and filled."""
    log = DeltaLog.for_path(path, {})
    log.create(
        [Column(name, of) for name, of in _TYPES.items()],
        partition_by=["Part.Of"],
        properties={
            "delta.columnMapping.mode": "name",
            "delta.enableDeletionVectors": "true",
            "delta.feature.allowColumnDefaults": "supported",
        },
    )
    columns = list(zip(*_ROWS, strict=True))
    positions = [None if at is None else {"x": at[0], "y": at[1]} for at in columns[4]]
    place = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    values = [
        pa.array(columns[0], pa.int64()),
        pa.array(columns[1], pa.int32()),
        pa.array(columns[2], pa.string()),
        pa.array(columns[3], pa.string()).cast(pa.decimal128(10, 2)),
        pa.array(positions, place),
        pa.array(columns[5], pa.list_(pa.string())),
    ]
    log.append(pa.table(dict(zip(_TYPES, values, strict=True))))


def differences(
    run: Callable[..., Any], case: Case, names: dict[str, str]
) -> Iterator[tuple[str, Any, Any]]:
    """What was otherwise than expected: the statement, what came, what should have come.

    Args:
        run: `spark.sql` of a session.
        case: The statements.
        names: What stands for the words in braces.
    """
    for line in case.lines:
        text = line.text
        for word, name in names.items():
            text = text.replace(f"{{{word}}}", name)
        found = _result(run, line, text)
        if found != line.expected:
            yield text, found, line.expected


def _result(run: Callable[..., Any], line: Line, text: str) -> Any:
    """The rows of a query, None of a statement, the condition of an error."""
    try:
        frame = run(text) if line.arguments is None else run(text, line.arguments)
        rows = told(frame)
    except Exception as error:  # noqa: BLE001 - any may come, and the caller compares it
        return getattr(error, "kind", None) or _condition(error)
    return rows if line.mark in "?#" else None


def _condition(error: Exception) -> str:
    condition = getattr(error, "getCondition", lambda: None)()
    return condition or f"{type(error).__name__}: {str(error)[:200]}"
