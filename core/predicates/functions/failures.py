"""The errors that a computed value raises where Spark's ANSI mode raises one."""

from __future__ import annotations

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.types import DataType

__all__ = ["UnknownMeaningError", "divided_by_zero", "does_not_fit", "wrong_date", "wrong_text"]


class UnknownMeaningError(Exception):
    """An expression has a part that only Spark can compute; the text says which part."""


def does_not_fit(what: str, target: DataType) -> SchemaError:
    """Return the error for a value that its type can't hold."""
    return SchemaError(
        f"A value of {shown(what)} does not fit {shown(target)}. Nothing was written. Cast it "
        "yourself, or leave out the rows where it does not fit.",
        kind="OPTIMIST_VALUE_DOES_NOT_FIT",
        column=what,
        type=str(target),
    )


def divided_by_zero(what: str) -> SchemaError:
    """Return the error for a division by zero."""
    return SchemaError(
        f"The expression {shown(what)} divides by zero in a row. Nothing was changed. Leave out "
        "such rows, or write nullif(divisor, 0), which makes the result null.",
        kind="DIVIDE_BY_ZERO",
        expression=what,
    )


def wrong_date(what: str) -> SchemaError:
    """Return the error for numbers that make no date."""
    return SchemaError(
        f"The expression {shown(what)} makes a date that there is not in a row. Nothing was "
        "changed. Leave out such rows.",
        kind="OPTIMIST_VALUE_DOES_NOT_FIT",
        column=what,
        type="date",
    )


def wrong_text(what: str, target: DataType) -> SchemaError:
    """Return the error for a text that is no value of the type that it is cast to."""
    return SchemaError(
        f"A text of {shown(what)} is not a value of the type {shown(target)}. Nothing was changed. "
        "Write try_cast, which makes the result null, or leave out such rows.",
        kind="CAST_INVALID_INPUT",
        expression=what,
        type=str(target),
    )
