"""The entity tags that a store returned for its latest puts."""

from __future__ import annotations

from collections import OrderedDict

from optimist.core.forking import ForkSafeLock

__all__ = ["CreatedTags"]

_MOST_KEPT = 1_000


class CreatedTags:
    """The tags of the files that one store created lately. Threads may share it."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._tags: OrderedDict[str, str] = OrderedDict()

    def note(self, path: str, tag: str) -> None:
        """Remember the tag of a file that was just created (an empty tag matches nothing)."""
        with self._lock:
            self._tags[path] = tag
            self._tags.move_to_end(path)
            while len(self._tags) > _MOST_KEPT:
                self._tags.popitem(last=False)

    def is_tag_of(self, path: str, tag: str) -> bool:
        """Return whether this is the known tag of the created file."""
        return bool(tag) and self._tags.get(path) == tag
