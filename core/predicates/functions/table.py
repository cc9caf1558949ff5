"""The table of functions and operators that this engine computes exactly as Spark does.

Each has one meaning, that of Spark in ANSI mode. docs/functions.md has the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import pyarrow.compute as pc

from optimist.core.predicates.functions import (
    arithmetic,
    choices,
    comparisons,
    dates,
    rounding,
    texts,
)
from optimist.core.predicates.functions.value import Arguments, Value

__all__ = ["FUNCTIONS", "Function", "call", "find"]

Build: TypeAlias = Callable[[Arguments], Value | None]
_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Function:
    """One function or operator.

    Attributes:
        names: Its names; operators are in capitals.
        takes: The arguments that it takes, for the documentation.
        gives: The type of its result, for the documentation.
        build: Returns its value for some arguments, or None for types that it does not take.
        counts: The fewest and the most arguments.
        takes_chars: Whether `char(n)` and text with a collation have no other meaning in it.
    """

    names: tuple[str, ...]
    takes: str
    gives: str
    build: Build
    counts: tuple[int, int]
    takes_chars: bool = False


_ANY, _NUMBERS, _WHOLE = "any type", "numbers", "integers, decimals"
_WIDER, _BOOLEAN = "the common type", "boolean"
_TABLE: tuple[Function, ...] = (
    Function(("+",), "two numbers", _WIDER, arithmetic.added, (2, 2)),
    Function(("-",), "two numbers", _WIDER, arithmetic.subtracted, (2, 2)),
    Function(("*",), "two numbers", _WIDER, arithmetic.multiplied, (2, 2)),
    Function(("/",), "two numbers", "double, decimal", arithmetic.divided, (2, 2)),
    Function(("DIV", "div"), "two integers", "bigint", arithmetic.divided_whole, (2, 2)),
    Function(("%", "mod"), "two integers, two doubles", _WIDER, arithmetic.remainder, (2, 2)),
    Function(("pmod",), "two integers, two doubles", _WIDER, arithmetic.pmod, (2, 2)),
    Function(("-x", "negative"), "a number", "its type", arithmetic.negated, (1, 1)),
    Function(("+x", "positive"), "a number", "its type", arithmetic.positive, (1, 1)),
    Function(("abs",), "a number", "its type", arithmetic.absolute, (1, 1)),
    Function(("sign", "signum"), "a number", "double", arithmetic.sign, (1, 1)),
    Function(("ceil", "ceiling"), "a number", "bigint, decimal", rounding.ceil, (1, 1)),
    Function(("floor",), "a number", "bigint, decimal", rounding.floor, (1, 1)),
    Function(("round",), f"{_WHOLE}; digits >= 0", "its type", rounding.rounded, (1, 2)),
    Function(("bround",), f"{_WHOLE}; digits >= 0", "its type", rounding.bround, (1, 2)),
    *(
        Function(
            (op,), "two values of one type", _BOOLEAN, partial(comparisons.compared, op), (2, 2)
        )
        for op in comparisons.KERNELS
    ),
    Function(
        ("<=>", "equal_null"),
        "two values of one type",
        _BOOLEAN,
        comparisons.equal_null_safe,
        (2, 2),
    ),
    Function(("IN",), "values of one type", _BOOLEAN, comparisons.is_in, (2, _MANY)),
    Function(("IS NULL", "isnull"), _ANY, _BOOLEAN, comparisons.is_null, (1, 1), True),
    Function(("greatest",), "values of one type", _WIDER, comparisons.greatest, (2, _MANY)),
    Function(("least",), "values of one type", _WIDER, comparisons.least, (2, _MANY)),
    Function(("AND",), "booleans", _BOOLEAN, choices.conjunction, (2, _MANY)),
    Function(("OR",), "booleans", _BOOLEAN, choices.disjunction, (2, _MANY)),
    Function(("NOT",), "a boolean", _BOOLEAN, choices.not_, (1, 1)),
    Function(("coalesce",), "values of one type", _WIDER, choices.coalesce, (1, _MANY), True),
    Function(("nvl", "ifnull"), "two values of one type", _WIDER, choices.coalesce, (2, 2), True),
    Function(("nvl2",), "any type; two values of one type", _WIDER, choices.nvl2, (3, 3), True),
    Function(("nullif",), "two values of one type", "the first type", choices.nullif, (2, 2)),
    Function(("concat", "||"), "texts", "string", texts.concat, (1, _MANY), True),
    Function(("to_date",), "a date", "date", dates.to_date, (1, 1)),
    *(
        Function(names, "a date", "int", partial(dates.day_part, kernel), (1, 1))
        for names, kernel in (
            (("year",), pc.year),
            (("month",), pc.month),
            (("day", "dayofmonth"), pc.day),
        )
    ),
)


def _by_name() -> Mapping[str, Function]:
    return MappingProxyType({name: item for item in _TABLE for name in item.names})


FUNCTIONS = _by_name()
"""The functions by each of their names."""


def find(name: str) -> Function | None:
    """Return the function of a name, or None if only Spark computes it."""
    return FUNCTIONS.get(name)


def call(name: str, given: Arguments) -> Value | None:
    """Return the value of a call, or None if only Spark knows it for these arguments."""
    function = FUNCTIONS.get(name)
    if function is None or not function.counts[0] <= len(given.values) <= function.counts[1]:
        return None
    if not function.takes_chars and not all(value.is_plain for value in given.values):
        return None
    return function.build(given)
