"""SQL text to a predicate tree: sqlglot parses, this module judges what is understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_, or_

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from optimist.core.errors import UsageError
from optimist.core.predicates.constants import MAX_PRECISION, cast_literal, number_literal
from optimist.core.predicates.text import like_parts
from optimist.core.predicates.tree import (
    FLIPPED,
    BooleanLiteral,
    CastComparison,
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    NullSafeEqual,
    Opaque,
    Operand,
    Predicate,
    StartsWith,
)

__all__ = ["parse_column_path", "parse_predicate"]

_COMPARISONS: dict[type[exp.Expr], ComparisonOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
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
_NON_DETERMINISTIC_NAMES = re.compile(r"^(Rand|Uuid|Current|Now|Localtime|UtcD|UtcT|Unix|Session)")
_TO_DATE = (exp.TsOrDsToDate, exp.Date)
_ANSI_CODES = re.compile(r"\x1b\[\d*m")


def parse_predicate(sql: str) -> Predicate:
    """A predicate from the text of a WHERE clause in Spark's dialect.

    What the text says is understood where the tree has a node for it; every other part becomes an
    `Opaque` leaf. Names are kept as written; `ensure_columns` checks them against a schema.

    Raises:
        UsageError: The text is no predicate (kind `OPTIMIST_INVALID_PREDICATE`; fields
            `predicate`, and `line` and `column` from 1 where the place is known).
    """
    try:
        parsed = sqlglot.parse_one(sql, read="spark")
        if isinstance(parsed, _NOT_PREDICATES):
            raise _invalid(sql, "it is not a condition on rows", None)
        if any(_is_empty_list(node) for node in parsed.find_all(exp.In)):
            raise _invalid(sql, "the list after IN is empty", None)
        return _predicate(parsed)
    except ParseError as error:
        raise _invalid(sql, *_parse_error_place(error)) from None
    except TokenError:
        raise _invalid(sql, "a quote or a comment is not closed", None) from None
    except SqlglotError as error:
        raise _invalid(sql, str(error), None) from None
    except RecursionError:
        raise _invalid(sql, "it is nested too deeply", None) from None


def parse_column_path(text: str) -> tuple[str, ...]:
    """The path of a column from its text: ``a.b`` and ``a.`b c` ``.

    Raises:
        UsageError: The text names no column (kind `OPTIMIST_INVALID_PREDICATE`).
    """
    try:
        column = _column(sqlglot.parse_one(text, read="spark"))
    except SqlglotError:
        column = None
    if column is None:
        raise UsageError(
            f"{text!r} is no name of a column. Put unusual names in back-ticks.",
            kind="OPTIMIST_INVALID_PREDICATE",
            predicate=text,
        )
    return column.path


def _is_empty_list(node: exp.In) -> bool:
    return not any(node.args.get(part) for part in ("expressions", "query", "unnest", "field"))


def _invalid(sql: str, reason: str, place: tuple[int, int] | None) -> UsageError:
    shown = sql if len(sql) <= 200 else sql[:200] + "..."
    where = f" (line {place[0]}, column {place[1]})" if place else ""
    fields = {"line": place[0], "column": place[1]} if place else {}
    return UsageError(
        f"The predicate {shown!r} can't be parsed{where}: {reason}.",
        kind="OPTIMIST_INVALID_PREDICATE",
        predicate=sql,
        **fields,
    )


def _parse_error_place(error: ParseError) -> tuple[str, tuple[int, int] | None]:
    if not error.errors:
        return "there is no expression in it", None
    first = error.errors[0]
    near = _ANSI_CODES.sub("", str(first.get("highlight") or ""))
    what = "something is missing" if "missing" in str(first["description"]) else "unexpected text"
    return f"{what} at {near!r}", (int(first["line"]), int(first["col"]))


def _predicate(node: exp.Expr) -> Predicate:
    """The node as a condition; never fails, at worst it is opaque."""
    rule = _RULES.get(type(node))
    found = rule(node) if rule else None
    if found is None:
        return _opaque(node)
    # Some versions of the parser say NOT LIKE with a flag instead of a node of its own.
    return Not(found) if node.args.get("negate") else found


def _opaque(node: exp.Expr) -> Opaque:
    paths = {_column(item) for item in node.find_all(exp.Column, exp.Dot)}
    nested = {_column(item.this) for item in node.find_all(exp.Dot)}
    deterministic = not any(
        isinstance(item, _NON_DETERMINISTIC) or _NON_DETERMINISTIC_NAMES.match(type(item).__name__)
        for item in node.walk()
    )
    columns = frozenset(column.path for column in paths - nested if column is not None)
    return Opaque(node.sql(dialect="spark", comments=False), columns, deterministic)


def _connective(
    combine: Callable[[Predicate, Predicate], Predicate],
) -> Callable[[exp.Expr], Predicate]:
    def rule(node: exp.Expr) -> Predicate:
        # A chain of a thousand ORs leans to one side: walk it, don't recurse.
        pending, parts = [node], []
        while pending:
            item = pending.pop()
            if type(item) is type(node):
                pending += [item.expression, item.this]
            else:
                parts.append(_predicate(item))
        return reduce(combine, parts)

    return rule


def _comparison(node: exp.Expr) -> Predicate | None:
    op = _COMPARISONS[type(node)]
    left, right = _operand(node.this), _operand(node.expression)
    if isinstance(left, Column) and right is not None:
        return Comparison(op, left, right)
    if isinstance(left, Literal) and isinstance(right, Column):
        return Comparison(FLIPPED[op], right, left)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _fold(op, left, right)
    return _compared_cast(op, node) or _compared_with_truth(op, node)


def _compared_cast(op: ComparisonOp, node: exp.Expr) -> Predicate | None:
    """`CAST(column AS type) < constant`, either way round."""
    for side, other, direction in (
        (node.this, node.expression, op),
        (node.expression, node.this, FLIPPED[op]),
    ):
        cast, constant = _column_cast(side), _literal(other)
        if cast is not None and constant is not None:
            return CastComparison(direction, *cast, constant)
    return None


def _fold(op: ComparisonOp, left: Literal, right: Literal) -> Predicate | None:
    """`1 = 1` and its like, which people write as a way of saying TRUE."""
    if left.value is None or right.value is None:
        return BooleanLiteral(None)
    if left.kind != right.kind or op not in ("=", "<>"):
        return None
    if left.kind not in ("integer", "string", "boolean"):
        return None
    return BooleanLiteral((left.value == right.value) == (op == "="))


def _compared_with_truth(op: ComparisonOp, node: exp.Expr) -> Predicate | None:
    """`(condition) = true` and its like."""
    for condition, other in ((node.this, node.expression), (node.expression, node.this)):
        truth = _operand(other)
        if not (isinstance(truth, Literal) and isinstance(truth.value, bool)):
            continue
        if op in ("=", "<>") and _is_condition(condition):
            same = truth.value == (op == "=")
            return _predicate(condition) if same else Not(_predicate(condition))
    return None


def _is_condition(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, (exp.Connector, exp.Predicate, exp.Not)) and type(bare) in _RULES


def _null_safe_equal(node: exp.Expr) -> Predicate | None:
    left, right = _operand(node.this), _operand(node.expression)
    if isinstance(left, Column) and right is not None:
        return NullSafeEqual(left, right)
    if isinstance(left, Literal) and isinstance(right, Column):
        return NullSafeEqual(right, left)
    for condition, truth in ((node.this, right), (node.expression, left)):
        is_truth = isinstance(truth, Literal) and isinstance(truth.value, bool)
        if is_truth and _is_condition(condition):
            assert isinstance(truth, Literal)
            return _is_truth(_predicate(condition), truth.value is True)
    return None


def _is(node: exp.Expr) -> Predicate | None:
    right = node.expression
    if isinstance(right, exp.Null):
        column = _column(node.this)
        return None if column is None else IsNull(column)
    if isinstance(right, exp.Boolean):
        return _is_truth(_predicate(node.this), bool(right.this))
    return None


def _is_truth(condition: Predicate, value: bool) -> Predicate:
    return IsTrue(condition if value else Not(condition))


def _in(node: exp.Expr) -> Predicate | None:
    column = _column(node.this)
    values = [_literal(item) for item in node.expressions]
    known = tuple(value for value in values if value is not None)
    is_plain_list = not (
        node.args.get("query") or node.args.get("unnest") or node.args.get("field")
    )
    if not known or len(known) != len(values) or not is_plain_list:
        return None
    if column is None:
        cast = _column_cast(node.this)
        return None if cast is None else _any_of(CastComparison("=", *cast, item) for item in known)
    return In(column, known)


def _any_of(parts: Iterable[Predicate]) -> Predicate:
    return reduce(or_, parts)


def _between(node: exp.Expr) -> Predicate | None:
    column, low, high = _column(node.this), _operand(node.args["low"]), _operand(node.args["high"])
    if low is None or high is None or node.args.get("symmetric"):
        return None
    if column is None:
        return _cast_between(node, low, high)
    return Comparison(">=", column, low) & Comparison("<=", column, high)


def _cast_between(node: exp.Expr, low: Operand, high: Operand) -> Predicate | None:
    cast = _column_cast(node.this)
    if cast is None or not isinstance(low, Literal) or not isinstance(high, Literal):
        return None
    return CastComparison(">=", *cast, low) & CastComparison("<=", *cast, high)


def _like(node: exp.Expr) -> Predicate | None:
    escape, negate = "\\", False
    if isinstance(node, exp.Escape):
        character = _literal(node.expression)
        node = node.this
        # Under ESCAPE the flag of NOT LIKE hangs on the inner node, which `_predicate` never sees.
        negate = bool(node.args.get("negate"))
        if character is None or not isinstance(character.value, str) or not character.value:
            return None
        escape = character.value
    if type(node) is not exp.Like:
        return None
    column, pattern = _column(node.this), _literal(node.expression)
    if column is None or pattern is None or not isinstance(pattern.value, str):
        return None
    parts = like_parts(pattern.value, escape)
    if parts is None:
        return None
    return Not(Like(column, parts)) if negate else Like(column, parts)


def _text_test(
    build: Callable[[Column, str], Predicate],
) -> Callable[[exp.Expr], Predicate | None]:
    def rule(node: exp.Expr) -> Predicate | None:
        column, text = _column(node.this), _literal(node.expression)
        if column is None or text is None or not isinstance(text.value, str):
            return None
        return build(column, text.value)

    return rule


def _ends_with(column: Column, text: str) -> Predicate:
    return Like(column, ((True, "%"), *(((False, text),) if text else ())))


def _contains(column: Column, text: str) -> Predicate:
    return Like(column, ((True, "%"), *(((False, text), (True, "%")) if text else ())))


def _null_function(node: exp.Expr) -> Predicate | None:
    name = str(node.this).lower()
    column = _column(node.expressions[0]) if len(node.expressions) == 1 else None
    if column is None or name not in ("isnull", "isnotnull"):
        return None
    return IsNull(column) if name == "isnull" else Not(IsNull(column))


def _flag(node: exp.Expr) -> Predicate | None:
    column = _column(node)
    return None if column is None else Comparison("=", column, Literal(True, "boolean"))


_RULES: dict[type[exp.Expr], Callable[[exp.Expr], Predicate | None]] = {
    exp.Paren: lambda node: _predicate(node.this),
    exp.And: _connective(and_),
    exp.Or: _connective(or_),
    exp.Not: lambda node: Not(_predicate(node.this)),
    exp.NullSafeEQ: _null_safe_equal,
    exp.NullSafeNEQ: lambda node: None if (same := _null_safe_equal(node)) is None else Not(same),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _like,
    exp.StartsWith: _text_test(StartsWith),
    exp.EndsWith: _text_test(_ends_with),
    exp.Contains: _text_test(_contains),
    exp.Anonymous: _null_function,
    exp.Boolean: lambda node: BooleanLiteral(bool(node.this)),
    exp.Null: lambda _node: BooleanLiteral(None),
    exp.Column: _flag,
    exp.Dot: _flag,
    **dict.fromkeys(_COMPARISONS, _comparison),
}


def _operand(node: exp.Expr) -> Operand | None:
    return _column(node) or _literal(node)


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
    return Literal(-literal.value, literal.kind)  # type: ignore[operator]  # kinds of numbers


def _cast(node: exp.Expr) -> Literal | None:
    inner, target = _literal(node.this), node.args["to"]
    name = _TYPE_NAMES.get(getattr(target.this, "name", str(target.this)))
    if inner is None or name is None or node.args.get("format"):
        return None
    literal = cast_literal(inner, name)
    if name == "decimal" and literal is not None and literal.value is not None:
        return literal if _fits(literal, target) else None
    return literal


def _column_cast(node: exp.Expr) -> tuple[Column, str] | None:
    """The column and the type of `CAST(column AS type)` and of `to_date(column)`."""
    node = node.unnest()
    if isinstance(node, _TO_DATE) and not node.args.get("format") and not node.expressions:
        column = _column(node.this)
        return None if column is None else (column, "date")
    if not isinstance(node, (exp.Cast, exp.TryCast)) or node.args.get("format"):
        return None
    column, target = _column(node.this), node.args["to"]
    name = _TYPE_NAMES.get(getattr(target.this, "name", str(target.this)))
    if column is None or name in (None, "string", "boolean"):
        return None
    if name == "decimal":
        precision, scale = _decimal_parameters(target)
        if precision > MAX_PRECISION:
            return None
        name = f"decimal({precision},{scale})"
    return column, str(name)


def _decimal_parameters(target: exp.Expr) -> tuple[int, int]:
    parameters = [int(str(item.this.this)) for item in target.expressions]
    precision, scale = (*parameters, *(10, 0)[len(parameters) :])
    return precision, scale


def _fits(literal: Literal, target: exp.Expr) -> bool:
    """Whether `DECIMAL(precision, scale)` holds the number without rounding."""
    precision, scale = _decimal_parameters(target)
    text = str(literal.value).lstrip("-")
    whole, _, fraction = text.partition(".")
    return len(fraction.rstrip("0")) <= scale and len(whole.lstrip("0")) <= precision - scale


# The base class can't import its own parser.
Predicate.parse = staticmethod(parse_predicate)
