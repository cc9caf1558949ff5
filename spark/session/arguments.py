"""Checks of our entry points' arguments, in the words of Delta's own Python API.

Users' tests look for those words, and catch `TypeError` and `ValueError`; `ArgumentTypeError` is
both of these and a `UsageError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from pyspark.sql import Column, DataFrame

from optimist.core.errors import ArgumentTypeError, UsageError

__all__ = [
    "ExpressionOrColumn",
    "ensure_assignments",
    "ensure_condition",
    "ensure_exactly",
    "ensure_frame",
    "ensure_given",
    "ensure_kind",
    "ensure_source",
    "ensure_value",
    "version_number",
]

ExpressionOrColumn: TypeAlias = str | Column

_NUMBER = re.compile(r"[+-]?[0-9]{1,30}")
_MOST = 2**63 - 1


def ensure_kind(value: object, expected: type, name: str) -> None:
    """Refuse a value that is not of the expected class, where a bool is not an int.

    Raises:
        ArgumentTypeError: The value is of another class.
    """
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is int):
        raise _wrong_type(name, f"must be a {expected.__name__}, found to be {type(value)}")


def ensure_exactly(value: object, expected: tuple[type, ...], argument: str, wanted: str) -> None:
    """Refuse a value of another class, subclasses included, as builders of `delta.tables` do.

    Args:
        value: What the caller passed.
        expected: The classes that it may have.
        argument: The argument's name in the error.
        wanted: A description of what it must be.

    Raises:
        ArgumentTypeError: The value is of another class.
    """
    if type(value) not in expected:
        raise _wrong_type(argument, f"must be {wanted}. Found {value} with type {type(value)}")


def ensure_value(value: object, expected: type | tuple[type, ...], name: str, wanted: str) -> None:
    """Refuse a value of another class where `delta.tables` raises a `ValueError`.

    Raises:
        ArgumentTypeError: The value is of another class; this is a `ValueError`, too.
    """
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise _wrong_type(name, f"needs to be {wanted} but got '{type(value)}'. Nothing was done")


def ensure_frame(value: object) -> None:
    """Refuse to write a value that is not a DataFrame, classic or of Spark Connect.

    Raises:
        ArgumentTypeError: The value is something else.
    """
    if not isinstance(value, DataFrame):
        raise _wrong_type(
            "df",
            f"must be a DataFrame, found to be {type(value)}. Make one with "
            "spark.createDataFrame(rows, schema); without Spark, DeltaLog.append takes an Arrow "
            "table. Nothing was written",
        )


def ensure_given(value: object, name: str) -> None:
    """Refuse None.

    Raises:
        UsageError: The value is None.
    """
    if value is None:
        raise UsageError(
            f"{name} cannot be None. Nothing was written. Give it a value.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=name,
        )


def ensure_source(value: object) -> None:
    """Refuse to merge a value that is not a DataFrame, classic or of Spark Connect.

    Raises:
        UsageError: The value is None.
        ArgumentTypeError: The value is something else.
    """
    ensure_given(value, "'source' in merge")
    if not isinstance(value, DataFrame):
        raise _wrong_type("Type of 'source' in merge", "must be DataFrame")


def ensure_condition(condition: object) -> None:
    """Refuse a condition that is not None, SQL text or a column.

    Raises:
        ArgumentTypeError: The condition is something else.
    """
    if condition is not None and not isinstance(condition, (str, Column)):
        raise _wrong_type(
            "'condition'",
            "must be a Spark SQL Column or a string (expression in SQL syntax), found to be of "
            f"type {type(condition)}",
        )


def ensure_assignments(given: object, argument: str = "'set'") -> Mapping[str, ExpressionOrColumn]:
    """Check and return an update's assignments: a dict of names to SQL texts or columns.

    Args:
        given: What the caller passed.
        argument: The argument's name in errors.

    Raises:
        UsageError: `given` is None.
        ArgumentTypeError: `given` is not a dict, or has keys or values of other types.
    """
    ensure_given(given, argument)
    if not isinstance(given, Mapping):
        raise _wrong_type(argument, f"must be a dict, found to be {type(given)}")
    for name, value in given.items():
        if not isinstance(name, str):
            raise _wrong_type(
                f"Keys of dict in {argument}",
                f"must contain only strings with column names, found '{name}' of type {type(name)}",
            )
        if not isinstance(value, (str, Column)):
            raise _wrong_type(
                f"Values of dict in {argument}",
                "must contain only Spark SQL Columns or strings (expressions in SQL syntax) as "
                f"values, found '{value}' of type '{type(value)}'",
            )
    return dict(given)


def version_number(value: object) -> int | None:
    """Return the version that an option gives as a number or text, or None."""
    text = str(value)
    if isinstance(value, bool) or not _NUMBER.fullmatch(text):
        return None
    version = int(text)
    return version if abs(version) <= _MOST else None


def _wrong_type(argument: str, problem: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{argument} {problem}.", kind="OPTIMIST_INVALID_ARGUMENT_TYPE", argument=argument
    )
