"""Predicates as frozen trees: the reads of a transaction, and the pruning of files (spec 1.3, 9.4).

The nodes cover the comparisons whose meaning this engine knows exactly. Everything else (functions,
arithmetic, subqueries) is an `Opaque` leaf: its columns are known, its value is not, and it never
prunes (spec 9.5). Comparisons follow SQL's three-valued logic with Spark's order of values: NaN
equals NaN and is greater than every other number; -0.0 equals 0.0.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, NoReturn, TypeAlias
from typing import Literal as OneOf

from optimist.core.errors.foreign_text import quoted
from optimist.core.predicates.misuse import no_predicate, no_truth_value
from optimist.core.predicates.text import like_pattern, quote_literal, quote_path, sql_type
from optimist.core.values.unicode_text import ensure_unicode

__all__ = [
    "FLIPPED",
    "INVERTED",
    "And",
    "BooleanLiteral",
    "CastComparison",
    "Column",
    "Comparison",
    "ComparisonOp",
    "In",
    "IsNull",
    "IsTrue",
    "Like",
    "Literal",
    "LiteralKind",
    "Not",
    "NullSafeEqual",
    "Opaque",
    "Operand",
    "Or",
    "Predicate",
    "StartsWith",
]

_SHOWN = 180

ComparisonOp: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">="]
LiteralKind: TypeAlias = OneOf[
    "null",
    "boolean",
    "integer",
    "decimal",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]
ColumnPath: TypeAlias = tuple[str, ...]

INVERTED: dict[ComparisonOp, ComparisonOp] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
"""`NOT (a op b)` is `a INVERTED[op] b`, in three-valued logic too, because the order is total."""
FLIPPED: dict[ComparisonOp, ComparisonOp] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
}
"""`a op b` is `b FLIPPED[op] a`."""

_NAN = math.nan


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a struct field, by its path of names as written."""

    path: ColumnPath

    def __post_init__(self) -> None:
        for name in self.path:
            ensure_unicode(name)

    def __str__(self) -> str:
        return quote_path(self.path)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant.

    `value` is None, bool, int, Decimal, float, str, bytes, date or datetime, as `kind` says. A
    `timestamp` with a zone is an instant. One without a zone is read in the session's zone. Text
    must hold no half characters, which UTF-8 can't encode.
    """

    value: bool | int | Decimal | float | str | bytes | dt.date | dt.datetime | None
    kind: LiteralKind

    def __post_init__(self) -> None:
        # One NaN object, so that equal trees compare equal.
        if isinstance(self.value, float) and math.isnan(self.value):
            object.__setattr__(self, "value", _NAN)
        if isinstance(self.value, str):
            ensure_unicode(self.value)

    def __str__(self) -> str:
        return quote_literal(self.value, self.kind)


Operand: TypeAlias = Column | Literal


class Predicate:
    """A condition on rows, and the base of all nodes. Values are frozen and may be shared.

    Build one with `Predicate.parse("month = 1 AND delay > 60")` or with `col("month") == 1`.
    Combine them with `&`, `|` and `~`. `str(predicate)` is SQL that parses back to an equal tree.
    """

    __slots__ = ()

    TRUE: ClassVar[Predicate]
    """Matches every row."""
    FALSE: ClassVar[Predicate]
    """Matches no row."""

    @staticmethod
    def parse(sql: str) -> Predicate:
        """Parse the text of a WHERE clause in Spark's dialect.

        Raises:
            UsageError: The text is not a predicate (kind `OPTIMIST_INVALID_PREDICATE`; fields
                `predicate`, and, if the position is known, `line` and `column`, counted from 1), or
                holds half a character (kind `OPTIMIST_INVALID_TEXT`).
        """
        # The import is here, because the parser imports this module's nodes.
        from optimist.core.predicates.parsing import parse_predicate

        return parse_predicate(sql)

    @staticmethod
    def of(given: object, argument: str = "predicate") -> Predicate:
        """Return the predicate that a caller gave, as a predicate or as SQL text.

        Args:
            given: The caller's value.
            argument: The name of the caller's argument, for the error.

        Raises:
            ArgumentTypeError: The value is neither (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
                Python's own `is`, `not` and `==` between predicates give such a value.
            UsageError: As `parse`.
        """
        if isinstance(given, str):
            return Predicate.parse(given)
        if not isinstance(given, Predicate):
            raise no_predicate(given, f"The argument {argument}", argument)
        return given

    def __and__(self, other: Predicate) -> Predicate:
        return And((*_parts(self, And), *_parts(_operand_of("&", other), And)))

    def __rand__(self, other: object) -> NoReturn:
        raise no_predicate(other, "An operand of &", "other")

    def __or__(self, other: Predicate) -> Predicate:
        return Or((*_parts(self, Or), *_parts(_operand_of("|", other), Or)))

    def __ror__(self, other: object) -> NoReturn:
        raise no_predicate(other, "An operand of |", "other")

    def __invert__(self) -> Predicate:
        return Not(self)

    def __repr__(self) -> str:
        return f"Predicate({quoted(str(self), _SHOWN)})"

    def __bool__(self) -> NoReturn:
        # `a and b` asks for the truth of `a`, and would be `b` alone. So does `1 < col < 5`.
        raise no_truth_value(str(self))

    def __contains__(self, item: object) -> NoReturn:
        raise no_truth_value(str(self))

    def children(self) -> tuple[Predicate, ...]:
        """Return the predicates directly below this one."""
        return ()

    def own_columns(self) -> frozenset[ColumnPath]:
        """Return the columns that this node itself names, without those of its children."""
        return frozenset()

    def columns(self) -> frozenset[ColumnPath]:
        """Return the paths of all columns that the predicate names, as written."""
        return frozenset(path for node in self.walk() for path in node.own_columns())

    def walk(self) -> Iterator[Predicate]:
        """Yield this node and all nodes below it."""
        pending: list[Predicate] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children())

    @property
    def is_exact(self) -> bool:
        """Whether every part has a known meaning, so that no leaf is opaque."""
        return not any(isinstance(node, Opaque) for node in self.walk())

    @property
    def is_deterministic(self) -> bool:
        """Whether equal rows always get equal answers. With an unknown function, it is False."""
        return all(node.deterministic for node in self.walk() if isinstance(node, Opaque))

    def conjuncts(self) -> tuple[Predicate, ...]:
        """Return the predicates that this one joins by AND, itself without AND, none for TRUE."""
        if self == Predicate.TRUE:
            return ()
        return self.children() if isinstance(self, And) else (self,)


def _operand_of(operator: str, other: object) -> Predicate:
    if not isinstance(other, Predicate):
        raise no_predicate(other, f"An operand of {operator}", "other")
    return other


def _parts(predicate: Predicate, connective: type[And] | type[Or]) -> tuple[Predicate, ...]:
    return predicate.children() if isinstance(predicate, connective) else (predicate,)


def _operand_columns(*operands: Operand) -> frozenset[ColumnPath]:
    return frozenset(operand.path for operand in operands if isinstance(operand, Column))


@dataclass(frozen=True, slots=True, repr=False)
class BooleanLiteral(Predicate):
    """TRUE, FALSE, or NULL (None)."""

    value: bool | None

    def __str__(self) -> str:
        return "NULL" if self.value is None else str(self.value).upper()


Predicate.TRUE = BooleanLiteral(True)
Predicate.FALSE = BooleanLiteral(False)


@dataclass(frozen=True, slots=True, repr=False)
class And(Predicate):
    """All parts hold. Build it with `&`, which keeps nested ANDs flat."""

    parts: tuple[Predicate, ...]

    def children(self) -> tuple[Predicate, ...]:
        """See `Predicate.children`."""
        return self.parts

    def __str__(self) -> str:
        return " AND ".join(_in_parentheses(part, And, Or) for part in self.parts)


@dataclass(frozen=True, slots=True, repr=False)
class Or(Predicate):
    """At least one part holds. Build it with `|`, which keeps nested ORs flat."""

    parts: tuple[Predicate, ...]

    def children(self) -> tuple[Predicate, ...]:
        """See `Predicate.children`."""
        return self.parts

    def __str__(self) -> str:
        return " OR ".join(_in_parentheses(part, And, Or) for part in self.parts)


@dataclass(frozen=True, slots=True, repr=False)
class Not(Predicate):
    """The negation of the child; null stays null."""

    child: Predicate

    def children(self) -> tuple[Predicate, ...]:
        """See `Predicate.children`."""
        return (self.child,)

    def __str__(self) -> str:
        return f"NOT ({self.child})"


@dataclass(frozen=True, slots=True, repr=False)
class IsTrue(Predicate):
    """`child <=> TRUE`: false where the child is null."""

    child: Predicate

    def children(self) -> tuple[Predicate, ...]:
        """See `Predicate.children`."""
        return (self.child,)

    def __str__(self) -> str:
        return f"({self.child}) IS TRUE"


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Predicate):
    """`left op right`, with a literal always on the right."""

    op: ComparisonOp
    left: Column
    right: Operand

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.left, self.right)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True, repr=False)
class CastComparison(Predicate):
    """`CAST(column AS target) op right`. `casts.without_cast` removes the cast if it can.

    Attributes:
        target: One of Delta's type names. A decimal's name has precision and scale.
        is_try: Whether it is `TRY_CAST`, which is null where `CAST` fails.
    """

    op: ComparisonOp
    column: Column
    target: str
    right: Literal
    is_try: bool = False

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.column)

    def __str__(self) -> str:
        name = "TRY_CAST" if self.is_try else "CAST"
        return f"{name}({self.column} AS {sql_type(self.target)}) {self.op} {self.right}"


@dataclass(frozen=True, slots=True, repr=False)
class NullSafeEqual(Predicate):
    """`left <=> right`: never null, and null equals null."""

    left: Column
    right: Operand

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.left, self.right)

    def __str__(self) -> str:
        return f"{self.left} <=> {self.right}"


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(Predicate):
    """`column IS NULL`."""

    column: Column

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.column)

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True, slots=True, repr=False)
class In(Predicate):
    """`column IN (values)`, with at least one value. Values may be null."""

    column: Column
    values: tuple[Literal, ...]

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.column)

    def __str__(self) -> str:
        return f"{self.column} IN ({', '.join(str(value) for value in self.values)})"


@dataclass(frozen=True, slots=True, repr=False)
class StartsWith(Predicate):
    """`startswith(column, prefix)`."""

    column: Column
    prefix: str

    def __post_init__(self) -> None:
        ensure_unicode(self.prefix)

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.column)

    def __str__(self) -> str:
        return f"startswith({self.column}, {quote_literal(self.prefix, 'string')})"


@dataclass(frozen=True, slots=True, repr=False)
class Like(Predicate):
    """`column LIKE pattern`, where `%` matches any run of characters and `_` any one character.

    Attributes:
        parts: Literal pieces as `(False, text)` and wildcards as `(True, "%")` or `(True, "_")`.
    """

    column: Column
    parts: tuple[tuple[bool, str], ...]

    def __post_init__(self) -> None:
        for _, text in self.parts:
            ensure_unicode(text)

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return _operand_columns(self.column)

    def __str__(self) -> str:
        return f"{self.column} LIKE {quote_literal(like_pattern(self.parts), 'string')}"


@dataclass(frozen=True, slots=True, repr=False)
class Opaque(Predicate):
    """A condition without a node of its own: it never prunes, and may hold for any row.

    Attributes:
        sql: Its SQL text.
        paths: The columns that it names.
        deterministic: Whether equal rows always get equal answers.
        is_own_text: Whether this engine parsed the text, so that its table of functions may compute
            the condition. Spark's conditions are never read a second time.
    """

    sql: str
    paths: frozenset[ColumnPath]
    deterministic: bool
    is_own_text: bool = field(default=False, compare=False)

    def own_columns(self) -> frozenset[ColumnPath]:
        """See `Predicate.own_columns`."""
        return self.paths

    def __str__(self) -> str:
        return f"({self.sql})"


def _in_parentheses(predicate: Predicate, *kinds: type[Predicate]) -> str:
    return f"({predicate})" if isinstance(predicate, kinds) else str(predicate)
