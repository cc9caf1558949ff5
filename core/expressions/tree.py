"""Expressions of Spark's SQL as frozen trees, by their text only: nothing is resolved.

Parentheses have no node. Operators with several spellings have one name each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from optimist.core.expressions.types import SqlType

__all__ = [
    "ARITHMETIC",
    "Call",
    "Case",
    "Cast",
    "Constant",
    "Expression",
    "Extracted",
    "Field",
    "Interval",
    "Lambda",
    "Name",
    "Number",
    "Operation",
    "Parameter",
    "Subquery",
    "Subscript",
    "Text",
    "Typed",
    "Unit",
    "walk",
]

ARITHMETIC = frozenset(
    (
        "+",
        "-",
        "*",
        "/",
        "%",
        "DIV",
        "||",
        "&",
        "|",
        "^",
        "<<",
        ">>",
        ">>>",
        "-x",
        "+x",
        "~x",
        "ROW",
    )
)
"""The operators whose values are not boolean. All others have boolean values."""
NumberKind: TypeAlias = Literal["integer", "decimal", "double", "float", "byte", "short", "long"]


@dataclass(frozen=True, slots=True)
class Expression:
    """A part of a text, and the base of all nodes.

    Attributes:
        start: The index of its start in the text, with the parentheses around it.
        end: The index after its end.
    """

    start: int = field(compare=False, kw_only=True)
    end: int = field(compare=False, kw_only=True)

    def children(self) -> Iterator[Expression]:
        """Yield the parts directly below this one, in the order of the text."""
        for item in fields(self):
            value = getattr(self, item.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Expression):
                    yield part


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A column, a field of a struct, or the variable of a lambda, as names with dots.

    Attributes:
        path: The names.
        is_call: Whether Spark calls a function of this name if there is no such column:
            `current_date`, without parentheses and back-ticks.
    """

    path: tuple[str, ...]
    is_call: bool = False


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """TRUE, FALSE, or NULL (None)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A number: sign, digits, point and exponent without suffix, and the type Spark gives it."""

    text: str
    kind: NumberKind


@dataclass(frozen=True, slots=True)
class Text(Expression):
    """The value of a text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Typed(Expression):
    """`DATE '2024-01-01'`, `X'0A'`: the name of a type, in capitals, and a text in quotes."""

    type_name: str
    text: str


@dataclass(frozen=True, slots=True)
class Interval(Expression):
    """`INTERVAL '1' DAY`, `INTERVAL 1 YEAR 2 MONTHS`, `INTERVAL '1:2' HOUR TO MINUTE`.

    It has months or times, never both.

    Attributes:
        months: Its months; None if it has times, or if its form is a rare one.
        micros: Its microseconds; None if it has months, or if its form is a rare one.
        is_of_days: Whether it has only weeks and days.
    """

    months: int | None = None
    micros: int | None = None
    is_of_days: bool = False


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """`:name` or `?`."""


@dataclass(frozen=True, slots=True)
class Subquery(Expression):
    """A query in parentheses, `(SELECT ...)`, whose content is not read."""


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """An operator and its operands, in the order of the text.

    Attributes:
        operator: The operator in capitals. `=` also stands for `==`, `<>` for `!=`, and `NOT` for
            `!`. Predicates behind an operand are `IS NULL`, `IS TRUE`, `IS FALSE`, `IS UNKNOWN`,
            `IS DISTINCT FROM`, `IN`, `BETWEEN`, `RLIKE`, `LIKE`, `ILIKE`, and `LIKE ANY` and
            similar ones. If NOT precedes them, the operation is the operand of a `NOT`.
        operands: The operands. For LIKE with an escape, the escape comes last.
    """

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """`CAST(value AS type)`, `value::type` and, with `is_try`, `TRY_CAST(value AS type)`."""

    value: Expression
    target: SqlType
    is_try: bool = False


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """`CASE [value] WHEN ... THEN ... [ELSE default] END`.

    Branches are conditions and results.
    """

    value: Expression | None
    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Unit(Expression):
    """A keyword that is an argument of a call: DAY in `timestampadd(DAY, 1, t)`, in capitals."""

    word: str


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A call of a function.

    Attributes:
        name: The name in lower case. `substring(a FROM b)`, `trim(BOTH a FROM b)`, `overlay(...)`,
            `position(a IN b)` and `extract(...)` are calls, too.
        arguments: The arguments; for arguments with a name (`f(a => 1)`), their values.
        is_plain: Whether it consists of arguments separated by commas, without names.
        qualifiers: The names before the function's name.
    """

    name: str
    arguments: tuple[Expression, ...]
    is_plain: bool = True
    qualifiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    """`x -> body`, `(x, y) -> body`."""

    variables: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Field(Expression):
    """`base.name`, if the base is not itself a name."""

    base: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """`base[index]`."""

    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Extracted(Expression):
    """`base:path`, a part of a variant or of JSON."""

    base: Expression


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all its parts, each part before those within it."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(node.children())))
