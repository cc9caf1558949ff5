"""The step from a listing of the log to the files of one version (spec 5.3, 5.4, 5.5).

The cost of a listing is bounded by the files since the newest checkpoint. It starts at the
checkpoint that a hint names, and at the beginning only if no checkpoint is known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from optimist.core.errors import LogFileNotFoundError, StorageError, TableError
from optimist.core.errors.kinds import MISSING_PART_FILES
from optimist.core.log.checkpoint_kinds import (
    Checkpoint,
    CheckpointRank,
    complete_checkpoints,
)
from optimist.core.log.compacted import choose_compacted, compacted_range
from optimist.core.log.names import LogFileKind, commit_path, listing_start, parse_log_file_name
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "LogSegment",
    "commit_version",
    "commits_of_same_log",
    "is_listed",
    "list_commits_after",
    "list_segment",
    "newer_checkpoint",
    "newer_commits",
    "older_segment",
]

_LOG = logging.getLogger(__name__)
_WINDOW = 1000
_FULL_DIGITS = 20
_PROBES_BEYOND = 2
"""How many versions are looked up by name after a missing one: the log may go on after a hole."""
_MAX_PROBES = 100
"""The most versions that are looked up by name. For more, the directory is listed once."""


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files that make up the version `version`.

    Attributes:
        log_path: The log directory.
        version: The table version.
        checkpoint: The checkpoint to start from, or None to start from nothing.
        commits: The commits after the checkpoint, one per version, ascending, up to `version`.
        last_commit: The newest commit file, which may be missing in `commits` because the
            checkpoint covers it. If the commits up to `version` are gone, the next one. None
            without any version.
        checksum_file: The version checksum of exactly this version, if the listing showed one.
        compacted: Files that each hold several of the commits, ascending, without overlap.
        last_seen: The newest commit that a listing has shown, by which a later listing recognises
            the log (spec 5.5). None if unknown.
    """

    log_path: str
    version: int
    checkpoint: Checkpoint | None
    commits: tuple[FileStatus, ...]
    last_commit: FileStatus | None
    checksum_file: FileStatus | None = None
    compacted: tuple[FileStatus, ...] = ()
    last_seen: FileStatus | None = None

    @property
    def checkpoint_version(self) -> int:
        """The checkpoint's version, -1 without one. It is the hint for the next listing."""
        return self.checkpoint.version if self.checkpoint else -1

    @property
    def newest_commit(self) -> int:
        """The version of the newest commit file, -1 without one.

        It is below `version` only if a checkpoint claims a version whose commit is missing, and
        above it only if all commits up to that version are gone.
        """
        return commit_version(self.last_commit) if self.last_commit else -1

    @property
    def last_commit_timestamp_ms(self) -> int:
        """The modification time of the newest commit file, 0 without any version."""
        return self.last_commit.modified_ms if self.last_commit else 0

    def extended(self, commits: Sequence[FileStatus]) -> LogSegment:
        """Return the segment with at least one more commit, continued without a hole."""
        seen = (status for status in reversed(commits) if is_listed(status))
        return replace(
            self,
            version=self.version + len(commits),
            commits=(*self.commits, *commits),
            last_commit=commits[-1],
            checksum_file=None,
            last_seen=next(seen, self.last_seen),
        )

    def from_checkpoint(self, checkpoint: Checkpoint) -> LogSegment:
        """Return the same version made from a newer checkpoint, which is not above it."""
        base = checkpoint.version
        compacted = (each for each in self.compacted if compacted_range(each)[0] > base)
        return replace(
            self,
            checkpoint=checkpoint,
            commits=self.commits_after(base),
            compacted=tuple(compacted),
        )

    def commits_after(self, version: int) -> tuple[FileStatus, ...]:
        """Return the commits above `version`, which must not be below the checkpoint's."""
        return self.commits[max(0, version + 1 - self._first_commit) :]

    @property
    def deltas(self) -> tuple[FileStatus, ...]:
        """The files to replay after the checkpoint: commits, or compacted files in their place.

        See spec 5.3 step 11.
        """
        first = self._first_commit
        deltas: list[FileStatus] = []
        done = 0
        for status in self.compacted:
            start, end = compacted_range(status)
            deltas += [*self.commits[done : start - first], status]
            done = end + 1 - first
        return (*deltas, *self.commits[done:])

    @property
    def _first_commit(self) -> int:
        return self.version - len(self.commits) + 1


