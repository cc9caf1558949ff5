"""Names that users may hold and that have moved: they work for one version, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

from optimist.core.errors import UsageError

__all__ = ["renamed_argument", "warn_renamed"]


def warn_renamed(old: str, new: str, *, frames: int = 2) -> None:
    """Tell the author of the code that calls our method that a name goes with the next version.

    Args:
        old: What they wrote.
        new: What to write instead.
        frames: How many calls away from this one their code is.
    """
    warnings.warn(
        f"{old} is now {new}; the old name goes with the next version of Optimist.",
        DeprecationWarning,
        stacklevel=frames + 1,
    )


def renamed_argument(old_name: str, old: Any, new_name: str, new: Any) -> Any:
    """The value of an argument of our method that may still be given by its old name.

    Raises:
        UsageError: It is given by both names.
    """
    if old is None:
        return new
    if new is not None:
        raise UsageError(
            f"The arguments {new_name} and {old_name} mean the same, and both are given. Nothing "
            f"was written. Give {new_name} only.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=old_name,
        )
    warn_renamed(f"The argument {old_name}", new_name, frames=3)
    return old
