"""Errors for Python's own operators on columns and predicates."""

from __future__ import annotations

from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.core.errors.foreign_text import shown

__all__ = ["never_true", "no_predicate", "no_truth_value"]


def no_truth_value(text: str) -> UsageError:
    """Return the error for Python's `and`, `or`, `not`, `in` and `if` over a column or predicate.

    Args:
        text: The column or predicate, as SQL.
    """
    return UsageError(
        f"Python asked whether {shown(text)} is true, as `and`, `or`, `not`, `in`, `if` and "
        "comparisons in a chain do. The answer differs from row to row. Nothing was done. Join "
        "predicates by &, | and ~, each in parentheses, and use between, isin or like.",
        kind="OPTIMIST_PREDICATE_AS_BOOL",
        predicate=text,
    )


def no_predicate(given: object, what: str, argument: str) -> ArgumentTypeError:
    """Return the error for a value that is not a predicate.

    Args:
        given: The value.
        what: The role of the value, as the subject of a sentence.
        argument: The name of the argument.
    """
    is_of_arrow = type(given).__module__.startswith("pyarrow.")
    of_arrow = ", an expression of pyarrow, whose meaning is not that of SQL" if is_of_arrow else ""
    return ArgumentTypeError(
        f"{what} must be a predicate. It is of type {shown(type(given).__name__)}{of_arrow}. "
        'Nothing was done. Compare a column, as in `col("a") == 1` with `col` of optimist.core, '
        "each comparison in parentheses, or parse SQL by Predicate.parse.",
        kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
        argument=argument,
    )


def never_true(text: str) -> UsageError:
    """Return the error for a comparison with None, which is true for no row.

    Args:
        text: The column, as SQL.
    """
    return UsageError(
        f"A comparison of {shown(text)} with None is true for no row, as in SQL. Nothing was "
        "written. Use is_null() or ~is_null(), or eq_null_safe(None).",
        kind="OPTIMIST_INVALID_LITERAL",
        type="NoneType",
    )