@dataclass(frozen=True, slots=True)
class _Listing:
    """The log files of a range of versions, commits and checksums ascending.

    `checkpoints` are the complete ones, least preferred first.
    """

    commits: tuple[tuple[int, FileStatus], ...]
    checkpoints: tuple[Checkpoint, ...]
    checksums: Mapping[int, FileStatus]
    compacted: tuple[FileStatus, ...]
    is_empty: bool

    def below(self, rank: CheckpointRank) -> _Listing:
        """Return the same listing, with only the checkpoints of a lower rank."""
        usable = tuple(item for item in self.checkpoints if item.rank < rank)
        return replace(self, checkpoints=usable)


def list_segment(
    store: LogStore, log_path: str, *, version: int | None = None, hint: int | None = None
) -> LogSegment | None:
    """Return the segment of a version, or of the newest one.

    Args:
        store: The store of the log.
        log_path: The log directory.
        version: The wanted version. None for the newest.
        hint: Version of a checkpoint that probably exists, from `_last_checkpoint` or from a former
            segment. A hint that is too old only costs time, and one that is too new is noticed.

    Returns:
        The segment, or None without a table.

    Raises:
        TableError: The log has a hole, lacks what the version needs, or is not a directory. Kinds
            `DELTA_LOG_FILE_NOT_FOUND`, `DELTA_MISSING_PART_FILES`,
            `DELTA_TRUNCATED_TRANSACTION_LOG`, `DELTA_VERSIONS_NOT_CONTIGUOUS`,
            `DELTA_VERSION_NOT_FOUND`, `OPTIMIST_LOG_PATH_IS_A_FILE`.
    """
    start = _first_version_to_list(store, log_path, version, hint)
    listing = _list_log(store, log_path, start, version)
    if listing is not None and start > 0 and not listing.commits:
        # The hint is too new, or the table was deleted and made anew: begin again without it. A
        # checkpoint in the listing has no commit beside it, and may be as wrong as the hint.
        start = 0
        listing = _list_log(store, log_path, 0, version)
    if listing is None:
        return None
    if listing.is_empty:
        _ensure_not_a_file(store, log_path)
        return None
    if start > 0 and not listing.checkpoints:
        return _from_older_checkpoint(store, log_path, version, _rank_below(start))
    if version is not None and not listing.commits:
        return _from_checkpoint_alone(store, log_path, listing, version)
    return _build_segment(log_path, listing, version)


def newer_checkpoint(store: LogStore, segment: LogSegment, hint: int) -> Checkpoint | None:
    """Return the newest complete checkpoint that could replace the segment's own.

    Costs one listing.

    Args:
        store: The store of the log.
        segment: The files of the version.
        hint: Version of a checkpoint that probably exists. The listing begins there.
    """
    if not segment.checkpoint_version < hint <= segment.version:
        return None
    listing = _list_log(store, segment.log_path, hint, segment.version)
    return listing.checkpoints[-1] if listing and listing.checkpoints else None


def older_segment(store: LogStore, segment: LogSegment) -> LogSegment | None:
    """Return the same version, built without this segment's checkpoint, or None.

    Called when a checkpoint turns out to be unreadable (spec 5.6). The next best replaces it:
    another one of the same version, an older one, or else all commits since version 0. If the table
    was dropped and made anew meanwhile, nothing replaces it.
    """
    if segment.checkpoint is None or _is_of_another_log(store, segment):
        return None
    try:
        return _from_older_checkpoint(
            store,
            segment.log_path,
            segment.version,
            segment.checkpoint.rank,
            newest_commit=segment.newest_commit,
        )
    except TableError as error:
        _LOG.debug("No older checkpoint helps for version %d: %s", segment.version, error)
        return None


def _is_of_another_log(store: LogStore, segment: LogSegment) -> bool:
    """Return whether the newest listed commit is gone or was replaced."""
    seen = segment.last_seen
    if seen is None:
        return False
    return not commits_of_same_log(store, segment.log_path, seen, commit_version(seen))


