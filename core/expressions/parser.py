"""Parses expressions by Spark's grammar: its operators and their precedence.

It accepts no text that Spark's parser refuses. It does not check whether a function or column
exists, or whether the types fit. A few words that Spark takes as names if nothing else fits (`in =
1`) must be in back-ticks here.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.expressions.cursor import Cursor, NotSqlError
from optimist.core.expressions.primaries import primary
from optimist.core.expressions.subqueries import is_at_query, subquery
from optimist.core.expressions.tree import Expression, Operation, Text

__all__ = ["parse_expression"]

_COMPARISONS = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
# The precedence of operators between two values; comparisons have the lowest.
_STRENGTHS = {
    **dict.fromkeys(_COMPARISONS, 1),
    "|": 2,
    "^": 3,
    "&": 4,
    **dict.fromkeys(("<<", ">>", ">>>"), 5),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%", "DIV"), 7),
}
_SHIFTING = _STRENGTHS["<<"]
_TRUTHS = ("TRUE", "FALSE", "UNKNOWN")
_QUANTIFIERS = ("ANY", "SOME", "ALL")


def parse_expression(text: str) -> Expression:
    """Parse a text that is one expression.

    Raises:
        NotSqlError: It is not an expression, or it is nested too deeply.
    """
    cursor = Cursor(text)
    try:
        found = _read_expression(cursor)
    except RecursionError:
        raise NotSqlError("it is nested too deeply", None, None, "") from None
    cursor.ensure_end()
    return found


def _read_expression(cursor: Cursor) -> Expression:
    parts = [_read_conjunction(cursor)]
    while cursor.take("OR"):
        parts.append(_read_conjunction(cursor))
    return parts[0] if len(parts) == 1 else _join_operands("OR", *parts)


def _read_conjunction(cursor: Cursor) -> Expression:
    parts = [_read_negation(cursor)]
    while cursor.take("AND"):
        parts.append(_read_negation(cursor))
    return parts[0] if len(parts) == 1 else _join_operands("AND", *parts)


def _read_negation(cursor: Cursor) -> Expression:
    start, num_negations = cursor.peek().start, 0
    while cursor.take("NOT") or cursor.take("!"):
        num_negations += 1
    found = _read_predicated(cursor)
    for _ in range(num_negations):
        found = Operation("NOT", (found,), start=start, end=found.end)
    return found


def _read_predicated(cursor: Cursor) -> Expression:
    """Read a value, with at most one predicate behind it."""
    value = _read_value(cursor)
    if cursor.take("IS"):
        return _read_is(cursor, value)
    is_negated = cursor.take("NOT")
    found = _read_predicate(cursor, value)
    if found is not None:
        return _negate(found) if is_negated else found
    if is_negated:
        cursor.fail("IN, BETWEEN, LIKE, ILIKE or RLIKE is expected")
    return value


def _read_is(cursor: Cursor, value: Expression) -> Expression:
    is_negated = cursor.take("NOT")
    if cursor.take("DISTINCT", "FROM"):
        found = _join_operands("IS DISTINCT FROM", value, _read_value(cursor))
    elif cursor.is_at_any("NULL", *_TRUTHS):
        operator = f"IS {cursor.advance().text.upper()}"
        found = Operation(operator, (value,), start=value.start, end=cursor.last_end)
    else:
        cursor.fail("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected")
    return _negate(found) if is_negated else found


def _read_predicate(cursor: Cursor, value: Expression) -> Operation | None:
    if cursor.take("BETWEEN"):
        low = _read_value(cursor)
        cursor.expect("AND")
        return _join_operands("BETWEEN", value, low, _read_value(cursor))
    if cursor.take("IN"):
        return _read_in(cursor, value)
    if cursor.take("RLIKE") or cursor.take("REGEXP"):
        return _join_operands("RLIKE", value, _read_value(cursor))
    if cursor.is_at_any("LIKE", "ILIKE"):
        return _read_like(cursor, value, cursor.advance().text.upper())
    return None


def _read_in(cursor: Cursor, value: Expression) -> Operation:
    start = cursor.peek().start
    cursor.expect("(")
    if is_at_query(cursor):
        return _join_operands("IN", value, subquery(cursor, start))
    listed = cursor.listed(lambda: _read_expression(cursor))
    cursor.expect(")")
    return _with_end(cursor, _join_operands("IN", value, *listed))


def _read_like(cursor: Cursor, value: Expression, operator: str) -> Operation:
    if cursor.is_at_any(*_QUANTIFIERS) and cursor.peek(1).text == "(":
        operator = f"{operator} {cursor.advance().text.upper()}"
        cursor.expect("(")
        listed = cursor.listed(lambda: _read_expression(cursor))
        cursor.expect(")")
        return _with_end(cursor, _join_operands(operator, value, *listed))
    operands = [_read_value(cursor)]
    if cursor.take("ESCAPE"):
        if cursor.peek().kind != "text":
            cursor.fail("a text in quotes is expected")
        escape = primary(cursor, _read_expression, _read_value)
        if not isinstance(escape, Text) or len(escape.value) != 1:
            cursor.fail("ESCAPE takes one character", is_before=True)
        operands.append(escape)
    return _join_operands(operator, value, *operands)


def _read_value(cursor: Cursor, weakest: int = 1) -> Expression:
    """Read a value without AND, OR, NOT and predicates.

    Comparisons are values.

    Args:
        cursor: The cursor, before the value.
        weakest: The lowest precedence of its operators, outside of parentheses.
    """
    left = _read_signed(cursor)
    while True:
        written = _peek_operator(cursor)
        strength = _STRENGTHS.get(written, 0)
        if not weakest <= strength:
            return left
        cursor.take(*(written if strength == _SHIFTING else (written,)))
        right = _read_value(cursor, strength + 1)
        left = _join_operands(_COMPARISONS.get(written, written), left, right)


def _peek_operator(cursor: Cursor) -> str:
    """Return the operator that follows, in capitals, or another token's text."""
    token = cursor.peek()
    if token.kind not in ("mark", "word"):
        return ""
    return _peek_shift(cursor) or token.text.upper()


