"""A parser from SQL text to a predicate tree, in which parts without a sure meaning are opaque."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import or_
from typing import TypeGuard

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import NotSqlError, SqlType, parse_expression
from optimist.core.expressions.functions import ROW_FUNCTIONS
from optimist.core.expressions.names import free_names
from optimist.core.expressions.plain_text import plain_text, tokens_between
from optimist.core.expressions.tree import (
    Call,
    Cast,
    Constant,
    Expression,
    Name,
    Number,
    Operation,
    Parameter,
    Subquery,
    Text,
    Typed,
    walk,
)
from optimist.core.predicates.constants import MAX_PRECISION, cast_literal, number_literal
from optimist.core.predicates.translation import Operation as Meaning
from optimist.core.predicates.translation import Operator, Translation
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    ComparisonOp,
    Literal,
    Not,
    Opaque,
    Predicate,
)
from optimist.core.values.decimals import exactly_at_scale, is_in_range
from optimist.core.values.unicode_text import ensure_unicode

__all__ = [
    "NAMES_OF_THE_MOMENT",
    "column_of",
    "literal_of",
    "parse_column_path",
    "parse_predicate",
    "predicate_of",
    "type_name_of",
]

_TYPE_NAMES = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DECIMAL": "decimal",
    "STRING": "string",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
}
_DEFAULT_DECIMAL = (10, 0)
NAMES_OF_THE_MOMENT = frozenset(("epoch", "now", "today", "tomorrow", "yesterday"))
"""Constant texts that are other times in every statement, when they are cast to times."""
_INTEGERS = ("integer", "byte", "short", "long")


def parse_predicate(sql: str) -> Predicate:
    """Parse the text of a WHERE clause in Spark's dialect.

    Every part of the text without a node of its own becomes an `Opaque` leaf. Names stay as
    written, and `ensure_columns` checks them against a schema.

    Raises:
        UsageError: The text is not a predicate (kind `OPTIMIST_INVALID_PREDICATE`; fields
            `predicate`, and, if the position is known, `line` and `column`, counted from 1), or
            holds half a character (kind `OPTIMIST_INVALID_TEXT`).
    """
    ensure_unicode(sql)
    try:
        return predicate_of(parse_expression(sql), sql)
    except NotSqlError as error:
        raise _invalid_predicate(sql, error) from None
    except RecursionError:
        too_deep = NotSqlError("it is nested too deeply", None, None, "")
        raise _invalid_predicate(sql, too_deep) from None


def parse_column_path(text: str) -> tuple[str, ...]:
    """Parse the name of a column or a struct field, ``a.b`` or ``a.`b c` ``, into its path.

    Raises:
        UsageError: The text is not a column's name (kind `OPTIMIST_INVALID_PREDICATE`).
    """
    try:
        parsed = parse_expression(text)
    except NotSqlError:
        parsed = None
    if not isinstance(parsed, Name):
        raise UsageError(
            f"The text {quoted(text)} is not the name of a column. Put unusual names in "
            "back-ticks.",
            kind="OPTIMIST_INVALID_PREDICATE",
            predicate=text,
        )
    return parsed.path


def predicate_of(expression: Expression, sql: str) -> Predicate:
    """Return the predicate of a part of a parsed text (see `parse_predicate`).

    Args:
        expression: The part.
        sql: The text.
    """
    return _SqlText(sql).predicate(expression)


def column_of(expression: Expression) -> Column | None:
    """Return the column or struct field that an expression names, or None."""
    if isinstance(expression, Name) and not expression.is_call:
        return Column(expression.path)
    return None


def literal_of(expression: Expression) -> Literal | None:
    """Return the constant that an expression is, or None for others and in doubt."""
    match expression:
        case Constant():
            return Literal(expression.value, "null" if expression.value is None else "boolean")
        case Text():
            return Literal(expression.value, "string")
        case Number():
            return _number_literal(expression)
        case Typed():
            return _typed_literal(expression)
        case Operation(operator="-x" | "+x"):
            return _signed_literal(expression.operator, expression.operands[0])
        case Cast():
            return _cast_literal(expression)
    return None


def type_name_of(target: SqlType) -> str | None:
    """Return Delta's name of the type that a cast names, with a decimal's parameters."""
    name = _TYPE_NAMES.get(target.name) if target.collation is None else None
    if name != "decimal":
        return name
    precision, scale = _decimal_parameters(target)
    is_legal = 0 < precision <= MAX_PRECISION and scale <= precision
    return f"decimal({precision},{scale})" if is_legal else None


def _invalid_predicate(sql: str, error: NotSqlError) -> UsageError:
    is_located = error.line is not None
    where = f" (line {error.line}, column {error.column})" if is_located else ""
    fields = {"line": error.line, "column": error.column} if is_located else {}
    return UsageError(
        f"The predicate {quoted(sql)} can't be parsed{where}: {shown(error)}. Correct the SQL, "
        "and put unusual names in back-ticks.",
        kind="OPTIMIST_INVALID_PREDICATE",
        predicate=sql,
        **fields,
    )


class _SqlText(Translation[Expression]):
    """The translation of the parts of one SQL text."""

    __slots__ = ("_sql",)

    def __init__(self, sql: str) -> None:
        self._sql = sql

    def operation(self, term: Expression) -> Meaning[Expression] | None:
        if isinstance(term, Operation):
            return _operator_and_operands(term)
        if isinstance(term, Call) and term.is_plain and not term.qualifiers:
            operator = _CALLS.get(term.name)
            return None if operator is None else (operator, term.arguments)
        return None

    def column(self, term: Expression) -> Column | None:
        return column_of(term)

    def literal(self, term: Expression) -> Literal | None:
        return literal_of(term)

    def opaque(self, term: Expression) -> Opaque:
        names = [name for name in free_names(term) if not name.is_call]
        deterministic = not any(map(_is_nondeterministic, walk(term)))
        columns = frozenset(name.path for name in names)
        text = plain_text(self._sql, term)
        return Opaque(text, columns, deterministic, is_own_text=True)

    def applied(self, term: Expression, operation: Meaning[Expression] | None) -> Predicate:
        found = super().applied(term, operation)
        is_opaque = isinstance(found, Not) and isinstance(found.child, Opaque)
        # The text of `x` in `x NOT IN (...)` has the NOT in it, and that of `x <=> y` is that of
        # `x IS DISTINCT FROM y`. So the whole is the leaf.
        is_whole = is_opaque and (self._is_negated_inside(term) or _is_distinct(term))
        return self.opaque(term) if is_whole else found

    def converted(
        self, op: ComparisonOp, term: Expression, values: Sequence[Literal]
    ) -> Predicate | None:
        cast = _column_cast(term)
        if cast is None:
            return None
        column, target, is_try = cast
        return reduce(or_, [CastComparison(op, column, target, item, is_try) for item in values])

    def _is_negated_inside(self, term: Expression) -> bool:
        """Tell whether a NOT stands within the text of what it negates: `(x IS NOT NULL)`."""
        if not isinstance(term, Operation) or term.operator != "NOT":
            return False
        before = tokens_between(self._sql, term.start, term.operands[0].start)
        return not any(token.text.upper() in ("NOT", "!") for token in before)


def _is_nondeterministic(node: Expression) -> bool:
    """Return whether a node may give different answers for equal rows, now or later."""
    if isinstance(node, Call):
        is_row_function = node.name in ROW_FUNCTIONS and node.is_plain and not node.qualifiers
        return not is_row_function or (node.name in _CLOCKS and not node.arguments)
    if isinstance(node, Typed):
        return node.text.strip().lower() in NAMES_OF_THE_MOMENT
    return isinstance(node, Subquery | Parameter) or (isinstance(node, Name) and node.is_call)


_CLOCKS = ("unix_timestamp", "to_unix_timestamp")
_CALLS: dict[str, Operator] = {
    "startswith": "STARTS WITH",
    "endswith": "ENDS WITH",
    "contains": "CONTAINS",
    "isnull": "IS NULL",
    "isnotnull": "IS NOT NULL",
}
_OPERATORS: dict[str, Operator] = {
    "AND": "AND",
    "OR": "OR",
    "NOT": "NOT",
    "=": "=",
    "<>": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
    "IN": "IN",
    "BETWEEN": "BETWEEN",
    "IS NULL": "IS NULL",
    "IS TRUE": "IS TRUE",
    "IS FALSE": "IS FALSE",
    "LIKE": "LIKE",
}


def _operator_and_operands(node: Operation) -> Meaning[Expression] | None:
    (first, *_) = node.operands
    if node.operator == "NOT" and _is_distinct(first):
        return "<=>", first.operands
    if _is_distinct(node):
        return "NOT", (Operation("<=>", node.operands, start=node.start, end=node.end),)
    operator = _OPERATORS.get(node.operator)
    return None if operator is None else (operator, node.operands)


def _is_distinct(node: Expression) -> TypeGuard[Operation]:
    return isinstance(node, Operation) and node.operator == "IS DISTINCT FROM"


def _number_literal(node: Number) -> Literal | None:
    if node.kind in _INTEGERS:
        return Literal(int(node.text), "integer")
    if node.kind == "decimal":
        is_plain = not any(mark in node.text for mark in "eE")
        found = number_literal(node.text) if is_plain else None
        return found or cast_literal(Literal(node.text, "string"), "decimal")
    # Of a float, no double is rounded again, but where the exponent is too long for a text.
    found = cast_literal(Literal(node.text, "string"), "float") if node.kind == "float" else None
    return found or cast_literal(Literal(float(node.text), "double"), node.kind)


def _typed_literal(node: Typed) -> Literal | None:
    if node.type_name == "X":
        return Literal(bytes.fromhex("0" * (len(node.text) % 2) + node.text), "binary")
    name = _TYPE_NAMES.get(node.type_name)
    return None if name is None else cast_literal(Literal(node.text, "string"), name)


def _signed_literal(operator: str, operand: Expression) -> Literal | None:
    literal = literal_of(operand)
    value = None if literal is None else literal.value
    if literal is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if operator == "+x":
        return literal
    if isinstance(value, int) and value < 0:
        return None  # the least number of a type has no positive counterpart
    negated = value.copy_negate() if isinstance(value, Decimal) else -value
    return Literal(negated, literal.kind)


def _cast_literal(node: Cast) -> Literal | None:
    inner, name = literal_of(node.value), type_name_of(node.target)
    if inner is None or name is None or inner.value is None:
        return None  # Spark does not compare a null of one type with every other type
    literal = cast_literal(inner, "decimal" if name.startswith("decimal") else name)
    if literal is not None and isinstance(literal.value, Decimal):
        return _at_declared_scale(literal.value, node.target)
    return literal


def _column_cast(node: Expression) -> tuple[Column, str, bool] | None:
    """Return the column and type of `CAST(column AS type)` or `to_date(column)`, or None.

    The last part of the answer tells whether it is a `TRY_CAST`.
    """
    if isinstance(node, Call):
        is_to_date = node.name in ("to_date", "date") and node.is_plain and not node.qualifiers
        column = column_of(node.arguments[0]) if is_to_date and len(node.arguments) == 1 else None
        return None if column is None else (column, "date", False)
    if not isinstance(node, Cast):
        return None
    column, name = column_of(node.value), type_name_of(node.target)
    if column is None or name is None or name in ("string", "boolean"):
        return None
    return column, name, node.is_try


def _decimal_parameters(target: SqlType) -> tuple[int, int]:
    precision, scale = (*target.parameters, *_DEFAULT_DECIMAL[len(target.parameters) :])
    return precision, scale


def _at_declared_scale(number: Decimal, target: SqlType) -> Literal | None:
    """Return the number as `DECIMAL(precision, scale)`, or None if it rounds or overflows."""
    precision, scale = _decimal_parameters(target)
    try:
        fitted = exactly_at_scale(number, scale)
    except InvalidOperation:
        return None
    return Literal(fitted, "decimal") if is_in_range(fitted, precision, scale) else None