def commits_of_same_log(
    store: LogStore, log_path: str, last_seen: FileStatus, version: int
) -> tuple[FileStatus, ...]:
    """Return the commits from a known one on, if the log is still the same.

    Version numbers do not show that: a table that was dropped and made anew has the same ones. So
    the listing begins with the newest known commit, which must be unchanged. This costs no request
    of its own.

    Args:
        store: The store of the log.
        log_path: The log directory.
        last_seen: The newest commit known from a listing.
        version: The known version: `last_seen`'s or one above it.

    Returns:
        The commits without a hole, from `last_seen` on. Empty if it is another log, or if it has
        lost commits up to `version`.
    """
    first = commit_version(last_seen)
    try:
        found = list_commits_after(store, log_path, first - 1)
    except TableError:  # the remaining commits do not begin with it
        return ()
    is_same = bool(found) and found[0].is_same_file(last_seen)
    return found if is_same and first + len(found) > version else ()


def newer_commits(
    store: LogStore, log_path: str, last_seen: FileStatus | None, version: int
) -> tuple[FileStatus, ...] | None:
    """Return the commits above a known version, like `list_commits_after`.

    None if it is another log by now, or has lost commits up to the version (see
    `commits_of_same_log`). Without a commit from a listing no comparison is possible.
    """
    if last_seen is None:
        return list_commits_after(store, log_path, version)
    found = commits_of_same_log(store, log_path, last_seen, version)
    return found[version - commit_version(last_seen) + 1 :] if found else None


def list_commits_after(store: LogStore, log_path: str, version: int) -> tuple[FileStatus, ...]:
    """Return the commits above a version, ascending, for the conflict check (spec 1.13).

    There may be none. They have no hole: the i-th, from 0, is version `version + 1 + i` (see also
    `commit_version`). If a store's listing reads the whole directory but a lookup of one name does
    not, the next versions are looked up by name. Then a commit costs the same however many files
    the log has.

    Raises:
        TableError: The commits have a hole after `version` (kind `DELTA_VERSIONS_NOT_CONTIGUOUS`).
    """
    if store.finds_cheaply:
        found = _find_next_by_name(store, log_path, version + 1)
        if len(found) < _MAX_PROBES:
            return found
    listing = _list_log(store, log_path, version + 1, None)
    if listing is None:
        return ()
    versions = [version, *(number for number, _ in listing.commits)]
    _ensure_no_hole(versions, log_path, versions[-1])
    return tuple(status for _, status in listing.commits)


def _find_next_by_name(store: LogStore, log_path: str, first: int) -> tuple[FileStatus, ...]:
    """Return the commits from a version on, up to the first missing one or `_MAX_PROBES`.

    Raises:
        TableError: A commit is missing, and a later one exists (kind
            `DELTA_VERSIONS_NOT_CONTIGUOUS`).
    """
    found: list[FileStatus] = []
    while len(found) < _MAX_PROBES:
        version = first + len(found)
        status = store.find(commit_path(log_path, version))
        if status is None:
            later = _find_beyond_hole(store, log_path, version)
            # Versions are made in order: if a later one exists, this one must exist, too.
            status = None if later is None else store.find(commit_path(log_path, version))
            if later is not None and status is None:
                _ensure_no_hole([version - 1, later], log_path, later)
        if status is None:
            break
        found.append(status)
    return tuple(found)


def _find_beyond_hole(store: LogStore, log_path: str, missing: int) -> int | None:
    """Return the next commit after a missing version, within `_PROBES_BEYOND`."""
    later = range(missing + 1, missing + 1 + _PROBES_BEYOND)
    return next((each for each in later if store.find(commit_path(log_path, each))), None)


def is_listed(status: FileStatus) -> bool:
    """Return whether a commit's status is from a listing. Our own commit's has no size."""
    return status.size_bytes > 0


def commit_version(status: FileStatus) -> int:
    """Return the version of a commit file, by its name.

    Raises:
        ValueError: The file is not a commit.
    """
    name = parse_log_file_name(status.name)
    if name is None or name.kind is not LogFileKind.COMMIT:
        raise ValueError(f"{status.name} is not the name of a commit")
    return name.version


