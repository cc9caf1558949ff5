"""Errors that say that a Spark Connect server no longer answers.

They are no answer: who asks a server whether it knows something must not take them for a "no".
"""

from __future__ import annotations

__all__ = ["is_of_lost_server"]


def is_of_lost_server(error: BaseException) -> bool:
    """Return whether a Spark Connect client gave up, since nobody answers it."""
    seen: BaseException | None = error
    while seen is not None:
        code = getattr(seen, "code", None)  # that of gRPC, which classic sessions do not have
        if callable(code) and getattr(code(), "name", None) == "UNAVAILABLE":
            return True
        seen = seen.__cause__ or seen.__context__
    return False
