"""`KnownLog`: the identity of one log, shared by everything that is cached of it.

The table at a path may be dropped and made anew, restored from a copy, or cut short by hand, while
a program keeps snapshots, winners and open transactions of it. Neither version numbers nor the
table's id distinguish such logs: the new one has the same numbers, and a copy has the same id. So
two rules hold:

1. A snapshot that was made from another belongs to the same log, if a listing or a commit of our
   own has shown the commits between them. The two share one `KnownLog`. No others share one.
2. Everything cached is compared with the log at its next listing, which begins with the newest
   known commit (`segment.commits_of_same_log`).
"""

from __future__ import annotations

__all__ = ["KnownLog"]

_LOOKS = 2
_LONGEST_LOOK_S = 0.1


class KnownLog:
    """One log as this process knows it, compared by identity. Threads may share it."""

    def __init__(self) -> None:
        self._last_look = (float("-inf"), 0)

    def note_look(self, asked_s: float, answered_s: float, first_version: int) -> None:
        """Remember that a listing has just shown the log to be the same.

        Args:
            asked_s: The time of the request, in seconds of a monotonic clock.
            answered_s: The time of the answer.
            first_version: The oldest commit in the listing. Those before may have been cleaned up.
        """
        took_s = min(answered_s - asked_s, _LONGEST_LOOK_S)
        self._last_look = (answered_s + _LOOKS * took_s, first_version)

    def was_just_seen(self, now_s: float, version: int) -> bool:
        """Return whether another listing now would hardly show more than the last one.

        No listing shows what happens between it and the put that follows. That gap is about as long
        as a listing takes, so a log that was listed within twice that time is not worth a request.
        """
        fresh_until_s, first_version = self._last_look
        return now_s < fresh_until_s and first_version <= version
