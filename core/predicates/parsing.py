"""Turns SQL text into a predicate tree: sqlglot parses, this module decides what is understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import or_

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from optimist.core.errors import UsageError
from optimist.core.foreign_text import quoted, shown
from optimist.core.predicates.constants import MAX_PRECISION, cast_literal, number_literal
from optimist.core.predicates.translation import Operation, Operator, Translation
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    ComparisonOp,
    Literal,
    Opaque,
    Predicate,
)
from optimist.core.schema.sql_functions import NON_DETERMINISTIC_FUNCTIONS, function_names
from optimist.core.values.decimals import exactly_at_scale, is_in_range
from optimist.core.values.unicode_text import ensure_unicode

__all__ = [
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
    "TEXT": "string",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}
_NOT_PREDICATES = (exp.Alias, exp.Query, exp.DDL, exp.DML, exp.Block, exp.Command, exp.Star)
_NON_DETERMINISTIC = (
    exp.Anonymous,
    exp.AnonymousAggFunc,
    exp.AggFunc,
    exp.Query,
    exp.Subquery,
    exp.Parameter,
    exp.Placeholder,
)
_OF_THE_MOMENT = re.compile(r"^(Current|Now|Localtime|UtcD|UtcT|Unix|Session)")
_TO_DATE = (exp.TsOrDsToDate, exp.Date)
_DECIMAL_PARAMETER = re.compile(r"[0-9]{1,3}")
_ANSI_CODES = re.compile(r"\x1b\[\d*m")


def parse_predicate(sql: str) -> Predicate:
    """Parse the text of a WHERE clause in Spark's dialect.

    Every part of the text for which the tree has no node becomes an `Opaque` leaf. Names are kept
    as written; `ensure_columns` checks them against a schema.

    Raises:
        UsageError: The text is not a predicate (kind `OPTIMIST_INVALID_PREDICATE`; fields
            `predicate`, and, if the place is known, `line` and `column`, counted from 1), or holds
            half a character (kind `OPTIMIST_INVALID_TEXT`).
    """
    ensure_unicode(sql)
    try:
        parsed = sqlglot.parse_one(sql, read="spark")
        if isinstance(parsed, _NOT_PREDICATES):
            raise _invalid(sql, "it is not a condition on rows", None)
        if any(_is_empty_list(node) for node in parsed.find_all(exp.In)):
            raise _invalid(sql, "the list after IN is empty", None)
        return _SQL_TEXT.predicate(parsed)
    except ParseError as error:
        raise _invalid(sql, *_parse_error_place(error)) from None
    except TokenError:
        raise _invalid(sql, "a quote or a comment is not closed", None) from None
    except SqlglotError as error:
        raise _invalid(sql, str(error), None) from None
    except RecursionError:
        raise _invalid(sql, "it is nested too deeply", None) from None


def parse_column_path(text: str) -> tuple[str, ...]:
    """Parse the name of a column or a struct field, such as ``a.b`` or ``a.`b c` ``, into its path.

    Raises:
        UsageError: The text is not a column's name (kind `OPTIMIST_INVALID_PREDICATE`).
    """
    try:
        column = _column(sqlglot.parse_one(text, read="spark"))
    except (SqlglotError, RecursionError):
        column = None
    if column is None:
        raise UsageError(
            f"The text {quoted(text)} is not the name of a column. Put unusual names in "
            "back-ticks.",
            kind="OPTIMIST_INVALID_PREDICATE",
            predicate=text,
        )
    return column.path


def predicate_of(node: exp.Expr) -> Predicate:
    """The predicate that a part of a parsed text stands for; see `parse_predicate`."""
    return _SQL_TEXT.predicate(node)


def column_of(node: exp.Expr) -> Column | None:
    """The column or struct field that a part of a parsed text names; None for other parts."""
    return _column(node)


def literal_of(node: exp.Expr) -> Literal | None:
    """The constant that a part of a parsed text is; None for other parts, and in doubt."""
    return _literal(node)


def type_name_of(target: exp.Expr) -> str | None:
    """Delta's name of the type that a cast names, for a decimal with its parameters."""
    name = _TYPE_NAMES.get(getattr(target.this, "name", str(target.this)))
    if name != "decimal":
        return name
    precision, scale = _decimal_parameters(target)
    return f"decimal({precision},{scale})" if precision <= MAX_PRECISION else None


