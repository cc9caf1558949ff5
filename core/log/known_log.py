"""`KnownLog`: what all that is remembered of one log has in common.

The table at a path may be dropped and made anew, restored from a copy, or cut short by hand, while
a program keeps snapshots, winners and open transactions of it. Neither version numbers nor the
table's id tell such logs apart: the new one has the same numbers, and a copy the same id. So two
things do:

1. A snapshot that was made from another, by commits that a listing or a commit of our own has shown
   to follow it, is of the same log. The two share one `KnownLog`; any others share none.
2. Whatever is remembered is held against the log when it is listed next, which begins with the
   newest commit that is known (`segment.commits_of_same_log`).
"""

from __future__ import annotations

__all__ = ["KnownLog"]

_LOOKS = 2
_LONGEST_LOOK_S = 0.1


class KnownLog:
    """One log as this process has met it; compared by identity. Threads may share it."""

    def __init__(self) -> None:
        self._last_look = (float("-inf"), 0)

    def note_look(self, asked_s: float, answered_s: float, first_version: int) -> None:
        """Remember that a listing has just shown the log to be the same.

        Args:
            asked_s: When the store was asked, in seconds of a monotonic clock.
            answered_s: When it had answered.
            first_version: The oldest commit that it has shown; those before may have been cleaned
                up.
        """
        took_s = min(answered_s - asked_s, _LONGEST_LOOK_S)
        self._last_look = (answered_s + _LOOKS * took_s, first_version)

    def was_just_seen(self, now_s: float, version: int) -> bool:
        """Whether another look at a version now would hardly tell more than the last one.

        No look can tell what happens between it and the put that follows. That gap is about as long
        as a look takes; a log that was seen within the time of two is not worth a request.
        """
        fresh_until_s, first_version = self._last_look
        return now_s < fresh_until_s and first_version <= version
