"""Turns conditions of any form into predicates, by one table of operators.

SQL text, Catalyst's trees, messages of Spark Connect and filters of Python data sources differ in
how they spell an operator and where its operands are. The front end of each form, a `Translation`,
deals with that; what an operator means is the same for all of them and is defined here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import and_, or_
from typing import Generic, NamedTuple, TypeAlias, TypeVar
from typing import Literal as OneOf

from optimist.core.predicates.text import like_parts
from optimist.core.predicates.tree import (
    FLIPPED,
    BooleanLiteral,
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    NullSafeEqual,
    Opaque,
    Predicate,
    StartsWith,
)

__all__ = ["Operation", "Operator", "Translation"]

Operator: TypeAlias = OneOf[
    "AND",
    "OR",
    "NOT",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "IN",
    "BETWEEN",
    "IS NULL",
    "IS NOT NULL",
    "IS TRUE",
    "IS FALSE",
    "STARTS WITH",
    "ENDS WITH",
    "CONTAINS",
    "LIKE",
]
Term = TypeVar("Term")
Operation: TypeAlias = tuple[Operator, Sequence[Term]]


class Translation(ABC, Generic[Term]):
    """Translates conditions of one form to predicates; a `Term` is a condition or an operand."""

    __slots__ = ()

    @abstractmethod
    def operation(self, term: Term) -> Operation[Term] | None:
        """A condition as an operator and its operands; None if it is not one of the operators.

        `IN` has the value before its list; `LIKE` may have its escape as a third operand.
        """

    @abstractmethod
    def column(self, term: Term) -> Column | None:
        """The column or struct field that a term is, or None if it is something else."""

    @abstractmethod
    def literal(self, term: Term) -> Literal | None:
        """The constant that a term is; None if it is not one, or its value is not beyond doubt."""

    @abstractmethod
    def opaque(self, term: Term) -> Opaque:
        """The opaque leaf that stands for a condition that is not understood."""

    def converted(
        self, op: ComparisonOp, term: Term, values: Sequence[Literal]
    ) -> Predicate | None:
        """`term op value`, true for any of the values, if the term is a cast of a column.

        None if it is not one, or can't be translated.
        """
        del op, term, values  # most forms have none that can be undone
        return None

    def predicate(self, term: Term) -> Predicate:
        """The predicate that a condition means; parts of it may be opaque."""
        return self.applied(term, self.operation(term))

    def applied(self, term: Term, operation: Operation[Term] | None) -> Predicate:
        """As `predicate`, for a term whose `operation` the caller has already found."""
        found = _truth(self, term) if operation is None else _of_row(self, *operation)
        return self.opaque(term) if found is None else found


def _of_row(
    form: Translation[Term], operator: Operator, operands: Sequence[Term]
) -> Predicate | None:
    row = _ROWS[operator]
    if not row.fewest <= len(operands) <= row.most:
        return None
    return row.rule(form, *operands)


def _truth(form: Translation[Term], term: Term) -> Predicate | None:
    """The predicate of a bare TRUE, FALSE, NULL or boolean column; None for another term."""
    constant = form.literal(term)
    if constant is None:
        column = form.column(term)
        return None if column is None else Comparison("=", column, Literal(True, "boolean"))
    value = constant.value
    return BooleanLiteral(value) if value is None or isinstance(value, bool) else None


def _connected(
    operator: Operator,
    combine: Callable[[Predicate, Predicate], Predicate],
    form: Translation[Term],
    *operands: Term,
) -> Predicate:
    # A chain of a thousand ORs is nested a thousand deep, so walk it and do not recurse.
    pending, parts = list(reversed(operands)), []
    while pending:
        term = pending.pop()
        operation = form.operation(term)
        if operation is not None and operation[0] == operator:
            pending += reversed(operation[1])
        else:
            parts.append(form.applied(term, operation))
    return reduce(combine, parts)


def _compared(
    op: ComparisonOp, form: Translation[Term], left: Term, right: Term
) -> Predicate | None:
    value, first = form.literal(right), form.literal(left)
    if first is not None and value is not None:
        return _folded(op, first, value)
    if first is not None:
        left, right, value, op = right, left, first, FLIPPED[op]
    column = form.column(left)
    if column is not None:
        other = value if value is not None else form.column(right)
        return None if other is None else Comparison(op, column, other)
    if value is None:
        return None
    converted = form.converted(op, left, (value,))
    return _compared_with_truth(op, form, left, value) if converted is None else converted


def _folded(op: ComparisonOp, left: Literal, right: Literal) -> Predicate | None:
    """The value of a comparison of two constants, such as `1 = 1`, which people write for TRUE."""
    if left.value is None or right.value is None:
        return BooleanLiteral(None)
    if left.kind != right.kind or op not in ("=", "<>"):
        return None
    if left.kind not in ("integer", "string", "boolean"):
        return None
    return BooleanLiteral((left.value == right.value) == (op == "="))


def _compared_with_truth(
    op: ComparisonOp, form: Translation[Term], condition: Term, truth: Literal
) -> Predicate | None:
    """The predicate of `(condition) = true`, `(condition) <> false` and the like."""
    operation = form.operation(condition)
    if operation is None or op not in ("=", "<>") or not isinstance(truth.value, bool):
        return None
    found = form.applied(condition, operation)
    return found if truth.value == (op == "=") else ~found


def _equal_null_safe(form: Translation[Term], left: Term, right: Term) -> Predicate | None:
    if form.literal(left) is not None:
        left, right = right, left
    column, value = form.column(left), form.literal(right)
    if column is not None:
        other = value if value is not None else form.column(right)
        return None if other is None else NullSafeEqual(column, other)
    operation = form.operation(left)
    if operation is None or value is None or not isinstance(value.value, bool):
        return None
    condition = form.applied(left, operation)
    return IsTrue(condition if value.value else ~condition)


def _among(form: Translation[Term], term: Term, *listed: Term) -> Predicate | None:
    literals = [form.literal(item) for item in listed]
    known = tuple(item for item in literals if item is not None)
    if len(known) < len(literals):
        return None
    column = form.column(term)
    return form.converted("=", term, known) if column is None else In(column, known)


def _between(form: Translation[Term], term: Term, low: Term, high: Term) -> Predicate | None:
    least, most = _compared(">=", form, term, low), _compared("<=", form, term, high)
    return None if least is None or most is None else least & most


def _is_null(form: Translation[Term], term: Term) -> Predicate | None:
    column = form.column(term)
    return None if column is None else IsNull(column)


def _is_not_null(form: Translation[Term], term: Term) -> Predicate | None:
    column = form.column(term)
    return None if column is None else ~IsNull(column)


def _tested(
    build: Callable[[Column, str], Predicate], form: Translation[Term], term: Term, text: Term
) -> Predicate | None:
    column, constant = form.column(term), form.literal(text)
    if column is None or constant is None or not isinstance(constant.value, str):
        return None
    return build(column, constant.value)


def _ends_with(column: Column, text: str) -> Predicate:
    return Like(column, ((True, "%"), *(((False, text),) if text else ())))


def _contains(column: Column, text: str) -> Predicate:
    return Like(column, ((True, "%"), *(((False, text), (True, "%")) if text else ())))


def _like(
    form: Translation[Term], term: Term, pattern: Term, escape: Term | None = None
) -> Predicate | None:
    column, text = form.column(term), form.literal(pattern)
    mark = Literal("\\", "string") if escape is None else form.literal(escape)
    if column is None or text is None or mark is None:
        return None
    if not isinstance(text.value, str) or not isinstance(mark.value, str) or not mark.value:
        return None
    parts = like_parts(text.value, mark.value)
    return None if parts is None else Like(column, parts)


class _Row(NamedTuple):
    """An operator's rule, which gives None if it can't tell, and how many operands it takes."""

    rule: Callable[..., Predicate | None]
    fewest: int
    most: int


_MANY = 1_000_000_000
_ROWS: dict[Operator, _Row] = {
    "AND": _Row(partial(_connected, "AND", and_), 1, _MANY),
    "OR": _Row(partial(_connected, "OR", or_), 1, _MANY),
    "NOT": _Row(lambda form, term: ~form.predicate(term), 1, 1),
    "=": _Row(partial(_compared, "="), 2, 2),
    "<>": _Row(partial(_compared, "<>"), 2, 2),
    "<": _Row(partial(_compared, "<"), 2, 2),
    "<=": _Row(partial(_compared, "<="), 2, 2),
    ">": _Row(partial(_compared, ">"), 2, 2),
    ">=": _Row(partial(_compared, ">="), 2, 2),
    "<=>": _Row(_equal_null_safe, 2, 2),
    "IN": _Row(_among, 2, _MANY),
    "BETWEEN": _Row(_between, 3, 3),
    "IS NULL": _Row(_is_null, 1, 1),
    "IS NOT NULL": _Row(_is_not_null, 1, 1),
    "IS TRUE": _Row(lambda form, term: IsTrue(form.predicate(term)), 1, 1),
    "IS FALSE": _Row(lambda form, term: IsTrue(~form.predicate(term)), 1, 1),
    "STARTS WITH": _Row(partial(_tested, StartsWith), 2, 2),
    "ENDS WITH": _Row(partial(_tested, _ends_with), 2, 2),
    "CONTAINS": _Row(partial(_tested, _contains), 2, 2),
    "LIKE": _Row(_like, 2, 3),
}
