"""Whether a call has begun to change a table: after that nobody may say that nothing was written.

The number is carried by the context, so what other threads change does not count.
"""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["note_change_begun", "num_changes_begun"]

_BEGUN: ContextVar[int] = ContextVar("_BEGUN", default=0)


def note_change_begun() -> None:
    """Note that a commit, or the deletion of files, begins."""
    _BEGUN.set(_BEGUN.get() + 1)


def num_changes_begun() -> int:
    """Return how many changes this context has begun; compare it with what it was before."""
    return _BEGUN.get()
