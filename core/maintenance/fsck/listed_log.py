"""The files of a log by their names: what is missing, and what should not be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from optimist.core.log.checkpoint_kinds import Checkpoint, complete_checkpoints
from optimist.core.log.compacted import compacted_range
from optimist.core.log.names import (
    LogFileKind,
    commit_path,
    listing_start,
    parse_log_file_name,
)
from optimist.core.maintenance.fsck.findings import Finding
from optimist.core.maintenance.fsck.second_look import is_there, is_young
from optimist.core.plugins.logstore import FileStatus, LogStore

__all__ = ["ListedLog"]

_DIGITS = 20


@dataclass(frozen=True, slots=True)
class ListedLog:
    """The files of a log.

    Attributes:
        log_path: The log directory.
        commits: The commits by version, ascending.
        odd_commits: Files whose names say a version in another way than Delta writes it.
        checkpoint_files: The files of checkpoints, parts included.
        checkpoints: The complete checkpoints.
        checksums: The version checksums by version, ascending.
        compacted: The files of compacted commits.
    """

    log_path: str
    commits: Mapping[int, FileStatus]
    odd_commits: tuple[FileStatus, ...]
    checkpoint_files: tuple[FileStatus, ...]
    checkpoints: tuple[Checkpoint, ...]
    checksums: Mapping[int, FileStatus]
    compacted: tuple[FileStatus, ...]

    @classmethod
    def of(cls, store: LogStore, log_path: str) -> ListedLog:
        """List a log, all of it.

        Raises:
            StorageError: The store failed.
        """
        commits: dict[int, FileStatus] = {}
        checksums: dict[int, FileStatus] = {}
        odd, checkpoints, compacted = [], [], []
        for status in store.list_from(listing_start(log_path, 0)):
            name = parse_log_file_name(status.name)
            if name is None:
                continue
            if name.kind is LogFileKind.COMMIT:
                if status.name.index(".") == _DIGITS:
                    commits[name.version] = status
                else:
                    odd.append(status)
            elif name.kind is LogFileKind.CHECKSUM:
                checksums[name.version] = status
            elif name.kind is LogFileKind.COMPACTED:
                compacted.append(status)
            else:
                checkpoints.append(status)
        return cls(
            log_path,
            dict(sorted(commits.items())),
            tuple(odd),
            tuple(checkpoints),
            complete_checkpoints(checkpoints),
            dict(sorted(checksums.items())),
            tuple(compacted),
        )

    def findings(self, store: LogStore, now_ms: int) -> Iterator[Finding]:
        """Yield what the names alone show.

        A listing is no snapshot: what was written meanwhile may be missing in it, and what was
        cleaned up meanwhile may be only half in it. So a missing commit is looked up by its name.

        Args:
            store: The store of the log.
            now_ms: The time, in epoch milliseconds.
        """
        yield from self._holes(store)
        yield from self._lost_at_the_end(store)
        for status in self.odd_commits:
            name = parse_log_file_name(status.name)
            version = -1 if name is None else name.version
            if version in self.commits:
                proof = f"{self.commits[version].name} is the commit of the same version"
                yield Finding("duplicate-commit", status.path, proof, version, status.size_bytes)
            else:
                proof = "the name has not the twenty digits by which engines find a commit"
                yield Finding("foreign-commit", status.path, proof, version, status.size_bytes)
        yield from self._incomplete_checkpoints(store, now_ms)

    def _holes(self, store: LogStore) -> Iterator[Finding]:
        versions = list(self.commits)
        for one, other in pairwise(versions):
            if other - one > 1 and self._is_hole(store, one, other):
                last = "" if other - one == 2 else f" to {other - 1}"
                proof = f"there is no commit {one + 1}{last}, but {one} and {other} are there"
                yield Finding("gap", self.log_path, proof, one + 1)
        first = versions[0] if versions else 0
        if first and not any(first - 1 <= each.version for each in self.checkpoints):
            proof = f"the log begins with commit {first}, and no checkpoint stands for those before"
            yield Finding("gap", self.log_path, proof, 0)

    def _is_hole(self, store: LogStore, one: int, other: int) -> bool:
        """Return whether a commit between two is missing, though no cleanup is passing by.

        A cleanup removes the oldest commits first. So what is missing above a commit that is still
        there was not cleaned up.
        """
        between = range(one + 1, other)
        if all(is_there(store, commit_path(self.log_path, version)) for version in between):
            return False
        return is_there(store, commit_path(self.log_path, one))

    def _lost_at_the_end(self, store: LogStore) -> Iterator[Finding]:
        """Find versions above the newest commit that left another file behind."""
        newest = max(self.commits, default=-1)
        known = {version: status.name for version, status in self.checksums.items()}
        known |= {compacted_range(status)[1]: status.name for status in self.compacted}
        known |= {each.version: each.files[0].name for each in self.checkpoints}
        last = max(known, default=-1)
        if not self.commits or last <= newest:
            return
        if not is_there(store, commit_path(self.log_path, newest + 1)):
            proof = f"the newest commit is {newest}, but {known[last]} is there"
            yield Finding("gap", self.log_path, proof, newest + 1)

    def _incomplete_checkpoints(self, store: LogStore, now_ms: int) -> Iterator[Finding]:
        """Find empty checkpoints and those that lack a part, unless they may be in the making."""
        complete = {status.path for each in self.checkpoints for status in each.files}
        parts: dict[tuple[int, int | None], list[FileStatus]] = {}
        for status in self.checkpoint_files:
            name = parse_log_file_name(status.name)
            if name is None or status.path in complete:
                continue
            if status.size_bytes:
                parts.setdefault((name.version, name.num_parts), []).append(status)
            elif not is_young(status, now_ms):
                proof = "it is empty"
                yield Finding("bad-checkpoint", status.path, proof, name.version, 0, (status,))
        for (version, num_parts), files in parts.items():
            is_at_work = any(is_young(status, now_ms) for status in files)
            if not is_at_work and all(is_there(store, status.path) for status in files):
                proof = f"of its {num_parts} parts some are missing"
                first = files[0].path
                yield Finding("missing-part", first, proof, version, None, tuple(files))