def _first_version_to_list(
    store: LogStore, log_path: str, version: int | None, hint: int | None
) -> int:
    if hint is not None and hint >= 0 and (version is None or hint <= version):
        return hint
    if version is None:
        return 0
    return _newest_checkpoint_version(store, log_path, version)


def _newest_checkpoint_version(
    store: LogStore,
    log_path: str,
    upto: int,
    below: CheckpointRank | None = None,
    *,
    newest_commit: int = LARGEST_LONG,
) -> int:
    """Search backwards for the newest complete checkpoint up to `upto`, else 0 (spec 5.4).

    Each window is twice as long as the one before, so even a version far beyond the log costs few
    listings. The search skips the range between the first window and the newest commit.
    """
    end, window = upto, _WINDOW
    while end >= 0:
        start, window = max(0, end - window), 2 * window
        listing = _list_log(store, log_path, start, end)
        if listing is not None and below is not None:
            listing = listing.below(below)
        if listing is not None and listing.checkpoints:
            return listing.checkpoints[-1].version
        end = min(start - 1, newest_commit)
    return 0


def _rank_below(version: int) -> CheckpointRank:
    """Return a rank above those of all older versions' checkpoints."""
    return version, -1, 0, ""


def _from_older_checkpoint(
    store: LogStore,
    log_path: str,
    version: int | None,
    below: CheckpointRank,
    *,
    newest_commit: int = LARGEST_LONG,
) -> LogSegment:
    """Return a segment from a checkpoint of a lower rank, or from the first commit on."""
    wanted = below[0]
    start = _newest_checkpoint_version(store, log_path, wanted, below, newest_commit=newest_commit)
    listing = _list_log(store, log_path, start, version)
    if listing is None:
        raise _log_file_not_found(log_path, version)
    listing = listing.below(below)
    if not listing.checkpoints and (not listing.commits or listing.commits[0][0] > 0):
        raise TableError(
            f"The log {log_path} has no complete checkpoint at version {wanted}, where one should "
            "be, and has neither an older checkpoint nor all commits since version 0. Files of the "
            "log were deleted. Restore them from a backup.",
            kind=MISSING_PART_FILES,
            log_path=log_path,
            version=wanted,
        )
    return _build_segment(log_path, listing, version)


def _build_segment(log_path: str, listing: _Listing, version: int | None) -> LogSegment:
    checkpoint = listing.checkpoints[-1] if listing.checkpoints else None
    base = checkpoint.version if checkpoint else -1
    if not listing.commits:
        raise _log_file_not_found(log_path, version)
    commits = [(number, status) for number, status in listing.commits if number > base]
    loading = commits[-1][0] if commits else base
    _ensure_no_gap([number for number, _ in commits], base, log_path, loading)
    if version is not None and loading != version:
        raise TableError(
            f"Version {version} does not exist: the log {log_path} ends at version {loading}.",
            kind="DELTA_VERSION_NOT_FOUND",
            version=version,
            latest=loading,
        )
    newest, last_commit = listing.commits[-1]
    return LogSegment(
        log_path,
        loading,
        checkpoint,
        tuple(status for _, status in commits),
        last_commit,
        listing.checksums.get(loading),
        choose_compacted(listing.compacted, base, loading),
        last_seen=last_commit if newest == loading else None,
    )


def _from_checkpoint_alone(
    store: LogStore, log_path: str, listing: _Listing, version: int
) -> LogSegment:
    """Return the segment of a checkpoint whose own commit was cleaned up (spec 5.3 step 8).

    The next commit shows that the log had this version. It also gives the version its time: what
    it or a later commit removed is kept from that time on.
    """
    checkpoint = listing.checkpoints[-1] if listing.checkpoints else None
    later = _list_log(store, log_path, version + 1, version + 1)
    if checkpoint is None or checkpoint.version != version or not (later and later.commits):
        raise _log_file_not_found(log_path, version)
    _, next_commit = later.commits[0]
    return LogSegment(
        log_path,
        version,
        checkpoint,
        (),
        next_commit,
        listing.checksums.get(version),
        last_seen=next_commit,
    )


