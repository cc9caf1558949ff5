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


def counted(rows: list[Row]) -> Counter[str]:
    """The rows in a form that can be counted: NaN is NaN, and -0.0 is not 0.0."""
    return Counter(repr(sorted(row.items())) for row in rows)


def rank(value: Any) -> tuple[bool, Any]:
    """Spark's order: NaN is the greatest number, and -0.0 equals 0.0."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
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
    parent, child = column.split(".")
    return None if row[parent] is None else row[parent][child.strip("`")]


def leaves(prefix: str = "", wrap: Callable[[Row], Row] = lambda row: row) -> Any:
    """Conditions of one column; with a prefix they name a side of a MERGE."""

    def compared(column: str, op: str, literal: tuple[str, Any]) -> Condition:
        def rule(row: Row) -> bool | None:
            value = value_of(wrap(row), column)
            return None if value is None else _OPERATORS[op](rank(value), rank(literal[1]))

        return Condition(f"{prefix}{column} {op} {literal[0]}", rule)

    def null(column: str) -> Condition:
        return Condition(
            f"{prefix}{column} IS NULL", lambda row: value_of(wrap(row), column) is None
        )

    columns = st.sampled_from(sorted(_LITERALS))
    comparisons = columns.flatmap(
        lambda column: st.builds(
            functools.partial(compared, column),
            st.sampled_from(sorted(_OPERATORS)),
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
