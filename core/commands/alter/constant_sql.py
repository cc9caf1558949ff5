"""The check that SQL for a column's default is a constant expression, judged by its text."""

from __future__ import annotations

from optimist.core.commands.alter.default_values import invalid_default
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.functions import AGGREGATES, GENERATORS, NON_DETERMINISTIC, WINDOWS
from optimist.core.expressions.names import free_names
from optimist.core.expressions.tree import Call, Expression, Parameter, Subquery, walk

__all__ = ["ensure_constant"]

_NOT_CONSTANT = AGGREGATES | GENERATORS | NON_DETERMINISTIC | WINDOWS


def ensure_constant(column: str, sql: str) -> None:
    """Refuse a default that reads columns, holds a subquery or an aggregate, or is not SQL.

    Raises:
        SchemaError: The default is refused (kind `INVALID_DEFAULT_VALUE`; fields `column`,
            `expression`).
    """
    try:
        parsed = parse_expression(sql)
    except NotSqlError as error:
        raise invalid_default(column, sql, f"it is not a SQL expression ({error})") from None
    for name in free_names(parsed):
        if not name.is_call:
            found = ".".join(name.path)
            raise invalid_default(column, sql, f"it is not a constant, as it reads {found}")
    for node in walk(parsed):
        if _may_vary(node):
            raise invalid_default(column, sql, "it is not a constant")


def _may_vary(node: Expression) -> bool:
    if isinstance(node, Call):
        return node.name in _NOT_CONSTANT
    return isinstance(node, Subquery | Parameter)
