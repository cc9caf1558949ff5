"""Versions by time, the versions that can be recreated, and the history (spec 5.7)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.errors.kinds import TIMESTAMP_TOO_EARLY
from optimist.core.log.checkpoint_kinds import complete_checkpoints
from optimist.core.log.commits import read_commit_info
from optimist.core.log.names import (
    LogFileKind,
    commit_path,
    listing_start,
    parse_log_file_name,
)
from optimist.core.log.timestamps import format_timestamp, parse_timestamp
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import CommitInfo
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.snapshot import Snapshot

__all__ = [
    "CommitRecord",
    "adjusted_timestamps",
    "commit_history",
    "earliest_recreatable_version",
    "ensure_files_kept",
    "ensure_version_exists",
    "list_commit_files",
    "parse_timestamp",
    "version_at_timestamp",
]

_PARALLEL_READS = 8
_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One line of the history: a version, its commitInfo if it has one, and its time."""

    version: int
    info: CommitInfo | None
    timestamp_ms: int

    @classmethod
    def of(cls, version: int, info: CommitInfo | None, modified_ms: int) -> CommitRecord:
        """Return the line of a commit, whose own time counts before that of its file.

        Args:
            version: Its version.
            info: Its commitInfo, if it has one.
            modified_ms: The time of its file, as `adjusted_timestamps` gives it.
        """
        return cls(version, info, (info.in_commit_timestamp if info else None) or modified_ms)

    def __repr__(self) -> str:
        name = None if self.info is None else self.info.operation
        when = format_timestamp(self.timestamp_ms)
        return f"CommitRecord(version={self.version}, operation={name!r}, at {when})"


def earliest_recreatable_version(store: LogStore, log_path: str) -> int:
    """Return the oldest version that can still be recreated from the log.

    Raises:
        TableError: The log has no commit (kind `DELTA_NO_COMMITS_FOUND`), or no version can be
            recreated (kind `DELTA_NO_RECREATABLE_HISTORY_FOUND`).
    """
    return _History.listed(store, log_path).earliest_recreatable()


def ensure_version_exists(
    store: LogStore, log_path: str, version: int, *, latest_version: int
) -> None:
    """Refuse a version outside the range from the earliest recreatable one to the latest.

    Raises:
        TableError: It is outside (kind `DELTA_VERSION_NOT_FOUND`, fields `version`, `earliest`,
            `latest`).
    """
    earliest = earliest_recreatable_version(store, log_path)
    if not earliest <= version <= latest_version:
        is_gone = 0 <= version < earliest
        why = " Older versions were removed after delta.logRetentionDuration." if is_gone else ""
        raise TableError(
            f"Version {version} can't be read: the log holds the versions {earliest} to "
            f"{latest_version}.{why} Name one of these.",
            kind="DELTA_VERSION_NOT_FOUND",
            version=version,
            earliest=earliest,
            latest=latest_version,
        )


def version_at_timestamp(
    store: LogStore,
    log_path: str,
    timestamp_ms: int,
    *,
    latest: Snapshot,
    accept_last: bool = False,
    must_be_recreatable: bool = True,
) -> int:
    """Return the newest version that was made at or before a given time.

    Args:
        store: The store of the log.
        log_path: The log directory.
        timestamp_ms: Epoch milliseconds.
        latest: The newest snapshot. Its properties give the start of in-commit timestamps.
        accept_last: Whether a time after the last commit means the last commit, as for RESTORE.
        must_be_recreatable: Whether only versions that can be loaded count. Else all versions whose
            commits are in the log count, which is enough for a caller that reads only these.

    Raises:
        TableError: The time is before the first of these versions (kind
            `DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION`) or after the last (kind
            `DELTA_TIMESTAMP_GREATER_THAN_COMMIT`).
    """
    history = _History.listed(store, log_path)
    is_any_enough = history.commits and not must_be_recreatable
    earliest = 0 if is_any_enough else history.earliest_recreatable()
    commits = [(number, status) for number, status in history.commits if number >= earliest]
    times = _times_around(store, commits, latest, timestamp_ms)
    index = bisect_right(range(len(times)), timestamp_ms, key=times.at) - 1
    if index < 0:
        raise _too_early(timestamp_ms, times.versions[0], times.at(0))
    version = times.versions[index]  # some in between may be lost
    if version == commits[-1][0] and timestamp_ms > times.at(index) and not accept_last:
        raise _too_late(timestamp_ms, version, times.at(index))
    return version


