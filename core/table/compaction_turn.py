"""Whether auto-compaction is on for a table, and whose turn it is (spec 10.14)."""

from __future__ import annotations

from optimist.core.forking import ForkSafeLock, renew_in_child
from optimist.core.options.engine import EngineOptions
from optimist.core.snapshot import Snapshot

__all__ = ["CompactsOne", "compacts_by_itself"]


def compacts_by_itself(options: EngineOptions, snapshot: Snapshot) -> bool:
    """Return whether writes to a table are followed by a compaction. The session decides first."""
    if options.auto_compact_enabled is not None:
        return options.auto_compact_enabled
    if snapshot.version < 0:
        return False
    properties = snapshot.properties
    return "true" in (properties.auto_optimize, properties.auto_compact)


class CompactsOne:
    """Lets one compaction of a table run at a time in this process."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._whose: object = None
        renew_in_child(self, CompactsOne.forget)  # whoever has the turn stays in the parent

    def take(self, whose: object) -> bool:
        """Take the turn if nobody else has it, until `give_back`. Return whether it is ours.

        An interrupt may strike before the answer is here, so call it where `give_back` follows.
        """
        with self._lock:
            if self._whose is None:
                self._whose = whose
            return self._whose is whose

    def give_back(self, whose: object) -> None:
        """Let the next one compact, if the turn is this caller's."""
        with self._lock:
            if self._whose is whose:
                self._whose = None

    def forget(self) -> None:
        """Forget whose turn it is, in a forked child."""
        self._whose = None