def _is_empty_list(node: exp.In) -> bool:
    return not any(node.args.get(part) for part in ("expressions", "query", "unnest", "field"))


def _invalid(sql: str, reason: str, place: tuple[int, int] | None) -> UsageError:
    where = f" (line {place[0]}, column {place[1]})" if place else ""
    fields = {"line": place[0], "column": place[1]} if place else {}
    return UsageError(
        f"The predicate {quoted(sql)} can't be parsed{where}: {shown(reason)}. Correct the SQL, "
        "and put unusual names in back-ticks.",
        kind="OPTIMIST_INVALID_PREDICATE",
        predicate=sql,
        **fields,
    )


def _parse_error_place(error: ParseError) -> tuple[str, tuple[int, int] | None]:
    if not error.errors:
        return "it holds no expression", None
    first = error.errors[0]
    near = _ANSI_CODES.sub("", str(first.get("highlight") or ""))
    what = "something is missing" if "missing" in str(first["description"]) else "unexpected text"
    return f"{what} at {near!r}", (int(first["line"]), int(first["col"]))


class _SqlText(Translation[exp.Expr]):
    """The translation of sqlglot's trees; parentheses are ignored."""

    __slots__ = ()

    def operation(self, term: exp.Expr) -> Operation[exp.Expr] | None:
        term = term.unnest()
        find = _OPERATIONS.get(type(term))
        return None if find is None else find(term)

    def column(self, term: exp.Expr) -> Column | None:
        return _column(term)

    def literal(self, term: exp.Expr) -> Literal | None:
        return _literal(term)

    def opaque(self, term: exp.Expr) -> Opaque:
        return _opaque(term.unnest())

    def converted(
        self, op: ComparisonOp, term: exp.Expr, values: Sequence[Literal]
    ) -> Predicate | None:
        cast = _column_cast(term)
        if cast is None:
            return None
        return reduce(or_, [CastComparison(op, *cast, value) for value in values])


_SQL_TEXT = _SqlText()


def _opaque(node: exp.Expr) -> Opaque:
    paths = {_column(item) for item in node.find_all(exp.Column, exp.Dot)}
    nested = {_column(item.this) for item in node.find_all(exp.Dot)}
    deterministic = not any(map(_may_differ, node.walk()))
    columns = frozenset(column.path for column in paths - nested if column is not None)
    return Opaque(node.sql(dialect="spark", comments=False), columns, deterministic)


def _may_differ(node: exp.Expr) -> bool:
    """Whether a node may give different answers for equal rows, now or in a later statement."""
    if isinstance(node, _NON_DETERMINISTIC) or _OF_THE_MOMENT.match(type(node).__name__):
        return True
    return isinstance(node, exp.Func) and bool(function_names(node) & NON_DETERMINISTIC_FUNCTIONS)


def _sides(operator: Operator) -> Callable[[exp.Expr], Operation[exp.Expr]]:
    return lambda node: (operator, (node.this, node.expression))


def _is(node: exp.Expr) -> Operation[exp.Expr] | None:
    right = node.expression
    if isinstance(right, exp.Null):
        return "IS NULL", (node.this,)
    if isinstance(right, exp.Boolean):
        return "IS TRUE" if right.this else "IS FALSE", (node.this,)
    return None


def _differs_null_safe(node: exp.Expr) -> Operation[exp.Expr]:
    return "NOT", (exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy()),)


def _in(node: exp.Expr) -> Operation[exp.Expr] | None:
    is_plain_list = not any(node.args.get(part) for part in ("query", "unnest", "field"))
    return ("IN", (node.this, *node.expressions)) if is_plain_list else None


def _between(node: exp.Expr) -> Operation[exp.Expr] | None:
    if node.args.get("symmetric"):
        return None
    return "BETWEEN", (node.this, node.args["low"], node.args["high"])


def _like(node: exp.Expr) -> Operation[exp.Expr] | None:
    like = node.this if isinstance(node, exp.Escape) else node
    if type(like) is not exp.Like:
        return None
    if like.args.get("negate"):
        # Some versions of the parser express NOT LIKE by a flag instead of a Not node.
        return "NOT", (_without_flag(node),)
    escape = (node.expression,) if like is not node else ()
    return "LIKE", (like.this, like.expression, *escape)


def _without_flag(node: exp.Expr) -> exp.Expr:
    bare = node.copy()
    (bare.this if isinstance(bare, exp.Escape) else bare).set("negate", None)
    return bare


