"""Calls of functions, including those that Spark's grammar writes with keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from optimist.core.expressions.cursor import Cursor
from optimist.core.expressions.subqueries import is_at_query, subquery
from optimist.core.expressions.tree import Call, Expression, Unit

__all__ = ["call"]

Part: TypeAlias = Callable[[Cursor], Expression]

_WITH_UNITS = frozenset(
    (
        *("timestampadd", "dateadd", "date_add"),
        *("timestampdiff", "datediff", "date_diff", "timediff"),
    )
)
_UNITS = frozenset(
    (
        *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR"),
        *("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
    )
)
_TRIMS = ("BOTH", "LEADING", "TRAILING")


def call(cursor: Cursor, start: int, path: list[str], expression: Part, value: Part) -> Expression:
    """Read a call whose name was read, from its opening parenthesis on.

    Args:
        cursor: The cursor, before the parenthesis.
        start: The start of the name.
        path: The name, which may have several parts.
        expression: Reads any expression.
        value: Reads an expression without AND, OR, NOT and predicates such as IN.

    Raises:
        NotSqlError: Spark's grammar has no such call.
    """
    cursor.expect("(")
    if is_at_query(cursor) and [item.lower() for item in path] == ["exists"]:
        return subquery(cursor, start)
    name, special = path[-1].lower(), _SPECIAL.get(path[-1].lower())
    if special is not None and len(path) == 1:
        arguments = special(cursor, expression, value)
        is_plain = True
    else:
        arguments, is_plain = _read_plain_arguments(
            cursor, expression, has_aliases=name == "struct"
        )
    cursor.expect(")")
    is_plain = _skip_clauses(cursor) and is_plain
    return Call(
        name, tuple(arguments), is_plain, tuple(path[:-1]), start=start, end=cursor.last_end
    )


def _read_plain_arguments(
    cursor: Cursor, expression: Part, *, has_aliases: bool
) -> tuple[list[Expression], bool]:
    """Read arguments, and tell whether none is distinct, named or a star."""
    if cursor.is_at(")"):
        return [], True
    is_plain = True
    arguments: list[Expression] = []

    def argument() -> None:
        nonlocal is_plain
        if cursor.is_at("*"):
            star = cursor.advance()
            arguments.append(Unit("*", start=star.start, end=star.end))
            is_plain = False
            return
        if cursor.peek(1).text == "=>":
            cursor.name("the name of an argument")
            cursor.advance()
            is_plain = False
        arguments.append(expression(cursor))
        if has_aliases and (cursor.take("AS") or cursor.peek().kind in ("word", "name")):
            cursor.name("the name of a field")
            is_plain = False

    if cursor.is_at_any("DISTINCT", "ALL") and cursor.peek(1).text not in (")", ",", "."):
        cursor.advance()
        is_plain = False
    cursor.listed(argument)
    return arguments, is_plain


def _skip_clauses(cursor: Cursor) -> bool:
    """Skip the clauses of aggregates and windows, and tell whether there are none."""
    is_plain = True
    if cursor.take("WITHIN", "GROUP") or cursor.take("FILTER"):
        _skip_brackets(cursor)
        is_plain = False
    if cursor.take("IGNORE", "NULLS") or cursor.take("RESPECT", "NULLS"):
        is_plain = False
    if cursor.take("OVER"):
        if cursor.is_at("("):
            _skip_brackets(cursor)
        else:
            cursor.name("a window")
        is_plain = False
    return is_plain


def _skip_brackets(cursor: Cursor) -> None:
    cursor.expect("(")
    depth = 1
    while depth:
        token = cursor.advance()
        if token.kind == "end":
            cursor.fail(") is expected")
        depth += (token.text == "(") - (token.text == ")")


def _read_with_unit(cursor: Cursor, expression: Part, value: Part) -> list[Expression]:
    """Read `timestampadd(DAY, 1, t)`.

    With two arguments, the first one is a value.
    """
    del value
    token = cursor.peek()
    if token.text.upper() in _UNITS and cursor.peek(1).text == ",":
        saved = cursor.mark()
        cursor.advance()
        cursor.expect(",")
        others = cursor.listed(lambda: expression(cursor))
        if len(others) > 1:
            return [Unit(token.text.upper(), start=token.start, end=token.end), *others]
        cursor.reset(saved)
    return _read_values(cursor, expression)


def _read_values(cursor: Cursor, expression: Part) -> list[Expression]:
    return [] if cursor.is_at(")") else cursor.listed(lambda: expression(cursor))


def _read_extract(cursor: Cursor, expression: Part, value: Part) -> list[Expression]:
    del expression
    field = cursor.peek()
    cursor.name("a part of times")
    cursor.expect("FROM")
    return [Unit(field.text.strip("`").upper(), start=field.start, end=field.end), value(cursor)]


def _read_substring(cursor: Cursor, expression: Part, value: Part) -> list[Expression]:
    if cursor.is_at(")"):
        return []
    arguments = [expression(cursor)]
    if cursor.take("FROM"):
        arguments.append(value(cursor))
        if cursor.take("FOR"):
            arguments.append(value(cursor))
    while cursor.take(","):
        arguments.append(expression(cursor))
    return arguments


def _read_trim(cursor: Cursor, expression: Part, value: Part) -> list[Expression]:
    side = cursor.peek()
    arguments: list[Expression] = []
    if cursor.is_at_any(*_TRIMS) and cursor.peek(1).text not in (")", ",", "."):
        cursor.advance()
        arguments.append(Unit(side.text.upper(), start=side.start, end=side.end))
    if not cursor.is_at("FROM"):
        arguments += _read_values(cursor, expression)
    if cursor.take("FROM"):
        arguments.append(value(cursor))
    elif arguments and isinstance(arguments[0], Unit):
        cursor.fail("FROM is expected")
    return arguments


def _read_overlay(cursor: Cursor, expression: Part, value: Part) -> list[Expression]:
    arguments = [expression(cursor)]
    if cursor.take("PLACING"):
        arguments.append(value(cursor))
        cursor.expect("FROM")
        arguments.append(value(cursor))
        if cursor.take("FOR"):
            arguments.append(value(cursor))
        return arguments
    while cursor.take(","):
        arguments.append(expression(cursor))
    return arguments


def _read_position(cursor: Cursor, expression: Part, value: Part) -> list[Expression]:
    """Read `position(a IN b)`, whose IN does not begin a list."""
    first = value(cursor)
    if cursor.take("IN"):
        return [first, value(cursor)]
    return [first, *(_read_values(cursor, expression) if cursor.take(",") else ())]


_SPECIAL: dict[str, Callable[[Cursor, Part, Part], list[Expression]]] = {
    **dict.fromkeys(_WITH_UNITS, _read_with_unit),
    "extract": _read_extract,
    "substring": _read_substring,
    "substr": _read_substring,
    "trim": _read_trim,
    "overlay": _read_overlay,
    "position": _read_position,
}
