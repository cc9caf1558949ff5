"""The removal of expired log files, as whole runs up to a checkpoint (spec 5.10).

The rest of the log can always be read: deletion stops right before a complete checkpoint all of
which can be read, and a sidecar is deleted only if no remaining checkpoint names it.

1. Without `_last_checkpoint`, or with `delta.enableExpiredLogCleanup` off, do nothing, unless the
   caller says otherwise for one commit.
2. Choose commits, checkpoints and checksums; see `expired_log_files`. If the checkpoint that would
   be the first of the remaining log is damaged, choose up to an older one.
3. On a table with V2 checkpoints, first write one under a classic name. Engines that do not know V2
   names then find the protocol that they can't read, and not a truncated log.
4. Look whether the log is still that of the snapshot, and delete the files, oldest first, and then
   files that a catalog had staged for the commits.
5. If a checkpoint was deleted, delete sidecars that no remaining checkpoint names, once they have
   expired and are older than a day. A checkpoint that can't be read may name any sidecar, so then
   all of them stay.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from optimist.core.errors import LogFileNotFoundError, StorageError, TableError
from optimist.core.log.checkpoint_kinds import Checkpoint, complete_checkpoints
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import LogFileKind, listing_start, parse_log_file_name
from optimist.core.log.sidecars import sidecar_directory
from optimist.core.log_upkeep.checkpoint import write_compatibility_checkpoint
from optimist.core.log_upkeep.later_commits import commits_after
from optimist.core.options.engine import EngineOptions
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.gates import supports
from optimist.core.runtime.clock import Clock
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot

__all__ = ["Expired", "LogCleaner", "expired_log_files", "truncate_history"]

_LOG = logging.getLogger(__name__)
_DAY_MS = 24 * 60 * 60 * 1000
_MINUTE_MS = 60 * 1000
_STAGED_COMMITS = "_staged_commits"
_VERSION = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class Expired:
    """The files of a log that may be deleted.

    Attributes:
        paths: Commits, checkpoints and checksums, oldest first; then compacted files that begin
            with a version up to the boundary, from which no reader starts any more.
        boundary: The version of the checkpoint that the remaining log begins with; -1 if nothing is
            deleted.
        checkpoints: The checkpoints of that version, complete by their names and sizes.
        rest_since_ms: The last change of the first file that is too young, in epoch milliseconds:
            nothing more can be deleted before that file has expired. None if something else stops
            the deletion.
    """

    paths: tuple[str, ...] = ()
    boundary: int = -1
    checkpoints: tuple[Checkpoint, ...] = ()
    rest_since_ms: int | None = None

    @property
    def last_commit(self) -> int:
        """The highest version whose commit is deleted, or -1."""
        return self._highest_version(lambda kind: kind is LogFileKind.COMMIT)

    @property
    def has_checkpoint(self) -> bool:
        """Whether a checkpoint, or a part of one, is deleted."""
        return self._highest_version(lambda kind: kind.is_checkpoint) >= 0

    def _highest_version(self, is_wanted: Callable[[LogFileKind], bool]) -> int:
        names = (parse_log_file_name(path.rpartition("/")[2]) for path in self.paths)
        return max((name.version for name in names if name and is_wanted(name.kind)), default=-1)


class LogCleaner:
    """Removes one table's expired log files. Threads may share it.

    It remembers the first file that was too young, so that a log of many files is not listed again
    before more of it can have expired.
    """

    def __init__(self) -> None:
        self._rest_since_ms = -1

    def clean_up(
        self, store: LogStore, snapshot: Snapshot, *, options: EngineOptions, clock: Clock
    ) -> tuple[str, ...]:
        """Delete log files older than `delta.logRetentionDuration` that no remaining file needs.

        The head of this module lists the steps.

        On a table with `delta.requireCheckpointProtectionBeforeVersion`, rule 9 is checked; see
        `_keeps_protection`.

        Returns:
            The deleted paths, in order.

        Raises:
            TableError: The checkpoint of step 3 could not be written. Nothing was deleted.
            StorageError: The store failed. Files are deleted oldest first, so the rest has no hole.
                Or the version is no longer in the log (kind `OPTIMIST_PREDECESSOR_MISSING`), and
                nothing was deleted.
        """
        properties, log_path = snapshot.properties, snapshot.log_path
        cutoff_ms = (clock.now_ms() - properties.log_retention_ms) // _DAY_MS * _DAY_MS
        is_wanted = options.post_commit_cleanup
        if is_wanted is None:
            is_wanted = properties.enable_expired_log_cleanup
        if not is_wanted or cutoff_ms < self._rest_since_ms:
            return ()
        last = read_last_checkpoint(store, log_path, clock=clock)
        if last is None:
            return ()
        # Whatever the hint says, no checkpoint newer than the snapshot may replace its commits.
        max_version = min(last.version, snapshot.version) - 1
        expired = _expired(store, log_path, cutoff_ms, max_version)
        deleted: tuple[str, ...] = ()
        if expired.paths and _keeps_protection(snapshot, expired.boundary):
            deleted = _delete_expired(
                store, snapshot, expired, cutoff_ms, options=options, clock=clock
            )
        self._rest_since_ms = -1 if expired.rest_since_ms is None else expired.rest_since_ms
        return deleted


def truncate_history(
    store: LogStore, snapshot: Snapshot, *, options: EngineOptions, clock: Clock
) -> tuple[str, ...]:
    """Delete the log of old versions for DROP FEATURE ... TRUNCATE HISTORY (spec 6.4).

    A file is old if its last change was before
    `delta.dropFeatureTruncateHistory.retentionDuration`, rounded to the minute, whatever
    `delta.logRetentionDuration` says. A checkpoint of the snapshot must exist.

    Returns:
        The deleted paths, in order.

    Raises:
        TableError, StorageError: See `LogCleaner.clean_up`.
    """
    kept_ms = snapshot.properties.truncate_history_retention_ms
    cutoff_ms = (clock.now_ms() - kept_ms) // _MINUTE_MS * _MINUTE_MS
    expired = _expired(store, snapshot.log_path, cutoff_ms, snapshot.version - 1)
    if not expired.paths or not _keeps_protection(snapshot, expired.boundary):
        return ()
    return _delete_expired(store, snapshot, expired, cutoff_ms, options=options, clock=clock)


def _expired(store: LogStore, log_path: str, cutoff_ms: int, max_version: int) -> Expired:
    """Find the files that may be deleted, up to a checkpoint that can be read.

    A listing does not show that a checkpoint was torn, that bits in it were flipped, or that a
    sidecar of it is gone. The commits before it are then all that is left of the table. To read the
    checkpoint takes a small part of the time in which it was written, and the log is cleaned up
    once a day.
    """
    unreadable: set[int] = set()
    while True:
        files = store.list_from(listing_start(log_path, 0))
        found = expired_log_files(
            files, cutoff_ms=cutoff_ms, max_version=max_version, unreadable=unreadable
        )
        if not found.checkpoints or any(_is_whole(store, each) for each in found.checkpoints):
            return found
        unreadable.add(found.boundary)


def _is_whole(store: LogStore, checkpoint: Checkpoint) -> bool:
    try:
        checkpoint.open(store).ensure_whole()
    except (TableError, LogFileNotFoundError) as error:
        _LOG.warning("The log is not cleaned up to version %d: %s", checkpoint.version, error)
        return False
    return True


def _delete_expired(
    store: LogStore,
    snapshot: Snapshot,
    expired: Expired,
    cutoff_ms: int,
    *,
    options: EngineOptions,
    clock: Clock,
) -> tuple[str, ...]:
    """Run steps 3 to 5.

    The timeline that the look guards against: we list the files -> the table is dropped and made
    anew -> we delete the new log's first commits, which have the names of expired ones.
    """
    log_path = snapshot.log_path
    if supports(snapshot.protocol, "v2Checkpoint"):
        write_compatibility_checkpoint(store, snapshot, options=options, clock=clock)
    commits_after(store, snapshot)
    deleted = _delete_files(store, expired.paths)
    deleted += _delete_files(store, _staged_commits(store, log_path, expired.last_commit))
    if expired.has_checkpoint:
        # Even with a short retention: another checkpoint may be in the middle of being written.
        a_day_ago_ms = (clock.now_ms() - _DAY_MS) // _DAY_MS * _DAY_MS
        unused = _unused_sidecars(store, log_path, min(cutoff_ms, a_day_ago_ms))
        deleted += _delete_files(store, unused)
    _LOG.info("Deleted %d expired log files of %s", len(deleted), without_secrets(log_path))
    return tuple(deleted)


def expired_log_files(
    files: Iterator[FileStatus],
    *,
    cutoff_ms: int,
    max_version: int,
    unreadable: Collection[int] = (),
) -> Expired:
    """Find the files of a listing that may be deleted, up to a checkpoint.

    These are all files before the newest checkpoint that only expired files precede.

    Args:
        files: The log's listing, sorted by name.
        cutoff_ms: Files last changed at this time or before, in epoch milliseconds, have expired.
        max_version: The highest version that may be deleted.
        unreadable: The versions whose checkpoints do not count.
    """
    expired: list[str] = []
    waiting: list[str] = []
    compacted: list[tuple[int, str]] = []
    boundary = last_ms = last_version = -1
    checkpoints: tuple[Checkpoint, ...] = ()
    rest_since_ms = None
    for version, group in groupby(
        _files_with_versions(files, compacted), key=lambda entry: entry[0]
    ):
        statuses = [status for _, status in group]
        complete = () if version in unreadable else complete_checkpoints(statuses)
        if waiting and complete:
            if last_version > max_version:
                break
            expired += waiting
            waiting, boundary, checkpoints = [], version, complete
        for status in statuses:
            # A file that claims to be older than its predecessors is not; the correction only
            # delays deletion.
            last_ms = _increasing_time(status.modified_ms, last_ms, version > last_version)
            waiting.append(status.path)
        last_version = version
        if last_ms > cutoff_ms:
            # Times only grow from here on: the first file that is too young stops the deletion.
            rest_since_ms = last_ms
            break
    useless = (path for start, path in compacted if start <= boundary)
    return Expired((*expired, *useless), boundary, checkpoints, rest_since_ms)


def _keeps_protection(snapshot: Snapshot, boundary: int) -> bool:
    """Tell whether `checkpointProtection` lets the log begin at a checkpoint (rule 9).

    It does if everything protected is deleted at once, or if the cleanup itself writes no
    checkpoint. In the second case, the rest begins with a checkpoint by an engine that knew its
    version.
    """
    protected = snapshot.properties.require_checkpoint_protection_before_version
    return boundary >= protected or not supports(snapshot.protocol, "v2Checkpoint")


def _increasing_time(modified_ms: int, last_ms: int, is_newer_version: bool) -> int:
    if modified_ms > last_ms:
        return modified_ms
    return last_ms + 1 if is_newer_version else last_ms


def _files_with_versions(
    files: Iterator[FileStatus], compacted: list[tuple[int, str]]
) -> Iterator[tuple[int, FileStatus]]:
    """Yield commits, checkpoints and checksums with their versions.

    Compacted commits only go into the list: they are younger than the versions in their names, and
    would keep those from expiring.
    """
    for status in files:
        name = parse_log_file_name(status.name)
        if name is not None and name.end_version is not None:
            compacted.append((name.version, status.path))
        elif name is not None:
            yield name.version, status


def _staged_commits(store: LogStore, log_path: str, upto: int) -> Iterator[str]:
    for status in _list_directory(store, join(log_path, _STAGED_COMMITS)):
        version, _, rest = status.name.partition(".")
        if _VERSION.fullmatch(version) and rest.endswith(".json") and int(version) <= upto:
            yield status.path


def _unused_sidecars(store: LogStore, log_path: str, cutoff_ms: int) -> tuple[str, ...]:
    old = [
        status
        for status in _list_directory(store, sidecar_directory(log_path))
        if status.modified_ms < cutoff_ms
    ]
    if not old:
        return ()
    used: set[str] = set()
    try:
        for checkpoint in complete_checkpoints(store.list_from(listing_start(log_path, 0))):
            used.update(item.file_name for item in checkpoint.open(store).sidecars())
    except (TableError, StorageError) as error:
        _LOG.warning("All sidecars of %s are kept: %s", without_secrets(log_path), error)
        return ()
    return tuple(status.path for status in old if status.name not in used)


def _list_directory(store: LogStore, directory: str) -> tuple[FileStatus, ...]:
    """Return the files of a directory that most tables do not have."""
    try:
        return tuple(store.list_from(join(directory, "")))
    except LogFileNotFoundError:
        return ()


def _delete_files(store: LogStore, paths: Iterable[str]) -> list[str]:
    found = list(paths)
    for path in found:
        store.delete(path)
    return found
