"""`LagCounter`: what one reader of a table has yet to read, by its position.

It knows nothing of the reader's options. So it counts all files that commits add to the rows, also
those of rewritten rows and those that an `excludeRegex` would leave out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow.compute as pc

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError
from optimist.core.log.commits import read_commit_info
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.names import commit_path
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.types import StructType
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import CommitRecord
from optimist.core.streams.commit_files import CommitReader
from optimist.core.streams.indexed_files import IndexedFiles
from optimist.core.streams.offset import BASE_INDEX, StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.same_table import load_same
from optimist.core.streams.schema_rules import StreamSchema, ensure_reached

__all__ = ["Lag", "LagCounter"]

_MOST_COUNTED = 1000
"""The number of versions whose files are counted."""
_READERS = 8
_OPTIONS = StreamOptions(ignore_changes=True)


@dataclass(frozen=True, slots=True)
class Lag:
    """What a reader has yet to read.

    Attributes:
        versions: The versions that it has not read to their end.
        files: The files of these versions that it has not read.
        size_bytes: Their bytes.
        rows: Their rows; None if the log does not tell the rows of one of them.
        since_ms: When the first of these versions with such a file was committed, in epoch
            milliseconds; None if there is none, or its time is no longer known.
        is_whole: Whether the files of all these versions were counted.
        problem: Why a reader will stop before the newest version; None if nothing shows that.
    """

    versions: int
    files: int = 0
    size_bytes: int = 0
    rows: int | None = 0
    since_ms: int | None = None
    is_whole: bool = True
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _Count:
    """The files that a reader takes from one version, or from the rest of it."""

    files: int
    size_bytes: int
    rows: int | None

    @classmethod
    def of(cls, found: IndexedFiles) -> _Count:
        counts = FileStatistics(found.files, StructType(())).num_records.combine_chunks()
        rows = live_rows(found.files, counts)
        is_known = not rows.null_count
        return cls(
            len(found), found.size_bytes, pc.sum(rows, min_count=0).as_py() if is_known else None
        )


@dataclass(slots=True)
class LagCounter:
    """Counts the lag of one reader of a table again and again. For one thread at a time.

    What it has counted of a commit is kept until the reader has passed it.

    Attributes:
        table: The table.
    """

    table: TableRef
    _counts: dict[int, _Count] = field(default_factory=dict, init=False)
    _times: dict[int, int | None] = field(default_factory=dict, init=False)
    _initial: tuple[int, IndexedFiles] | None = field(default=None, init=False)
    _known_log: object = field(default=None, init=False)

    def lag(self, position: StreamOffset, latest: Snapshot) -> Lag:
        """Return what comes after a position, up to the newest version.

        Args:
            position: The position of the reader.
            latest: The newest version.

        Raises:
            TableError: The position is of another table, or of a log that was set back.
            StorageError: The store failed.
        """
        ensure_reached(position, latest)
        if self._known_log is not latest.known_log:
            self._known_log, self._initial = latest.known_log, None
            self._counts.clear()
            self._times.clear()
        found: list[tuple[int, _Count]] = []
        problem = None
        try:
            for each in self._counts_after(position, latest):
                found.append(each)
        except OptimistError as error:
            if isinstance(error, StorageError) and not isinstance(error, LogFileNotFoundError):
                raise
            problem = str(error)
        return self._summed(position, latest, found, problem)

    def _summed(
        self,
        position: StreamOffset,
        latest: Snapshot,
        found: list[tuple[int, _Count]],
        problem: str | None,
    ) -> Lag:
        versions = latest.version + 1 - position.version
        counted = len(found)
        if found and position.index >= 0 and not found[0][1].files:
            versions -= 1  # an older delta-spark stays at the last file of a commit
            counted -= 1
        rows = [count.rows for _, count in found]
        first = next((version for version, count in found if count.files), None)
        if first is None and problem is not None:
            first = position.version + len(found)
        return Lag(
            versions,
            sum(count.files for _, count in found),
            sum(count.size_bytes for _, count in found),
            None if None in rows else sum(each for each in rows if each is not None),
            None if first is None else self._time_of(first),
            counted == versions,
            problem,
        )

    def _counts_after(
        self, position: StreamOffset, latest: Snapshot
    ) -> Iterator[tuple[int, _Count]]:
        """Yield the count of each version from a position on, as far as they are counted."""
        first = position.version
        if position.is_initial or position.index != BASE_INDEX:
            if position.is_initial:
                files = self._snapshot_files(first, latest)
            else:
                files = self._read(first, latest)
            yield first, _Count.of(files.between(position.index))
            first += 1
        if not position.is_initial:
            self._initial = None
        for version in [each for each in self._counts if each < first]:
            del self._counts[version]
        versions = range(first, min(latest.version, position.version + _MOST_COUNTED - 1) + 1)
        unknown = [version for version in versions if version not in self._counts]
        read = read_ahead(
            lambda version: _Count.of(self._read(version, latest)),
            unknown,
            threads=_READERS,
            ahead=4 * _READERS,
        )
        for version in versions:
            if version not in self._counts:
                self._counts[version] = next(read)
            yield version, self._counts[version]

    def _read(self, version: int, latest: Snapshot) -> IndexedFiles:
        # A tracked schema refuses no change: it is the reader's own that does.
        schema = StreamSchema(latest.metadata, latest.version, latest.protocol, is_tracked=True)
        return CommitReader(self.table, schema, _OPTIONS).files(version, latest.version)

    def _snapshot_files(self, version: int, latest: Snapshot) -> IndexedFiles:
        if self._initial is None or self._initial[0] != version:
            files = load_same(self.table, version, latest).files
            order = [("modificationTime", "ascending"), ("path", "ascending")]
            sorted_files = files.sort_by(order).select(FILES_SCHEMA.names)
            self._initial = version, IndexedFiles.of(sorted_files)
        return self._initial[1]

    def _time_of(self, version: int) -> int | None:
        """Return when a version was committed; None if its commit is gone."""
        if version not in self._times:
            self._times.clear()
            self._times[version] = self._read_time(version)
        return self._times[version]

    def _read_time(self, version: int) -> int | None:
        store, path = self.table.store, commit_path(self.table.log_path, version)
        try:
            listed = next(iter(store.list_from(path)), None)
            if listed is None or listed.path != path:
                return None
            return CommitRecord.of(
                version, read_commit_info(store, path), listed.modified_ms
            ).timestamp_ms
        except LogFileNotFoundError:
            return None
