"""The error for commands that are known by name and not built yet."""

from __future__ import annotations

from optimist.core.errors import UsageError

__all__ = ["not_built_yet"]


def not_built_yet(command: str, way_out: str = "Run it with another engine.") -> UsageError:
    """The error; nothing has happened when it is raised.

    Args:
        command: What users call it, such as `VACUUM`.
        way_out: What they can do instead, as a sentence.
    """
    return UsageError(
        f"{command} is not built yet. Nothing was read or written. {way_out}",
        kind="OPTIMIST_NOT_BUILT_YET",
        command=command,
    )
