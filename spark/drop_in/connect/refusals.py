"""The error for a statement or a call that a Spark Connect client can't have."""

from __future__ import annotations

from optimist.core.errors import UsageError

__all__ = ["refused"]


def refused(what: str, way_out: str) -> UsageError:
    """Return the error, raised before anything is run.

    Args:
        what: The statement or the call.
        way_out: What to do instead, as a sentence.
    """
    return UsageError(
        f"{what} is not supported on Spark Connect, because the server does not know Delta. "
        f"Nothing was run. {way_out}",
        kind="OPTIMIST_UNSUPPORTED_STATEMENT",
        statement=what,
    )
