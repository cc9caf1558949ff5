"""Translation of conditions of any form into predicates, by one table of operators.

SQL text, Catalyst's trees, messages of Spark Connect and filters of Python data sources differ in
how they spell an operator and where its operands are. The front end of each form, a `Translation`,
knows that. All forms share the meaning of an operator, which this module defines once.
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
    """The translation of one form of conditions to predicates. A `Term` is one, or an operand."""

    __slots__ = ()

    @abstractmethod
    def operation(self, term: Term) -> Operation[Term] | None:
        """Return a condition's operator and operands, or None for another operator.

        `IN` has the value before its list. `LIKE` may have its escape as a third operand.
        """

    @abstractmethod
    def column(self, term: Term) -> Column | None:
        """Return the column or struct field that a term is, or None."""

    @abstractmethod
    def literal(self, term: Term) -> Literal | None:
        """Return the constant that a term is, or None for others and in doubt."""

    @abstractmethod
    def opaque(self, term: Term) -> Opaque:
        """Return the opaque leaf for a condition without a known meaning."""

    def converted(
        self, op: ComparisonOp, term: Term, values: Sequence[Literal]
    ) -> Predicate | None:
        """Translate `term op value`, true for any of the values, if the term casts a column.

        Return None if it does not, or if the cast has no translation.
        """
        del op, term, values  # most forms have no cast that can be undone
        return None

    def predicate(self, term: Term) -> Predicate:
        """Return the predicate of a condition. Parts of it may be opaque."""
        return self.applied(term, self.operation(term))

    def applied(self, term: Term, operation: Operation[Term] | None) -> Predicate:
        """Translate like `predicate` a term whose `operation` the caller has already found."""
        found = _truth_of_term(self, term) if operation is None else _apply_rule(self, *operation)
        return self.opaque(term) if found is None else found


def _apply_rule(
    form: Translation[Term], operator: Operator, operands: Sequence[Term]
) -> Predicate | None:
    row = _ROWS[operator]
    if not row.fewest <= len(operands) <= row.most:
        return None
    return row.rule(form, *operands)


def _truth_of_term(form: Translation[Term], term: Term) -> Predicate | None:
    """Return the predicate of a bare TRUE, FALSE, NULL or boolean column, or None."""
    constant = form.literal(term)
    if constant is None:
        column = form.column(term)
        return None if column is None else Comparison("=", column, Literal(True, "boolean"))
    value = constant.value
    return BooleanLiteral(value) if value is None or isinstance(value, bool) else None


def _connect_parts(
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


def _compare(
    op: ComparisonOp, form: Translation[Term], left: Term, right: Term
) -> Predicate | None:
    value, first = form.literal(right), form.literal(left)
    if first is not None and value is not None:
        return _fold_constants(op, first, value)
    if first is not None:
        left, right, value, op = right, left, first, FLIPPED[op]
    column = form.column(left)
    if column is not None:
        other = value if value is not None else form.column(right)
        return None if other is None else Comparison(op, column, other)
    if value is None:
        return None
    converted = form.converted(op, left, (value,))
    return _compare_with_truth(op, form, left, value) if converted is None else converted


def _fold_constants(op: ComparisonOp, left: Literal, right: Literal) -> Predicate | None:
    """Return the value of a comparison of two constants, such as `1 = 1` for TRUE."""
    if left.value is None or right.value is None:
        return BooleanLiteral(None)
    if left.kind != right.kind or op not in ("=", "<>"):
        return None
    if left.kind not in ("integer", "string", "boolean"):
        return None
    return BooleanLiteral((left.value == right.value) == (op == "="))


def _compare_with_truth(
    op: ComparisonOp, form: Translation[Term], condition: Term, truth: Literal
) -> Predicate | None:
    """Return the predicate of `(condition) = true`, `(condition) <> false` and similar ones."""
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


def _translate_in(form: Translation[Term], term: Term, *listed: Term) -> Predicate | None:
    literals = [form.literal(item) for item in listed]
    known = tuple(item for item in literals if item is not None)
    if len(known) < len(literals):
        return None
    column = form.column(term)
    if column is not None:
        return In(column, known)
    # Spark compares all of a list in one type, in which different numbers may be equal.
    kinds = {item.kind for item in known if item.value is not None}
    return form.converted("=", term, known) if len(kinds) <= 1 else None


def _translate_between(
    form: Translation[Term], term: Term, low: Term, high: Term
) -> Predicate | None:
    least, most = _compare(">=", form, term, low), _compare("<=", form, term, high)
    return None if least is None or most is None else least & most


def _is_null(form: Translation[Term], term: Term) -> Predicate | None:
    column = form.column(term)
    return None if column is None else IsNull(column)


def _is_not_null(form: Translation[Term], term: Term) -> Predicate | None:
    column = form.column(term)
    return None if column is None else ~IsNull(column)


def _test_text(
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


def _translate_like(
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
    """An operator's rule, which returns None if in doubt, and its number of operands."""

    rule: Callable[..., Predicate | None]
    fewest: int
    most: int


_MANY = 1_000_000_000
_ROWS: dict[Operator, _Row] = {
    "AND": _Row(partial(_connect_parts, "AND", and_), 1, _MANY),
    "OR": _Row(partial(_connect_parts, "OR", or_), 1, _MANY),
    "NOT": _Row(lambda form, term: ~form.predicate(term), 1, 1),
    "=": _Row(partial(_compare, "="), 2, 2),
    "<>": _Row(partial(_compare, "<>"), 2, 2),
    "<": _Row(partial(_compare, "<"), 2, 2),
    "<=": _Row(partial(_compare, "<="), 2, 2),
    ">": _Row(partial(_compare, ">"), 2, 2),
    ">=": _Row(partial(_compare, ">="), 2, 2),
    "<=>": _Row(_equal_null_safe, 2, 2),
    "IN": _Row(_translate_in, 2, _MANY),
    "BETWEEN": _Row(_translate_between, 3, 3),
    "IS NULL": _Row(_is_null, 1, 1),
    "IS NOT NULL": _Row(_is_not_null, 1, 1),
    "IS TRUE": _Row(lambda form, term: IsTrue(form.predicate(term)), 1, 1),
    "IS FALSE": _Row(lambda form, term: IsTrue(~form.predicate(term)), 1, 1),
    "STARTS WITH": _Row(partial(_test_text, StartsWith), 2, 2),
    "ENDS WITH": _Row(partial(_test_text, _ends_with), 2, 2),
    "CONTAINS": _Row(partial(_test_text, _contains), 2, 2),
    "LIKE": _Row(_translate_like, 2, 3),
}
