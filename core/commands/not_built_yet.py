"""The error for commands that are known but not built yet."""

from __future__ import annotations

from optimist.core.errors import UsageError

__all__ = ["not_built_yet"]


def not_built_yet(command: str, way_out: str = "Run it with another engine.") -> UsageError:
    """Return the error, for use before anything has happened.

    Args:
        command: The command's name, such as `VACUUM`.
        way_out: A sentence that says what users can do instead.
    """
    return UsageError(
        f"{command} is not built yet. Nothing was read or written. {way_out}",
        kind="OPTIMIST_NOT_BUILT_YET",
        command=command,
    )
