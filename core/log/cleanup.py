"""Removal of expired log files: whole stretches before a checkpoint, never one between (spec 5.10).

What is kept can always be read, because deletion stops right before a complete checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import groupby

from optimist.core.clock import Clock
from optimist.core.log.checkpoint_kinds import complete_checkpoints
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import (
    LogFileKind,
    listing_start,
    parse_log_file_name,
)
from optimist.core.logstore import FileStatus, LogStore
from optimist.core.protocol import supports
from optimist.core.snapshot import Snapshot

__all__ = ["clean_up_expired_logs", "expired_log_files"]

_logger = logging.getLogger(__name__)
_DAY_MS = 24 * 60 * 60 * 1000


def clean_up_expired_logs(store: LogStore, snapshot: Snapshot, *, clock: Clock) -> tuple[str, ...]:
    """Delete commits, checkpoints and checksums older than `delta.logRetentionDuration`.

    Does nothing where `delta.enableExpiredLogCleanup` is off, or where the table has V2
    checkpoints: those need a compatibility checkpoint and care for sidecars before anything may go.

    A table with `delta.requireCheckpointProtectionBeforeVersion` needs no more care: what remains
    begins with a complete checkpoint, which is one of the conditions the protocol accepts.

    Returns:
        The paths deleted, oldest first.

    Raises:
        StorageError: The store failed. Files are deleted oldest first, so what remains has no hole.
    """
    properties = snapshot.properties
    if not properties.enable_expired_log_cleanup or supports(snapshot.protocol, "v2Checkpoint"):
        return ()
    last = read_last_checkpoint(store, snapshot.log_path, clock=clock)
    if last is None:
        return ()
    cutoff_ms = (clock.now_ms() - properties.log_retention_ms) // _DAY_MS * _DAY_MS
    files = store.list_from(listing_start(snapshot.log_path, 0))
    expired = expired_log_files(files, cutoff_ms=cutoff_ms, max_version=last.version - 1)
    for path in expired:
        store.delete(path)
    if expired:
        _logger.info("Deleted %d expired log files of %s", len(expired), snapshot.log_path)
    return expired


def expired_log_files(
    files: Iterator[FileStatus], *, cutoff_ms: int, max_version: int
) -> tuple[str, ...]:
    """Which files of a listing may go: all before the newest checkpoint whose past has expired.

    Args:
        files: The log's listing, sorted by name.
        cutoff_ms: What was last changed then or before has expired.
        max_version: No version above it goes.
    """
    expired: list[str] = []
    waiting: list[str] = []
    last_ms = -1
    last_version = -1
    for version, group in groupby(_candidates(files), key=lambda entry: entry[0]):
        statuses = [status for _, status in group]
        if waiting and complete_checkpoints(statuses):
            # Times only grow from here on, so the first stretch that is too young ends the search.
            if last_ms > cutoff_ms or last_version > max_version:
                break
            expired += waiting
            waiting = []
        for status in statuses:
            # A file that claims to be older than its predecessors is not: that only postpones
            # deletion.
            last_ms = _monotone(status.modified_ms, last_ms, version > last_version)
            waiting.append(status.path)
        last_version = version
    return tuple(expired)


def _monotone(modified_ms: int, last_ms: int, is_newer_version: bool) -> int:
    if modified_ms > last_ms:
        return modified_ms
    return last_ms + 1 if is_newer_version else last_ms


def _candidates(files: Iterator[FileStatus]) -> Iterator[tuple[int, FileStatus]]:
    """Commits, checkpoints and checksums with their versions; compacted commits are left alone."""
    for status in files:
        name = parse_log_file_name(status.name)
        if name is not None and name.kind is not LogFileKind.COMPACTED:
            yield name.version, status