def _ensure_no_gap(versions: Sequence[int], base: int, log_path: str, loading: int) -> None:
    """Refuse versions that do not continue from the checkpoint, or from 0 (spec 5.5)."""
    if versions and versions[0] != base + 1:
        since = f"the checkpoint of version {base}" if base >= 0 else "the beginning"
        raise TableError(
            f"The log {log_path} is truncated: after {since} it should continue with version "
            f"{base + 1}, but its next commit is version {versions[0]}. Commits were deleted, by "
            "hand or because delta.logRetentionDuration has passed, and no checkpoint replaces "
            "them. Restore them, or read a version that is still complete.",
            kind="DELTA_TRUNCATED_TRANSACTION_LOG",
            log_path=log_path,
            version=loading,
            missing_version=base + 1,
            first_version=versions[0],
        )
    _ensure_no_hole(versions, log_path, loading)


def _ensure_no_hole(versions: Sequence[int], log_path: str, loading: int) -> None:
    for before, after in pairwise(versions):
        if after != before + 1:
            raise TableError(
                f"The log {log_path} has a gap: version {after} follows version {before}, so "
                f"version {loading} can't be loaded. The commits between them were deleted, or the "
                f"store's listing is incomplete. Restore them, or read version {before} or an "
                "older one.",
                kind="DELTA_VERSIONS_NOT_CONTIGUOUS",
                log_path=log_path,
                version=loading,
                version_before=before,
                version_after=after,
            )


def _log_file_not_found(log_path: str, version: int | None) -> TableError:
    wanted = "its newest version" if version is None else f"version {version}"
    return TableError(
        f"The log directory {log_path} has files, but no commit file from which {wanted} can be "
        "loaded. Commit files were deleted. Restore them from a backup.",
        kind="DELTA_LOG_FILE_NOT_FOUND",
        log_path=log_path,
        version=version,
    )


def _list_log(store: LogStore, log_path: str, start: int, end: int | None) -> _Listing | None:
    """List log files of versions `start` to `end`, inclusive, or None without a directory."""
    try:
        return _sort_listing(store, log_path, start, end)
    except LogFileNotFoundError:
        _ensure_not_a_file(store, log_path)
        return None
    except StorageError as error:
        if not error.retryable:  # a store in trouble does not know the path's kind, either
            _ensure_not_a_file(store, log_path)
        raise


def _sort_listing(store: LogStore, log_path: str, start: int, end: int | None) -> _Listing:
    commits: dict[int, FileStatus] = {}
    checksums: dict[int, FileStatus] = {}
    checkpoints: list[FileStatus] = []
    compacted: list[FileStatus] = []
    seen = 0
    for status in store.list_from(listing_start(log_path, start)):
        seen += 1
        name = parse_log_file_name(status.name)
        if name is None or name.version < start:
            continue
        if end is not None and name.version > end:
            if len(status.name.partition(".")[0]) == _FULL_DIGITS:
                break  # names of full length are sorted by version
            continue
        if name.kind is LogFileKind.COMMIT:
            commits.setdefault(name.version, status)
        elif name.kind is LogFileKind.CHECKSUM:
            checksums.setdefault(name.version, status)
        elif name.kind.is_checkpoint:
            checkpoints.append(status)
        elif name.kind is LogFileKind.COMPACTED:
            compacted.append(status)
    return _Listing(
        tuple(sorted(commits.items())),
        complete_checkpoints(checkpoints),
        checksums,
        tuple(compacted),
        is_empty=seen == 0,
    )


def _ensure_not_a_file(store: LogStore, log_path: str) -> None:
    # Listings leave directories out, so an entry with exactly this name is a file.
    try:
        first = next(iter(store.list_from(log_path)), None)
    except StorageError:
        return
    if first is not None and first.name == log_path.rpartition("/")[2]:
        raise TableError(
            f"{log_path} is a file, but a Delta table has a directory there, so this is not a "
            "Delta table. Check the path, or move the file away.",
            kind="OPTIMIST_LOG_PATH_IS_A_FILE",
            path=log_path,
        )