def _null_function(node: exp.Expr) -> Operation[exp.Expr] | None:
    operators: dict[str, Operator] = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
    operator = operators.get(str(node.this).lower())
    return None if operator is None else (operator, node.expressions)


_OPERATIONS: dict[type[exp.Expr], Callable[[exp.Expr], Operation[exp.Expr] | None]] = {
    exp.And: _sides("AND"),
    exp.Or: _sides("OR"),
    exp.Not: lambda node: ("NOT", (node.this,)),
    exp.EQ: _sides("="),
    exp.NEQ: _sides("<>"),
    exp.LT: _sides("<"),
    exp.LTE: _sides("<="),
    exp.GT: _sides(">"),
    exp.GTE: _sides(">="),
    exp.NullSafeEQ: _sides("<=>"),
    exp.NullSafeNEQ: _differs_null_safe,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _like,
    exp.StartsWith: _sides("STARTS WITH"),
    exp.EndsWith: _sides("ENDS WITH"),
    exp.Contains: _sides("CONTAINS"),
    exp.Anonymous: _null_function,
}


def _column(node: exp.Expr) -> Column | None:
    node = node.unnest()
    names: list[str] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        names.insert(0, node.expression.name)
        node = node.this
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    return Column((*(part.name for part in node.parts), *names))


def _literal(node: exp.Expr) -> Literal | None:
    node = node.unnest()
    if isinstance(node, exp.Null):
        return Literal(None, "null")
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this), "boolean")
    if isinstance(node, exp.Literal):
        text = str(node.this)
        return Literal(text, "string") if node.is_string else number_literal(text)
    if isinstance(node, exp.RawString):
        return Literal(str(node.this), "string")
    if isinstance(node, exp.HexString):
        digits = str(node.this)
        return Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), "binary")
    if isinstance(node, exp.Neg):
        return _negated(_literal(node.this))
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return _cast(node)
    return None


def _negated(literal: Literal | None) -> Literal | None:
    if literal is None or isinstance(literal.value, bool):
        return None
    if literal.kind in ("integer", "decimal") and str(literal.value) == str(2**63):
        return Literal(-(2**63), "integer")
    if literal.kind not in ("integer", "decimal", "float", "double"):
        return None
    if isinstance(literal.value, Decimal):
        return Literal(literal.value.copy_negate(), literal.kind)
    if isinstance(literal.value, (int, float)):
        return Literal(-literal.value, literal.kind)
    return None


def _cast(node: exp.Expr) -> Literal | None:
    inner, target = _literal(node.this), node.args["to"]
    name = _TYPE_NAMES.get(getattr(target.this, "name", str(target.this)))
    if inner is None or name is None or node.args.get("format"):
        return None
    literal = cast_literal(inner, name)
    if literal is not None and isinstance(literal.value, Decimal):
        return _at_declared_scale(literal.value, target)
    return literal


def _column_cast(node: exp.Expr) -> tuple[Column, str] | None:
    """The column and type of `CAST(column AS type)` or `to_date(column)`; None for other nodes."""
    node = node.unnest()
    if isinstance(node, _TO_DATE) and not node.args.get("format") and not node.expressions:
        column = _column(node.this)
        return None if column is None else (column, "date")
    if not isinstance(node, (exp.Cast, exp.TryCast)) or node.args.get("format"):
        return None
    column, name = _column(node.this), type_name_of(node.args["to"])
    if column is None or name is None or name in ("string", "boolean"):
        return None
    return column, name


def _decimal_parameters(target: exp.Expr) -> tuple[int, int]:
    parameters = [_decimal_parameter(str(item.this.this)) for item in target.expressions]
    precision, scale = (*parameters, *(10, 0)[len(parameters) :])
    return precision, scale


def _decimal_parameter(text: str) -> int:
    return int(text) if _DECIMAL_PARAMETER.fullmatch(text) else MAX_PRECISION + 1


def _at_declared_scale(number: Decimal, target: exp.Expr) -> Literal | None:
    """The number as a `DECIMAL(precision, scale)`; None if that would round or overflow."""
    precision, scale = _decimal_parameters(target)
    try:
        fitted = exactly_at_scale(number, scale)
    except InvalidOperation:
        return None
    return Literal(fitted, "decimal") if is_in_range(fitted, precision, scale) else None
