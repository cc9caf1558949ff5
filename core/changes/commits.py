"""The reading of a range of commits in order, with their times (spec 10.11, 5.7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optimist.core.errors import TableError
from optimist.core.log.commits import read_commits_bytes
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    actions_from_bytes,
)
from optimist.core.protocol.gates import is_active
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot.time_travel import adjusted_timestamps, list_commit_files

__all__ = ["ReadCommit", "commit_time_ms", "read_commits"]

_VERSIONS_BEFORE = 100
"""The number of earlier versions whose modification times are read, too.

Each time is adjusted by earlier ones, and a commit must have the same time in every range.
"""


@dataclass(frozen=True, slots=True)
class ReadCommit:
    """One commit.

    Attributes:
        version: Its version.
        modified_ms: The modification time of its file, made strictly increasing.
        actions: All its actions.
    """

    version: int
    modified_ms: int
    actions: tuple[Action, ...]

    @property
    def info(self) -> CommitInfo | None:
        """Its commitInfo, if it has one."""
        return next((item for item in self.actions if isinstance(item, CommitInfo)), None)

    @property
    def changes_metadata(self) -> bool:
        """Whether it has a metadata action."""
        return any(isinstance(item, Metadata) for item in self.actions)

    @property
    def takes_rows(self) -> bool:
        """Whether its changes include rows of files that it removes."""
        return not self._has_change_files and self._has_changed(RemoveFile)

    @property
    def gives_rows(self) -> bool:
        """Whether its changes include rows of files that it adds, or of change files."""
        return self._has_change_files or self._has_changed(AddFile)

    @property
    def _has_change_files(self) -> bool:
        return any(isinstance(item, AddCDCFile) for item in self.actions)

    def _has_changed(self, kind: type[AddFile | RemoveFile]) -> bool:
        return any(isinstance(item, kind) and item.data_change for item in self.actions)


def read_commits(store: LogStore, log_path: str, first: int, last: int) -> Iterator[ReadCommit]:
    """Yield the commits of the versions `first` to `last` in order.

    It fetches several at a time.

    Raises:
        TableError: One of them is no longer in the log (kind `DELTA_VERSION_NOT_FOUND`) or is
            damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
    """
    start = max(0, first - _VERSIONS_BEFORE)
    listed = dict(list_commit_files(store, log_path, start, last))
    times = adjusted_timestamps(status.modified_ms for status in listed.values())
    modified_ms = dict(zip(listed, times, strict=True))
    for version in range(first, last + 1):
        if version not in listed:
            raise _commit_gone(version, first, last, listed)
    wanted = [listed[version] for version in range(first, last + 1)]
    for version, data in enumerate(read_commits_bytes(store, wanted), first):
        actions = actions_from_bytes(data, listed[version].path)
        yield ReadCommit(version, modified_ms[version], actions)


def commit_time_ms(commit: ReadCommit, metadata: Metadata, protocol: Protocol) -> int:
    """Return the time of a commit, in epoch milliseconds.

    It is the in-commit timestamp if the table has those, otherwise the time of the commit's file.

    Args:
        commit: The commit.
        metadata: The table's metadata after it.
        protocol: The table's protocol after it.

    Raises:
        TableError: In-commit timestamps are on and this commit has none (kind
            `DELTA_MISSING_COMMIT_TIMESTAMP`).
    """
    if not is_active("inCommitTimestamp", protocol, metadata):
        return commit.modified_ms
    properties = TableMetadata.of(metadata).properties
    if commit.version < (properties.in_commit_timestamp_enablement_version or 0):
        return commit.modified_ms
    info = commit.info
    if info is None or info.in_commit_timestamp is None:
        raise TableError(
            f"Version {commit.version} has no in-commit timestamp, although the table has them "
            "enabled. A writer that does not know the feature wrote it. Nothing was read. Start "
            "after that version.",
            kind="DELTA_MISSING_COMMIT_TIMESTAMP",
            version=commit.version,
        )
    return info.in_commit_timestamp


def _commit_gone(version: int, first: int, last: int, listed: dict[int, FileStatus]) -> TableError:
    held = [number for number in listed if number > version]
    there = (
        f"the log still has the commits {held[0]} to {last}"
        if held
        else "the later commits are gone too"
    )
    return TableError(
        f"The changes of the versions {first} to {last} can't be read: the commit of version "
        f"{version} is no longer in the log; {there}. Older commits were removed after "
        "delta.logRetentionDuration. Nothing was read. Start at a later version.",
        kind="DELTA_VERSION_NOT_FOUND",
        version=version,
        earliest=held[0] if held else last + 1,
        latest=last,
    )
