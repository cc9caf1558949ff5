"""Whether SQL for a column's default is a constant expression, as far as its text tells."""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from optimist.core.errors import SchemaError
from optimist.core.foreign_text import quoted, shown

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
        raise _invalid(column, sql, f"is no SQL expression ({shown(error)})") from None
    if not isinstance(tree, exp.Condition):
        raise _invalid(column, sql, "is no expression")
    found = tree.find(*_NOT_CONSTANT)
    if found is not None:
        raise _invalid(column, sql, f"is not a constant: it holds {quoted(found.sql())}")


def _invalid(column: str, sql: str, reason: str) -> SchemaError:
    return SchemaError(
        f"The default value {quoted(sql)} of the column {shown(column)} {reason}. Nothing was "
        "written. Use a constant, such as 0, 'none' or current_date().",
        kind="INVALID_DEFAULT_VALUE",
        column=column,
        expression=sql,
    )
