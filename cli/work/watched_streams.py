"""How far streams lag behind a table, by their checkpoints or their stored positions."""

from __future__ import annotations

from dataclasses import dataclass, field

from optimist.core.errors import OptimistError, TableError
from optimist.core.errors.kinds import VERSION_NOT_FOUND
from optimist.core.log.timestamps import format_timestamp
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot
from optimist.core.streams.checkpoint_progress import StreamProgress, read_progress
from optimist.core.streams.lag import Lag, LagCounter
from optimist.core.table.delta_log import DeltaLog

__all__ = ["WatchedStream"]


@dataclass(slots=True)
class WatchedStream:
    """One stream over one table, looked at again and again.

    Attributes:
        log: The handle of the table.
        place: The handle of the stream's checkpoint, or of the file with its position.
    """

    log: DeltaLog
    place: DeltaLog
    _counters: dict[int | None, LagCounter] = field(default_factory=dict, init=False)
    _has_answered: bool = field(default=False, init=False)

    def look(self, latest: Snapshot) -> list[dict[str, object]]:
        """Return how far the stream lags behind, for each of its sources that reads the table.

        An error at the first look is raised. At a later one it is told as the stream's problem.

        Raises:
            TableNotFoundError: There is no checkpoint and no position.
            TableError: It is damaged, or of another table or an older state of it.
            StorageError: The store failed.
        """
        try:
            read = read_progress(self.place.table, latest.metadata.id)
            rows = [self._row(each, self._lag(each, latest)) for each in read]
        except OptimistError as error:
            if not self._has_answered:
                raise
            return [self._row(StreamProgress(None), None, str(error))]
        self._has_answered = True
        return rows

    def _lag(self, progress: StreamProgress, latest: Snapshot) -> Lag | None:
        if progress.position is None:
            return None
        counter = self._counters.setdefault(progress.source, LagCounter(self.log.table))
        try:
            return counter.lag(progress.position, latest)
        except TableError as error:
            if error.kind != VERSION_NOT_FOUND:
                raise
            # It may have read a commit that has come since the table was looked at.
            return counter.lag(progress.position, self.log.snapshot())

    def _row(
        self, progress: StreamProgress, lag: Lag | None, problem: str | None = None
    ) -> dict[str, object]:
        position, since_ms = progress.position, None if lag is None else lag.since_ms
        late_ms = None if since_ms is None else max(0, self.log.clock.now_ms() - since_ms)
        is_done = lag is not None and not lag.files and lag.is_whole
        return {
            "stream": without_secrets(self.place.table_path),
            "source": progress.source,
            "batch": progress.batch,
            "runningBatch": progress.running,
            "lastBatch": _time(progress.done_ms),
            "version": None if position is None else position.version,
            "isInitial": None if position is None else position.is_initial,
            "versionsBehind": None if lag is None else lag.versions,
            "filesBehind": None if lag is None else lag.files,
            "bytesBehind": None if lag is None else lag.size_bytes,
            "rowsBehind": None if lag is None else lag.rows,
            "isWhole": None if lag is None else lag.is_whole,
            "behindSince": _time(since_ms),
            "secondsBehind": 0 if is_done else None if late_ms is None else late_ms // 1000,
            "problem": problem if lag is None else lag.problem,
        }


def _time(ms: int | None) -> str | None:
    return None if ms is None else format_timestamp(ms)
