"""Errors for arguments of the wrong type."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import numpy as np

from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.core.errors.foreign_text import shown

__all__ = [
    "ensure_kind",
    "ensure_mapping",
    "ensure_optional_function",
    "ensure_optional_text",
    "ensure_text",
    "flag",
    "optional_whole",
    "whole_number",
    "wrong_type",
]


def ensure_text(given: object, argument: str) -> None:
    """Refuse an argument that is not text.

    Raises:
        ArgumentTypeError: The argument has another type (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if not isinstance(given, str):
        raise wrong_type(argument, given, "text")


def ensure_optional_text(given: object, argument: str) -> None:
    """Refuse an argument that is neither text nor None (see `ensure_text`)."""
    if given is not None:
        ensure_text(given, argument)


def ensure_optional_function(given: object, argument: str) -> None:
    """Refuse an argument that is neither a function of one argument nor None."""
    if given is not None and not callable(given):
        raise wrong_type(argument, given, "a function of one argument")


def ensure_mapping(given: object, argument: str, wanted: str) -> None:
    """Refuse an argument that is not a mapping from texts, such as a dict.

    Args:
        given: The argument.
        argument: Its name.
        wanted: What it must be, for the error.

    Raises:
        ArgumentTypeError: It has another type, or a key that is not text (kind
            `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if not isinstance(given, Mapping):
        raise wrong_type(argument, given, wanted)
    for key in given:
        if not isinstance(key, str):
            raise wrong_type(f"{argument}, key {shown(key)},", key, "text")


def ensure_kind(given: object, argument: str, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument that is no instance of a class.

    Args:
        given: The argument.
        argument: Its name.
        kind: The class, or several.
        wanted: What it must be, for the error.

    Raises:
        ArgumentTypeError: It is none (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if not isinstance(given, kind):
        raise wrong_type(argument, given, wanted)


def whole_number(given: object, argument: str, *, least: int | None = None) -> int:
    """Return an argument that is a whole number, of Python or NumPy.

    Args:
        given: The argument.
        argument: Its name.
        least: The least number that is allowed; None for any.

    Raises:
        ArgumentTypeError: It is something else, such as text, a float or a bool (kind
            `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        UsageError: It is below the least (kind `OPTIMIST_INVALID_ARGUMENT`).
    """
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise wrong_type(argument, given, "a whole number, such as 5")
    number = operator.index(given)
    if least is not None and number < least:
        raise UsageError(
            f"The argument {argument} must be at least {least}, and is {shown(number)}. Nothing "
            "was done. Pass another number.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=argument,
        )
    return number


def optional_whole(given: object, argument: str, *, least: int | None = None) -> int | None:
    """Return an argument that is a whole number or None (see `whole_number`)."""
    return None if given is None else whole_number(given, argument, least=least)


def flag(given: object, argument: str) -> bool:
    """Return an argument that is true or false, of Python or NumPy; None counts as false.

    Raises:
        ArgumentTypeError: It is something else, such as text, or an expression, whose truth Python
            can't tell (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    is_number = hasattr(given, "__index__") and operator.index(given) in (0, 1)
    if given is None or isinstance(given, bool | np.bool_) or is_number:
        return bool(given)
    raise wrong_type(argument, given, "True or False")


def wrong_type(argument: str, given: object, wanted: str) -> ArgumentTypeError:
    """Return the error for an argument of the wrong type."""
    return ArgumentTypeError(
        f"The argument {argument} must be {wanted}; it is of type {shown(type(given).__name__)}. "
        "Nothing was done. Pass another value.",
        kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
        argument=argument,
    )
