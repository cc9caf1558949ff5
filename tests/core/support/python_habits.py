"""Expressions that Python users write over `col`, with what Python would make of them for a row.

Each is a text that is evaluated twice: over `col`, and for each row over the row's values. Where
both have an answer, it must be the same.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from optimist.core import Predicate, col
from optimist.core.predicates import evaluate

ROWS = [
    {"id": 1, "name": "a", "flag": True},
    {"id": 2, "name": "b", "flag": False},
    {"id": 3, "name": "ab", "flag": True},
    {"id": 4, "name": "b", "flag": True},
]
TABLE = pa.Table.from_pylist(ROWS)
VALUES = {name: TABLE.column(name) for name in TABLE.column_names}

PARTS = (
    "(c('id') == 1)",
    "(c('name') == 'b')",
    "(c('id') < 4)",
    "(c('flag') == True)",
    "c('id')",
    "c('name')",
    "c('flag')",
    "(2)",
    "np.int64(2)",
    "np.float32(2)",
    "(0)",
    "'ab'",
    "''",
    "None",
    "True",
    "False",
    "[1, 2]",
    "()",
)
PAIRS = (
    "{} and {}",
    "{} or {}",
    "{} & {}",
    "{} | {}",
    "{} == {}",
    "{} != {}",
    "{} < {}",
    "{} in {}",
    "{} not in {}",
    "{} is {}",
    "{} is not {}",
    "not {} or {}",
    "{} and not {}",
    "inverted({}) | {}",
    "any([{}, {}])",
    "all([{}, {}])",
    "max({}, {}) == 2",
    "{}.isin({})",
    "{}.isin([{}])",
    "{}.startswith({})",
    "{}.like({})",
)
TRIPLES = (
    "{} < {} < {}",
    "{} == {} == {}",
    "{} if {} else {}",
    "{} == {} & {}",
    "{}.between({}, {})",
    "{} and {} or {}",
)


class _Text(str):
    __slots__ = ()

    def isin(self, values: Any) -> bool:
        return self in values


class _Number(int):
    def isin(self, values: Any) -> bool:
        return self in values

    def between(self, low: int, high: int) -> bool:
        return low <= self <= high


def expressions() -> Iterator[str]:
    """All texts, in an order that does not change."""
    for form in PAIRS:
        for parts in itertools.product(PARTS, repeat=2):
            yield form.format(*parts)
    for form in TRIPLES:
        for parts in itertools.product(PARTS, repeat=3):
            yield form.format(*parts)


def chosen_by_builder(text: str) -> list[int] | None:
    """The numbers of the rows that the predicate chooses; None where there is an error."""
    try:
        given = _value(text, {"c": col, "np": np, "inverted": operator.invert})
        mask = evaluate(Predicate.of(given), VALUES)
        if mask is None:  # only Spark knows
            return None
    except (TypeError, ValueError, AttributeError):
        return None
    return [number for number, matches in enumerate(mask.to_pylist()) if matches]


def chosen_by_python(text: str) -> list[int] | None:
    """The numbers of the rows for which Python finds it true; None where Python has no answer."""
    try:
        return [number for number, row in enumerate(ROWS) if _is_true(text, row)]
    except (TypeError, ValueError, AttributeError):
        return None


def _is_true(text: str, row: dict[str, Any]) -> bool:
    names = {"c": lambda name: _wrapped(row[name]), "np": np, "inverted": operator.not_}
    return bool(_value(text, names))


def _value(text: str, names: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `is` with a constant
        return eval(text, names)


def _wrapped(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return _Text(value) if isinstance(value, str) else _Number(value)
