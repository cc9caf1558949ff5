"""Rows as Python values, and what DELETE, UPDATE and MERGE make of them, one row at a time."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

ROW_TYPE = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.int32()),
        ("x.y", pa.float64()),
        ("d", pa.decimal128(38, 4)),
        ("s", pa.string()),
        ("n", pa.struct([("a", pa.int64()), ("b.c", pa.string())])),
    ]
)
BIG = Decimal("1234567890123456789012345678901234.5678")
VALUES = {
    "id": [None, -3, 0, 1, 2, 2**53 + 1, 2**63 - 1],
    "p": [None, -1, 0, 7],
    "x.y": [None, math.nan, -math.inf, -0.0, 0.0, 1.5, math.inf],
    "d": [None, BIG.copy_negate(), Decimal("0.0000"), Decimal("0.0001"), BIG],
    "s": [None, "", "a", "ab", "it's", "é\U0001f600%_"],
    "n": [None, *({"a": a, "b.c": b} for a in (None, 1, 5) for b in (None, "z"))],
}
Row = dict[str, Any]
Rule = Callable[[Row], bool | None]


@dataclass(frozen=True)
class Condition:
    """SQL, and what it says of a row: true, false or null."""

    sql: str
    rule: Rule


def rows_strategy(max_size: int = 8) -> st.SearchStrategy[list[Row]]:
    row = st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in VALUES})
    return st.lists(row, max_size=max_size)


def as_table(rows: list[Row], schema: pa.Schema = ROW_TYPE) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def counted(rows: list[Row], schema: pa.Schema = ROW_TYPE) -> Counter[str]:
    """The rows in a form that can be counted: NaN is NaN, and -0.0 is not 0.0."""
    return Counter(repr(sorted(row.items())) for row in as_table(rows, schema).to_pylist())


def rank(value: Any) -> tuple[bool, Any]:
    """Spark's order: NaN is the greatest number, and -0.0 equals 0.0."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_LITERALS = {
    "id": [("0", 0), ("2", 2), ("9223372036854775807", 2**63 - 1)],
    "p": [("0", 0), ("7", 7)],
    "`x.y`": [("CAST('NaN' AS DOUBLE)", math.nan), ("0.0D", 0.0), ("1.5", 1.5)],
    "d": [("0.0001", Decimal("0.0001")), (str(BIG), BIG)],
    "s": [("''", ""), ("'a'", "a"), ("'é\U0001f600%_'", "é\U0001f600%_")],
    "n.a": [("1", 1), ("5", 5)],
}


def value_of(row: Row, column: str) -> Any:
    name = column.strip("`")
    if name in row:
        return row[name]
    parent, child = column.split(".", 1)
    return None if row[parent] is None else row[parent][child.strip("`")]


def leaves(prefix: str = "", wrap: Callable[[Row], Row] = lambda row: row) -> Any:
    """Conditions of one column; with a prefix they name a side of a MERGE."""

    def compared(column: str, op: str, literal: tuple[str, Any]) -> Condition:
        def rule(row: Row) -> bool | None:
            value = value_of(wrap(row), column)
            return None if value is None else OPERATORS[op](rank(value), rank(literal[1]))

        return Condition(f"{prefix}{column} {op} {literal[0]}", rule)

    def null(column: str) -> Condition:
        return Condition(
            f"{prefix}{column} IS NULL", lambda row: value_of(wrap(row), column) is None
        )

    columns = st.sampled_from(sorted(_LITERALS))
    comparisons = columns.flatmap(
        lambda column: st.builds(
            functools.partial(compared, column),
            st.sampled_from(sorted(OPERATORS)),
            st.sampled_from(_LITERALS[column]),
        )
    )
    return st.one_of(comparisons, comparisons, st.builds(null, columns))


def _and(one: Condition, other: Condition) -> Condition:
    def rule(row: Row) -> bool | None:
        answers = (one.rule(row), other.rule(row))
        return False if False in answers else None if None in answers else True

    return Condition(f"({one.sql}) AND ({other.sql})", rule)


def _or(one: Condition, other: Condition) -> Condition:
    def rule(row: Row) -> bool | None:
        answers = (one.rule(row), other.rule(row))
        return True if True in answers else None if None in answers else False

    return Condition(f"({one.sql}) OR ({other.sql})", rule)


