"""A store of your own: the local one, in which commits can be made to meet.

A race is a matter of luck, and a demonstration should not be. During a meeting, the first commit of
each thread waits until all threads have come, all based on the same version; then they race as they
would anywhere. The conf key `spark.delta.logStore.file.impl` names the class.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar

from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores import LocalLogStore

__all__ = ["MeetingLogStore"]

_COMMIT = re.compile(r"/\d{20}\.json$")


class _Meeting:
    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties, timeout=60)
        self._seen: set[int] = set()

    def wait(self) -> None:
        thread = threading.get_ident()
        if thread not in self._seen:
            self._seen.add(thread)
            with suppress(threading.BrokenBarrierError):  # then there is no meeting, just a commit
                self._barrier.wait()

    def call_off(self) -> None:
        self._barrier.abort()


class MeetingLogStore(LocalLogStore):
    """A `LocalLogStore` with all its promises, which may hold up commits before it puts them."""

    _meeting: ClassVar[_Meeting | None] = None

    @classmethod
    @contextmanager
    def meeting_of(cls, parties: int) -> Iterator[None]:
        """Within this block, the first commits of `parties` threads wait for each other."""
        cls._meeting = _Meeting(parties)
        try:
            yield
        finally:
            cls._meeting = None

    @classmethod
    def call_off(cls) -> None:
        """Let the waiting threads go on, because one of them will not come."""
        if cls._meeting is not None:
            cls._meeting.call_off()

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`."""
        meeting = self._meeting
        if meeting is not None and _COMMIT.search(path):
            meeting.wait()
        return super().put_if_absent(path, data)
