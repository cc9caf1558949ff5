"""The reading of commit files: as actions, or only their commitInfo (spec 5.6, 1.10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from optimist.core.errors import TableError
from optimist.core.paths import scheme_of
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import (
    Action,
    CommitInfo,
    action_from_json,
    actions_from_bytes,
    malformed_commit,
)
from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["read_commit", "read_commit_info", "read_commits_bytes"]

_PARALLEL_READS = 8
_LONGEST_RUN = 64
_FEW, _FEW_ON_DISK = 2, 16
"""So many commits are read one after the other: to start threads takes longer."""


def read_commit(store: LogStore, path: str) -> tuple[Action, ...]:
    """Return the actions of a commit file, in the order of its lines.

    Raises:
        LogFileNotFoundError: The commit does not exist.
        TableError: The file is empty or torn (kind `OPTIMIST_MALFORMED_COMMIT`).
    """
    return actions_from_bytes(store.read_bytes(path), path)


def read_commit_info(store: LogStore, path: str) -> CommitInfo | None:
    """Return the commitInfo of a commit, or None, and read no further than its line.

    Raises:
        LogFileNotFoundError: The commit does not exist.
        TableError: The line with it is damaged, or the file is empty (kind
            `OPTIMIST_MALFORMED_COMMIT`).
    """
    is_empty = True
    with store.open_read(path) as file:
        for line in file:
            is_empty = is_empty and not line.strip()
            # Some writers put every kind of action in every line, all null except one.
            if b'"commitInfo"' in line and (info := _parse_commit_info(line, path)):
                return info
    if is_empty:
        raise malformed_commit(path, "it is empty")
    return None


def read_commits_bytes(
    store: LogStore, commits: Sequence[FileStatus], read: Callable[[str], bytes] | None = None
) -> Iterator[bytes]:
    """Yield the content of each commit in order, and read several at a time.

    Parallel reads help with stores far away. Only a few runs of commits are read ahead, so memory
    stays flat.

    Args:
        store: The store of the log.
        commits: The files.
        read: Reads a file, in any thread; None for `read_bytes` of the store.
    """
    read = read or store.read_bytes
    is_on_disk = bool(commits) and scheme_of(commits[0].path) in ("", "file")
    if len(commits) <= (_FEW_ON_DISK if is_on_disk else _FEW):
        yield from (read(status.path) for status in commits)
        return
    # Handing a file to a thread costs more than reading it from a disk, so threads get runs.
    length = max(1, min(_LONGEST_RUN, len(commits) // (4 * _PARALLEL_READS)))
    runs = (commits[start : start + length] for start in range(0, len(commits), length))

    def read_run(run: Sequence[FileStatus]) -> list[bytes]:
        return [read(status.path) for status in run]

    for contents in read_ahead(read_run, runs, threads=_PARALLEL_READS, ahead=2 * _PARALLEL_READS):
        yield from contents


def _parse_commit_info(line: bytes, path: str) -> CommitInfo | None:
    try:
        action = action_from_json(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise malformed_commit(path, "it is not UTF-8 text") from None
    except TableError as error:
        raise malformed_commit(path, str(error.args[0])) from None
    return action if isinstance(action, CommitInfo) else None