def _not(one: Condition) -> Condition:
    def rule(row: Row) -> bool | None:
        answer = one.rule(row)
        return None if answer is None else not answer

    return Condition(f"NOT ({one.sql})", rule)


def conditions(base: Any = None) -> Any:
    """Conditions with AND, OR and NOT over leaves."""
    leaf = leaves() if base is None else base
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(_and, inner, inner), st.builds(_or, inner, inner), st.builds(_not, inner)
        ),
        max_leaves=4,
    )


def is_true(condition: Condition | None, row: Row) -> bool:
    return condition is None or condition.rule(row) is True


# What UPDATE and MERGE assign


@dataclass(frozen=True)
class Assigned:
    """A new value for a column: what a command is given, and what it is for a row."""

    column: str
    given: Any
    value: Rule


def fitting(low: int, high: int, number: int | None) -> int | None:
    if number is not None and not low <= number <= high:
        raise OverflowError(number)
    return number


LONG = functools.partial(fitting, -(2**63), 2**63 - 1)
INT = functools.partial(fitting, -(2**31), 2**31 - 1)


def _joined(*texts: str | None) -> str | None:
    return None if None in texts else "".join(text for text in texts if text is not None)


def _case(row: Row) -> int | None:
    if row["id"] is not None and row["id"] > 1:
        return 0
    return row["id"] if row["s"] is None else row["p"]


def _either(row: Row) -> int | None:
    if row["p"] is not None:
        return row["p"]
    return INT(None if row["id"] is None else LONG(row["id"] - 1))


def _times(row: Row) -> int | None:
    return None if row["id"] is None else LONG(LONG(row["id"] * 2) - 1)


_CASE = "CASE WHEN id > 1 THEN 0 WHEN s IS NULL THEN id ELSE p END"
ASSIGNMENTS = [
    Assigned("id", 7, lambda row: 7),
    Assigned("ID", "id * 2 - 1", _times),
    Assigned("id", "p", lambda row: row["p"]),
    Assigned("id", _CASE, _case),
    Assigned("p", None, lambda row: None),
    Assigned("p", "id", lambda row: INT(row["id"])),
    Assigned("p", "coalesce(p, id - 1)", _either),
    Assigned("p", pa.scalar(3, pa.int8()), lambda row: 3),
    Assigned("`x.y`", math.nan, lambda row: math.nan),
    Assigned("`x.y`", "p", lambda row: None if row["p"] is None else float(row["p"])),
    Assigned("`x.y`", "id", lambda row: None if row["id"] is None else float(row["id"])),
    Assigned("`x.y`", "-1.25", lambda row: -1.25),
    Assigned("d", Decimal("2.5"), lambda row: Decimal("2.5")),
    Assigned("d", "id", lambda row: None if row["id"] is None else Decimal(row["id"])),
    Assigned("d", str(BIG), lambda row: BIG),
    Assigned("s", "concat(s, '!', n.`b.c`)", lambda row: _joined(row["s"], "!", text_of(row))),
    Assigned("s", "s || '?'", lambda row: _joined(row["s"], "?")),
    Assigned("s", "id", lambda row: None if row["id"] is None else str(row["id"])),
    Assigned("s", '"it\'s"', lambda row: "it's"),
    Assigned("n.a", "id", lambda row: row["id"]),
    Assigned("n.`b.c`", "if(n.a = 1, s, NULL)", lambda row: row["s"] if a_of(row) == 1 else None),
    Assigned("n", "NULL", lambda row: None),
]


def a_of(row: Row) -> int | None:
    return value_of(row, "n.a")


def text_of(row: Row) -> str | None:
    return None if row["n"] is None else row["n"]["b.c"]


def assignments() -> st.SearchStrategy[list[Assigned]]:
    """One to three assignments, none of which touches what another does."""
    several = st.lists(st.sampled_from(ASSIGNMENTS), min_size=1, max_size=3)
    return several.map(lambda items: list({top_of(item): item for item in items}.values()))


def top_of(item: Assigned) -> str:
    name = item.column.lower().strip("`")
    return name if name in VALUES else name.split(".")[0]


def updated(row: Row, items: list[Assigned]) -> Row:
    new = dict(row)
    for item in items:
        value, top = item.value(row), top_of(item)
        if item.column.lower().strip("`") == top:
            new[top] = value
        else:
            field = item.column.split(".", 1)[1].strip("`")
            new[top] = {"a": None, "b.c": None, **(row[top] or {}), field: value}
    return new