def ensure_files_kept(snapshot: Snapshot, *, latest: Snapshot, now_ms: int) -> None:
    """Refuse an older version whose files VACUUM may have deleted (spec 5.7).

    Args:
        snapshot: The requested version.
        latest: The newest version. Its `delta.deletedFileRetentionDuration` counts.
        now_ms: The time, in epoch milliseconds.

    Raises:
        TableError: The version is older than the retention of deleted files (kind
            `DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION`).
    """
    kept_ms = latest.properties.deleted_file_retention_ms
    if snapshot.version >= latest.version or snapshot.timestamp_ms >= now_ms - kept_ms:
        return
    raise TableError(
        f"Version {snapshot.version} of {snapshot.table_path} is from "
        f"{format_timestamp(snapshot.timestamp_ms)}, and deleted files are kept for "
        f"{kept_ms // _HOUR_MS} hours, so VACUUM may have removed some of its files. Set the table "
        "property delta.deletedFileRetentionDuration to keep them longer. To read the files that "
        "are left, set "
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration to "
        "false.",
        kind="DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
        version=snapshot.version,
        retention_ms=kept_ms,
    )


def commit_history(
    store: LogStore, log_path: str, *, limit: int | None = None, latest_version: int
) -> list[CommitRecord]:
    """Return the commits, newest first, and read no more of them than requested.

    The time is the in-commit timestamp if the commit has one. Else it is the modification time of
    its file, adjusted within the listed part.
    """
    first = 0 if limit is None else max(0, latest_version - limit + 1)
    history = _History.listed(store, log_path, first, latest_version)
    commits = history.commits
    times = adjusted_timestamps(status.modified_ms for _, status in commits)
    records = []
    newest_first = list(zip(commits, times, strict=True))[::-1]
    reads = read_ahead(
        lambda entry: read_commit_info(store, entry[0][1].path),
        newest_first,
        threads=_PARALLEL_READS,
        ahead=4 * _PARALLEL_READS,
    )
    for (version, _), modified_ms in newest_first:
        try:
            info = next(reads)
        except LogFileNotFoundError:
            break  # cleaned up while we were reading: all older ones are gone, too
        records.append(CommitRecord.of(version, info, modified_ms))
    return records


def list_commit_files(
    store: LogStore, log_path: str, first: int, last: int
) -> tuple[tuple[int, FileStatus], ...]:
    """Return the commits from one version to another that the log still has, ascending."""
    return _History.listed(store, log_path, first, last).commits


def adjusted_timestamps(modified_ms: Iterable[int]) -> list[int]:
    """Make modification times strictly increasing in version order: 5, 3, 3 become 5, 6, 7."""
    adjusted: list[int] = []
    for time_ms in modified_ms:
        adjusted.append(max(time_ms, adjusted[-1] + 1) if adjusted else time_ms)
    return adjusted


