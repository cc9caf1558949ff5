"""Parses expressions as Spark's grammar has them: its operators, and how tightly they bind.

It takes no text that Spark's parser refuses; whether there is such a function or column, and
whether the types fit, is not its business. A few words that Spark takes for names where nothing
else fits (`in = 1`) must stand in back-ticks here.
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
# How tightly operators bind between two values; comparisons most loosely.
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
    """The expression that a text is, as a whole.

    Raises:
        NotSqlError: It is none, or nested too deeply.
    """
    cursor = Cursor(text)
    try:
        found = _expression(cursor)
    except RecursionError:
        raise NotSqlError("it is nested too deeply", None, None, "") from None
    cursor.ensure_end()
    return found


def _expression(cursor: Cursor) -> Expression:
    parts = [_conjunction(cursor)]
    while cursor.take("OR"):
        parts.append(_conjunction(cursor))
    return parts[0] if len(parts) == 1 else _joined("OR", *parts)


def _conjunction(cursor: Cursor) -> Expression:
    parts = [_negation(cursor)]
    while cursor.take("AND"):
        parts.append(_negation(cursor))
    return parts[0] if len(parts) == 1 else _joined("AND", *parts)


def _negation(cursor: Cursor) -> Expression:
    start, num_negations = cursor.peek().start, 0
    while cursor.take("NOT") or cursor.take("!"):
        num_negations += 1
    found = _predicated(cursor)
    for _ in range(num_negations):
        found = Operation("NOT", (found,), start=start, end=found.end)
    return found


def _predicated(cursor: Cursor) -> Expression:
    """A value, with at most one predicate behind it."""
    value = _value(cursor)
    if cursor.take("IS"):
        return _is(cursor, value)
    is_negated = cursor.take("NOT")
    found = _predicate(cursor, value)
    if found is not None:
        return _negated(found) if is_negated else found
    if is_negated:
        cursor.fail("IN, BETWEEN, LIKE, ILIKE or RLIKE is expected")
    return value


def _is(cursor: Cursor, value: Expression) -> Expression:
    is_negated = cursor.take("NOT")
    if cursor.take("DISTINCT", "FROM"):
        found = _joined("IS DISTINCT FROM", value, _value(cursor))
    elif cursor.is_at_any("NULL", *_TRUTHS):
        operator = f"IS {cursor.advance().text.upper()}"
        found = Operation(operator, (value,), start=value.start, end=cursor.last_end)
    else:
        cursor.fail("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected")
    return _negated(found) if is_negated else found


def _predicate(cursor: Cursor, value: Expression) -> Operation | None:
    if cursor.take("BETWEEN"):
        low = _value(cursor)
        cursor.expect("AND")
        return _joined("BETWEEN", value, low, _value(cursor))
    if cursor.take("IN"):
        return _in(cursor, value)
    if cursor.take("RLIKE") or cursor.take("REGEXP"):
        return _joined("RLIKE", value, _value(cursor))
    if cursor.is_at_any("LIKE", "ILIKE"):
        return _like(cursor, value, cursor.advance().text.upper())
    return None


def _in(cursor: Cursor, value: Expression) -> Operation:
    start = cursor.peek().start
    cursor.expect("(")
    if is_at_query(cursor):
        return _joined("IN", value, subquery(cursor, start))
    listed = cursor.listed(lambda: _expression(cursor))
    cursor.expect(")")
    return _ended(cursor, _joined("IN", value, *listed))


def _like(cursor: Cursor, value: Expression, operator: str) -> Operation:
    if cursor.is_at_any(*_QUANTIFIERS) and cursor.peek(1).text == "(":
        operator = f"{operator} {cursor.advance().text.upper()}"
        cursor.expect("(")
        listed = cursor.listed(lambda: _expression(cursor))
        cursor.expect(")")
        return _ended(cursor, _joined(operator, value, *listed))
    operands = [_value(cursor)]
    if cursor.take("ESCAPE"):
        if cursor.peek().kind != "text":
            cursor.fail("a text in quotes is expected")
        escape = primary(cursor, _expression, _value)
        if not isinstance(escape, Text) or len(escape.value) != 1:
            cursor.fail("ESCAPE takes one character", is_before=True)
        operands.append(escape)
    return _joined(operator, value, *operands)


def _value(cursor: Cursor, weakest: int = 1) -> Expression:
    """A value without AND, OR, NOT and the predicates behind values; comparisons are values.

    Args:
        cursor: Where it begins.
        weakest: How tightly the operators in it bind at least, outside of brackets.
    """
    left = _signed(cursor)
    while True:
        written = _operator(cursor)
        strength = _STRENGTHS.get(written, 0)
        if not weakest <= strength:
            return left
        cursor.take(*(written if strength == _SHIFTING else (written,)))
        right = _value(cursor, strength + 1)
        left = _joined(_COMPARISONS.get(written, written), left, right)


def _operator(cursor: Cursor) -> str:
    """The operator that follows, in capitals, or whatever else it is."""
    token = cursor.peek()
    if token.kind not in ("mark", "word"):
        return ""
    return _shift(cursor) or token.text.upper()


def _shift(cursor: Cursor) -> str:
    """`<<`, `>>` or `>>>`: marks without blanks between them; empty if none follows."""
    mark = cursor.peek().text
    if mark not in ("<", ">"):
        return ""
    longest, run = 2 if mark == "<" else 3, 1
    while run < longest and _adjoins(cursor, run, mark):
        run += 1
    return mark * run if run > 1 else ""


def _adjoins(cursor: Cursor, distance: int, mark: str) -> bool:
    before, token = cursor.peek(distance - 1), cursor.peek(distance)
    return token.kind == "mark" and token.text == mark and token.start == before.end


def _signed(cursor: Cursor) -> Expression:
    if not cursor.is_at_any("+", "-", "~") or _is_signed_number(cursor):
        return primary(cursor, _expression, _value)
    sign = cursor.advance()
    operand = _signed(cursor)
    return Operation(f"{sign.text}x", (operand,), start=sign.start, end=operand.end)


def _is_signed_number(cursor: Cursor) -> bool:
    """Whether a minus follows that belongs to a number."""
    return cursor.is_at("-") and cursor.peek(1).kind == "number"


def _joined(operator: str, *operands: Expression) -> Operation:
    return Operation(operator, operands, start=operands[0].start, end=operands[-1].end)


def _ended(cursor: Cursor, operation: Operation) -> Operation:
    """The operation with the bracket behind it."""
    return replace(operation, end=cursor.last_end)


def _negated(operation: Operation) -> Operation:
    return Operation("NOT", (operation,), start=operation.start, end=operation.end)
