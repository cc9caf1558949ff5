"""Detection of commits that another writer overwrote, as far as this can be seen.

A commit file never changes. If a file that we wrote, read or listed has another entity tag or
length later, somebody has overwritten it, as Spark's default S3 store can. Its content is lost. The
next listing reports it once, with both commits.

Two harmless events look the same: a table that was deleted and created again has other files under
the same names, and recovery through an arbiter may copy the same bytes again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from optimist.core.errors import OptimistError, StorageError
from optimist.core.forking import ForkSafeLock
from optimist.core.log.names import LogFileKind, parse_log_file_name
from optimist.core.plugins.logstore import COMMIT_REPLACED
from optimist.core.protocol.actions import CommitInfo, action_from_json

__all__ = ["CommitIdentity", "KnownCommits", "commit_replaced", "is_commit"]

_MAX_TABLES = 256
_MAX_COMMITS = 1_000
_COMMIT_INFO = b'{"commitInfo"'


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """The known facts about one commit file, which its tag and length identify.

    Attributes:
        path: Its path.
        etag: Its entity tag.
        size_bytes: Its length.
        modified_ms: The store's time of the write, or 0 if it was not listed yet.
        is_ours: True if this process created it.
        txn_id: From its commitInfo; None if it was only listed, or has none.
        operation: From its commitInfo, or None.
        engine: From its commitInfo, or None.
    """

    path: str
    etag: str
    size_bytes: int
    modified_ms: int = 0
    is_ours: bool = False
    txn_id: str | None = None
    operation: str | None = None
    engine: str | None = None

    def with_content(self, data: bytes) -> CommitIdentity:
        """Return the same file, with the values of its commitInfo."""
        info = _find_commit_info(data)
        if info is None:
            return self
        return replace(self, txn_id=info.txn_id, operation=info.operation, engine=info.engine_info)

    def is_same_file(self, other: CommitIdentity) -> bool:
        """Check whether both have the same tag and length."""
        return (self.etag, self.size_bytes) == (other.etag, other.size_bytes)

    def __str__(self) -> str:
        if self.txn_id is None and self.operation is None:
            return f"a commit of {self.size_bytes} bytes (tag {self.etag})"
        whose = "this process's" if self.is_ours else f"{self.engine or 'an unnamed engine'}'s"
        return f"{whose} {self.operation or 'commit'} (txnId {self.txn_id}, tag {self.etag})"


class KnownCommits:
    """The commit files that a store has seen lately, bounded in size and shared by threads."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._tables: OrderedDict[str, OrderedDict[str, CommitIdentity]] = OrderedDict()

    def remember(self, seen: CommitIdentity) -> None:
        """Record a seen file, and keep what is already known of the same file."""
        with self._lock:
            files = self._files_beside(seen.path)
            known = files.pop(seen.path, None)
            if known is not None and known.is_same_file(seen):
                seen = _merge_facts(known, seen)
            files[seen.path] = seen
            if len(files) > _MAX_COMMITS:
                files.popitem(last=False)

    def get(self, path: str) -> CommitIdentity | None:
        """Return the known identity of a file."""
        with self._lock:
            return self._tables.get(_directory_of(path), OrderedDict()).get(path)

    def changed(self, seen: CommitIdentity) -> CommitIdentity | None:
        """Return the known file of the path if it was replaced, or else remember this file."""
        known = self.get(seen.path)
        if known is not None and not known.is_same_file(seen):
            return known
        if known is None or known.modified_ms != seen.modified_ms:
            self.remember(seen)
        return None

    def learn(self, seen: CommitIdentity, data: bytes) -> None:
        """Record the content of a file.

        If the file has changed, the next listing reports it.
        """
        known = self.get(seen.path)
        if known is None or (known.is_same_file(seen) and known.txn_id is None):
            self.remember(seen.with_content(data))

    def forget(self, path: str) -> None:
        """Forget a file, because this store deletes or overwrites it."""
        with self._lock:
            self._tables.get(_directory_of(path), OrderedDict()).pop(path, None)

    def forget_table(self, path: str) -> None:
        """Forget all files in the file's directory, because the table was created again."""
        with self._lock:
            self._tables.pop(_directory_of(path), None)

    def _files_beside(self, path: str) -> OrderedDict[str, CommitIdentity]:
        directory = _directory_of(path)
        files = self._tables.setdefault(directory, OrderedDict())
        self._tables.move_to_end(directory)
        if len(self._tables) > _MAX_TABLES:
            self._tables.popitem(last=False)
        return files


def is_commit(name: str) -> bool:
    """Check whether a name is a commit file's."""
    parsed = parse_log_file_name(name)
    return parsed is not None and parsed.kind is LogFileKind.COMMIT


def commit_replaced(known: CommitIdentity, found: CommitIdentity) -> StorageError:
    """Return the error for a commit that somebody overwrote."""
    lost = "A commit that this process made is lost" if known.is_ours else "A commit is lost"
    return StorageError(
        f"{lost}: {known.path} was {known} and is now {found}. Another writer overwrote it without "
        "checking whether it was there. What the first commit did is no longer in the table, and "
        "no commit refers to its data files. Stop the writer that overwrites (delta-spark's "
        "default S3 store does, across drivers), compare both commits, and run the lost operation "
        "again if it is still wanted. This error is raised once; from now on the table is read as "
        "it is.",
        kind=COMMIT_REPLACED,
        path=known.path,
        lost_txn_id=known.txn_id,
        lost_operation=known.operation,
        found_txn_id=found.txn_id,
        found_operation=found.operation,
        found_engine=found.engine,
        retryable=False,
    )


def _merge_facts(known: CommitIdentity, seen: CommitIdentity) -> CommitIdentity:
    return replace(
        seen,
        modified_ms=seen.modified_ms or known.modified_ms,
        is_ours=seen.is_ours or known.is_ours,
        txn_id=seen.txn_id or known.txn_id,
        operation=seen.operation or known.operation,
        engine=seen.engine or known.engine,
    )


def _directory_of(path: str) -> str:
    return path.rpartition("/")[0]


def _find_commit_info(data: bytes) -> CommitInfo | None:
    start = data.find(_COMMIT_INFO)
    if start < 0 or (start > 0 and data[start - 1 : start] != b"\n"):
        return None  # not at the start of a line: text inside another action
    end = data.find(b"\n", start)
    line = data[start:] if end < 0 else data[start:end]
    try:
        action = action_from_json(line.decode("utf-8"))
    except (OptimistError, UnicodeDecodeError):
        return None  # the commit's reader reports it
    return action if isinstance(action, CommitInfo) else None