@dataclass(frozen=True, slots=True)
class _History:
    """The commits and complete checkpoints that a listing shows, ascending."""

    log_path: str
    commits: tuple[tuple[int, FileStatus], ...]
    checkpoint_versions: tuple[int, ...]

    @classmethod
    def listed(
        cls, store: LogStore, log_path: str, first: int = 0, last: int | None = None
    ) -> _History:
        commits: dict[int, FileStatus] = {}
        checkpoints: list[FileStatus] = []
        for status in store.list_from(listing_start(log_path, first)):
            name = parse_log_file_name(status.name)
            if name is None or name.version < first or (last is not None and name.version > last):
                continue
            if name.kind is LogFileKind.COMMIT:
                commits.setdefault(name.version, status)
            elif name.kind.is_checkpoint:
                checkpoints.append(status)
        versions = sorted({item.version for item in complete_checkpoints(checkpoints)})
        return cls(log_path, tuple(sorted(commits.items())), tuple(versions))

    def earliest_recreatable(self) -> int:
        if not self.commits:
            raise TableError(
                f"The log {self.log_path} has no commit: this is not a Delta table, or its log was "
                "deleted. Check the path, or restore the log from a backup.",
                kind="DELTA_NO_COMMITS_FOUND",
                path=self.log_path,
            )
        first_commit = self.commits[0][0]
        if first_commit == 0:
            return 0
        for version in self.checkpoint_versions:
            if first_commit - 1 <= version <= self.commits[-1][0]:
                return version
        raise TableError(
            f"The log {self.log_path} begins with version {first_commit} and has no checkpoint to "
            "start from, so no version can be loaded. Restore its files from a backup.",
            kind="DELTA_NO_RECREATABLE_HISTORY_FOUND",
            path=self.log_path,
        )


@dataclass(frozen=True, slots=True)
class _Times:
    """The times of a run of versions, each looked up when a search needs it."""

    versions: Sequence[int]
    at: Callable[[int], int]

    def __len__(self) -> int:
        return len(self.versions)


def _times_around(
    store: LogStore,
    commits: Sequence[tuple[int, FileStatus]],
    latest: Snapshot,
    timestamp_ms: int,
) -> _Times:
    """Return the part of the history to search: with or before in-commit timestamps."""
    properties = latest.properties
    if not latest.has_active("inCommitTimestamp"):
        return _modification_times(commits)
    enabled_at = properties.in_commit_timestamp_enablement_version or 0
    enabled_ms = properties.in_commit_timestamp_enablement_timestamp
    before = [entry for entry in commits if entry[0] < enabled_at]
    since = [entry for entry in commits if entry[0] >= enabled_at]
    is_before = enabled_ms is not None and timestamp_ms < enabled_ms
    if before and (is_before or not since):  # the property may name a future version
        return _modification_times(before)
    return _Times(
        [version for version, _ in since],
        lambda index: _in_commit_timestamp(store, latest.log_path, since[index][0]),
    )


def _modification_times(commits: Sequence[tuple[int, FileStatus]]) -> _Times:
    adjusted = adjusted_timestamps(status.modified_ms for _, status in commits)
    return _Times([version for version, _ in commits], adjusted.__getitem__)


def _in_commit_timestamp(store: LogStore, log_path: str, version: int) -> int:
    info = read_commit_info(store, commit_path(log_path, version))
    if info is None or info.in_commit_timestamp is None:
        raise TableError(
            f"Version {version} has no in-commit timestamp, although the table has them enabled. A "
            "writer that does not know the feature wrote it. Name a version instead of a time.",
            kind="DELTA_MISSING_COMMIT_TIMESTAMP",
            version=version,
        )
    return info.in_commit_timestamp


def _too_early(timestamp_ms: int, version: int, earliest_ms: int) -> TableError:
    return TableError(
        f"{format_timestamp(timestamp_ms)} is before the oldest version that can be read, version "
        f"{version} from {format_timestamp(earliest_ms)}. Name a later time.",
        kind=TIMESTAMP_TOO_EARLY,
        timestamp_ms=timestamp_ms,
        earliest_version=version,
        earliest_timestamp_ms=earliest_ms,
    )


def _too_late(timestamp_ms: int, version: int, latest_ms: int) -> TableError:
    return TableError(
        f"{format_timestamp(timestamp_ms)} is after the newest version, version {version} from "
        f"{format_timestamp(latest_ms)}. Leave the time out to read the newest version.",
        kind="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        timestamp_ms=timestamp_ms,
        latest_version=version,
        latest_timestamp_ms=latest_ms,
    )
