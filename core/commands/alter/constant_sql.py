"""Whether SQL for a column's default is a constant expression, as far as its text tells."""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from optimist.core.commands.alter.row_checks import invalid_default

__all__ = ["ensure_constant"]

_NOT_CONSTANT = (exp.Column, exp.Query, exp.AggFunc, exp.Window, exp.Placeholder, exp.Parameter)


def ensure_constant(column: str, sql: str) -> None:
    """Refuse a default that reads columns, holds a subquery or an aggregate, or is no SQL.

    Raises:
        SchemaError: It is such (kind `INVALID_DEFAULT_VALUE`; fields `column`, `expression`).
    """
    try:
        tree = parse_one(sql, dialect="databricks")
    except (SqlglotError, RecursionError) as error:
        raise invalid_default(column, sql, f"it is no SQL expression ({error})") from None
    if not isinstance(tree, exp.Condition):
        raise invalid_default(column, sql, "it is no expression")
    found = tree.find(*_NOT_CONSTANT)
    if found is not None:
        raise invalid_default(column, sql, f"it is not a constant, as it holds {found.sql()}")
