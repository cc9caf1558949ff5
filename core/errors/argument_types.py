"""Errors for arguments of the wrong type."""

from __future__ import annotations

from optimist.core.errors import ArgumentTypeError
from optimist.core.errors.foreign_text import shown

__all__ = ["ensure_text", "wrong_type"]


def ensure_text(given: object, argument: str) -> None:
    """Refuse an argument that is not text.

    Raises:
        ArgumentTypeError: The argument has another type (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if not isinstance(given, str):
        raise wrong_type(argument, given, "text")


def wrong_type(argument: str, given: object, wanted: str) -> ArgumentTypeError:
    """Return the error for an argument of the wrong type."""
    return ArgumentTypeError(
        f"The argument {argument} must be {wanted}; it is of type {shown(type(given).__name__)}. "
        "Nothing was written. Pass another value.",
        kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
        argument=argument,
    )
