"""The operands of operators: constants, names, calls, CASE, casts, and text in parentheses.

Spark has no reserved words, so a keyword is a name wherever it can't be the keyword.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

from optimist.core.expressions.calls import call
from optimist.core.expressions.cursor import Cursor
from optimist.core.expressions.date_texts import may_be_value_of
from optimist.core.expressions.intervals import is_at_interval, read_interval
from optimist.core.expressions.subqueries import is_at_query, subquery
from optimist.core.expressions.tokens import read_text
from optimist.core.expressions.tree import (
    Call,
    Case,
    Cast,
    Constant,
    Expression,
    Extracted,
    Field,
    Lambda,
    Name,
    Number,
    NumberKind,
    Operation,
    Parameter,
    Subscript,
    Text,
    Typed,
)
from optimist.core.expressions.types import collation, read_type

__all__ = ["primary"]

Part: TypeAlias = Callable[[Cursor], Expression]

_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}
_TYPES_OF_TEXTS = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X")
_CALLED_WITHOUT_BRACKETS = frozenset(
    ("current_date", "current_timestamp", "current_time", "current_user")
)
_HEX = re.compile(r"[0-9a-fA-F]*")
_SUFFIXES: dict[str, tuple[NumberKind, int]] = {
    "Y": ("byte", 7),
    "S": ("short", 15),
    "L": ("long", 63),
    "F": ("float", 0),
    "D": ("double", 0),
    "BD": ("decimal", 0),
}
_SUFFIXED = re.compile(r"([0-9.]+(?:E[+-]?[0-9]+)?)(BD|[YSLFD])?", re.IGNORECASE)
_MAX_PRECISION = 38
_LARGEST_FLOAT = 3.4028234663852886e38
_NAMES_OF_FUNCTIONS = ("LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "IN")
# At the start of an operand, these words begin or join something else, or are not allowed.
_NO_NAMES = frozenset(
    ("AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "AS")
)


def primary(cursor: Cursor, expression: Part, value: Part) -> Expression:
    """Read the next operand, with suffixes such as `.field`, `[0]` or `::type`.

    Args:
        cursor: The cursor, before the operand.
        expression: Reads any expression.
        value: Reads an expression without AND, OR, NOT and predicates such as IN.

    Raises:
        NotSqlError: Spark's grammar has no such operand.
    """
    found = _read_operand(cursor, expression, value)
    while (more := _read_suffix(cursor, found, value)) is not None:
        found = more
    return found


def _read_suffix(cursor: Cursor, base: Expression, value: Part) -> Expression | None:
    if cursor.take("."):
        name = cursor.name("the name of a field")
        if isinstance(base, Name):
            return Name((*base.path, name), start=base.start, end=cursor.last_end)
        return Field(base, name, start=base.start, end=cursor.last_end)
    if cursor.take("["):
        index = value(cursor)
        cursor.expect("]")
        return Subscript(base, index, start=base.start, end=cursor.last_end)
    if cursor.take("::"):
        target = read_type(cursor)
        return Cast(base, target, start=base.start, end=cursor.last_end)
    if cursor.take("COLLATE"):
        return _read_collated(cursor, base)
    has_parts = not isinstance(base, Text | Typed | Number | Constant)
    return _read_extracted(cursor, base) if has_parts and cursor.is_at(":") else None


def _read_collated(cursor: Cursor, base: Expression) -> Expression:
    start = cursor.peek().start
    name = collation(cursor)
    text = Text(name, start=start, end=cursor.last_end)
    return Call("collate", (base, text), False, start=base.start, end=cursor.last_end)


def _read_extracted(cursor: Cursor, base: Expression) -> Expression:
    cursor.advance()
    is_first = True
    while is_first or cursor.is_at_any(".", "["):
        if cursor.take("["):
            if cursor.peek().kind not in ("text", "number", "word"):
                cursor.fail("a name or a number is expected")
            cursor.advance()
            cursor.expect("]")
        else:
            if not is_first:
                cursor.expect(".")
            cursor.name("the name of a field")
        is_first = False
    return Extracted(base, start=base.start, end=cursor.last_end)


def _read_operand(cursor: Cursor, expression: Part, value: Part) -> Expression:
    token = cursor.peek()
    if token.kind == "text":
        return _read_texts(cursor)
    if token.kind == "number" or cursor.is_at("-"):
        return _read_number(cursor)
    if token.kind == "marker" or cursor.is_at(":"):
        return _read_parameter(cursor)
    if cursor.is_at("("):
        return _read_parenthesized(cursor, expression)
    if token.kind == "name":
        return _read_named(cursor, expression, value)
    if token.kind != "word":
        cursor.fail("a value is expected")
    return _read_word(cursor, expression, value)


def _read_word(cursor: Cursor, expression: Part, value: Part) -> Expression:
    start, word = cursor.peek().start, cursor.peek().text.upper()
    behind = cursor.peek(1)
    if is_at_interval(cursor):
        return read_interval(cursor)
    if behind.kind == "text":
        return _read_typed(cursor)
    if word in _CONSTANTS:
        cursor.advance()
        return Constant(_CONSTANTS[word], start=start, end=cursor.last_end)
    if word == "CASE" and behind.kind != "end" and behind.text not in _ENDS_A_NAME:
        return _read_case(cursor, expression)
    if word in ("CAST", "TRY_CAST") and behind.text == "(":
        return _read_cast(cursor, expression, is_try=word == "TRY_CAST")
    if word in _NO_NAMES and not (word in _NAMES_OF_FUNCTIONS and behind.text == "("):
        cursor.fail("a value is expected")
    return _read_named(cursor, expression, value)


_ENDS_A_NAME = frozenset((")", ",", "]", ".", "[", "=", "==", "<", ">", "<=", ">=", "<>", "!="))


def _read_named(cursor: Cursor, expression: Part, value: Part) -> Expression:
    """Read a name, a lambda or a call."""
    start, is_word = cursor.peek().start, cursor.peek().kind == "word"
    path = [cursor.name("a value")]
    if cursor.is_at("->"):
        return _read_lambda(cursor, start, path, expression)
    while cursor.is_at(".") and cursor.peek(1).kind in ("word", "name"):
        cursor.advance()
        path.append(cursor.name("the name of a field"))
    if cursor.is_at("("):
        return call(cursor, start, path, expression, value)
    is_call = is_word and len(path) == 1 and path[0].lower() in _CALLED_WITHOUT_BRACKETS
    return Name(tuple(path), is_call, start=start, end=cursor.last_end)


def _read_lambda(cursor: Cursor, start: int, variables: list[str], expression: Part) -> Expression:
    cursor.expect("->")
    body = expression(cursor)
    return Lambda(tuple(variables), body, start=start, end=body.end)


def _read_parenthesized(cursor: Cursor, expression: Part) -> Expression:
    start = cursor.advance().start
    if is_at_query(cursor):
        return subquery(cursor, start)
    parts = [expression(cursor)]
    while cursor.take(","):
        parts.append(expression(cursor))
    cursor.expect(")")
    if len(parts) == 1:
        return replace(parts[0], start=start, end=cursor.last_end)
    names = [part.path[0] for part in parts if isinstance(part, Name) and len(part.path) == 1]
    if cursor.is_at("->") and len(names) == len(parts):
        return _read_lambda(cursor, start, names, expression)
    return Operation("ROW", tuple(parts), start=start, end=cursor.last_end)


def _read_texts(cursor: Cursor) -> Expression:
    start, parts = cursor.peek().start, []
    while cursor.peek().kind == "text":
        parts.append(read_text(cursor.advance()))
    return Text("".join(parts), start=start, end=cursor.last_end)


def _read_typed(cursor: Cursor) -> Expression:
    start = cursor.peek().start
    name = cursor.advance().text.upper()
    if name not in _TYPES_OF_TEXTS:
        cursor.fail(f"{name} is not a type of constants", is_before=True)
    text = read_text(cursor.advance())
    if name == "X" and not _HEX.fullmatch(text):
        cursor.fail("the digits are not hexadecimal", is_before=True)
    if not may_be_value_of(name, text):
        cursor.fail(f"the text is not a {name.lower()}", is_before=True)
    return Typed(name, text, start=start, end=cursor.last_end)


def _read_parameter(cursor: Cursor) -> Expression:
    start = cursor.peek().start
    if cursor.take(":"):
        cursor.word("the name of a parameter")
    else:
        cursor.advance()
    return Parameter(start=start, end=cursor.last_end)


def _read_case(cursor: Cursor, expression: Part) -> Expression:
    start = cursor.advance().start
    value = None if cursor.is_at("WHEN") else expression(cursor)
    conditions, results = [], []
    cursor.expect("WHEN")
    while True:
        conditions.append(expression(cursor))
        cursor.expect("THEN")
        results.append(expression(cursor))
        if not cursor.take("WHEN"):
            break
    default = expression(cursor) if cursor.take("ELSE") else None
    cursor.expect("END")
    return Case(value, tuple(conditions), tuple(results), default, start=start, end=cursor.last_end)


def _read_cast(cursor: Cursor, expression: Part, *, is_try: bool) -> Expression:
    start = cursor.advance().start
    cursor.expect("(")
    value = expression(cursor)
    cursor.expect("AS")
    target = read_type(cursor)
    cursor.expect(")")
    return Cast(value, target, is_try, start=start, end=cursor.last_end)


def _read_number(cursor: Cursor) -> Expression:
    start = cursor.peek().start
    sign = "-" if cursor.take("-") else ""
    match = _SUFFIXED.fullmatch(cursor.peek().text)
    if match is None:
        cursor.fail("a number is expected")
    cursor.advance()
    digits, suffix = sign + match[1], (match[2] or "").upper()
    kind = _kind_of_number(cursor, digits, suffix)
    return Number(digits, kind, start=start, end=cursor.last_end)


def _kind_of_number(cursor: Cursor, digits: str, suffix: str) -> NumberKind:
    """Return the type that Spark gives a number, or refuse one that does not fit."""
    has_exponent = "E" in digits.upper()
    kind, bits = _SUFFIXES.get(suffix, ("double" if has_exponent else "decimal", 0))
    if bits:
        is_short = digits.lstrip("-").isdecimal() and len(digits) <= _MAX_PRECISION
        if not is_short or not -(2**bits) <= int(digits) < 2**bits:
            cursor.fail("the number is out of range", is_before=True)
        return kind
    if kind == "decimal":
        if _digits_of(digits) > _MAX_PRECISION:
            cursor.fail("the number has more than 38 digits", is_before=True)
        is_whole = not suffix and digits.lstrip("-").isdecimal()
        return "integer" if is_whole and -(2**63) <= int(digits) < 2**63 else "decimal"
    number = abs(float(digits))
    if math.isinf(number) or (kind == "float" and number > _LARGEST_FLOAT):
        cursor.fail("the number is out of range", is_before=True)
    return kind


def _digits_of(text: str) -> int:
    """Return the precision that a number has as a decimal."""
    exponent = text.upper().partition("E")[2]
    if len(exponent) > 4:  # digits and sign: beyond any decimal
        return _MAX_PRECISION + 1
    _, digits, scale = Decimal(text).as_tuple()
    return max(len(digits) + max(0, int(scale)), -int(scale))