def _peek_shift(cursor: Cursor) -> str:
    """Return `<<`, `>>` or `>>>` if these marks follow without blanks, otherwise ""."""
    mark = cursor.peek().text
    if mark not in ("<", ">"):
        return ""
    longest, run = 2 if mark == "<" else 3, 1
    while run < longest and _is_adjoining(cursor, run, mark):
        run += 1
    return mark * run if run > 1 else ""


def _is_adjoining(cursor: Cursor, distance: int, mark: str) -> bool:
    before, token = cursor.peek(distance - 1), cursor.peek(distance)
    return token.kind == "mark" and token.text == mark and token.start == before.end


def _read_signed(cursor: Cursor) -> Expression:
    if not cursor.is_at_any("+", "-", "~") or _is_signed_number(cursor):
        return primary(cursor, _read_expression, _read_value)
    sign = cursor.advance()
    operand = _read_signed(cursor)
    return Operation(f"{sign.text}x", (operand,), start=sign.start, end=operand.end)


def _is_signed_number(cursor: Cursor) -> bool:
    """Tell whether a minus follows that belongs to a number."""
    return cursor.is_at("-") and cursor.peek(1).kind == "number"


def _join_operands(operator: str, *operands: Expression) -> Operation:
    return Operation(operator, operands, start=operands[0].start, end=operands[-1].end)


def _with_end(cursor: Cursor, operation: Operation) -> Operation:
    """Extend the operation by the parenthesis behind it."""
    return replace(operation, end=cursor.last_end)


def _negate(operation: Operation) -> Operation:
    return Operation("NOT", (operation,), start=operation.start, end=operation.end)
