"""A count of begun changes: after one, no message may say that nothing was written.

The context carries the count, so changes by other threads do not count.
"""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["note_change_begun", "num_changes_begun"]

_BEGUN: ContextVar[int] = ContextVar("_BEGUN", default=0)


def note_change_begun() -> None:
    """Record that a commit, or the deletion of files, begins."""
    _BEGUN.set(_BEGUN.get() + 1)


def num_changes_begun() -> int:
    """Return the number of changes that this context has begun, to compare with an earlier one."""
    return _BEGUN.get()
