"""The commits that landed since a transaction began, of the log that it read and of no other.

While a transaction is open, its table may be dropped and made again, restored from a copy, or
cleaned up by a writer with a shorter `delta.logRetentionDuration`. The races this guards
against:

- read version 5 -> the table is made again, with versions 0 to 2 -> put 6: created, above a gap,
  and from then on nobody can read the table.
- read version 5 -> the table is made again, with versions 0 to 9 -> put 6 loses -> rebase past 6 to
  9, of another table, with other columns -> put 10.
- read version 5 -> others commit 6 to 900 -> cleanup removes all up to 800 -> put 6, which nobody
  has any more: created, told as committed, and no part of the table.

So each listing also asks for the commit that was read. Before each put the log is listed, unless
that was done just now (`KnownLog`).
"""

from __future__ import annotations

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import StorageError
from optimist.core.errors.kinds import PREDECESSOR_MISSING
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.log.segment import commit_version, newer_commits
from optimist.core.plugins.logstore import FileStatus
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs

__all__ = ["ensure_log_goes_on", "read_winners"]


def read_winners(table: TableRef, ours: Ours) -> tuple[Theirs, ...]:
    """Return the commits from the version that we tried on, in order.

    Commits that the listing does not show yet are missing.

    Raises:
        StorageError: The log is not the one that the transaction read (kind
            `OPTIMIST_PREDECESSOR_MISSING`).
    """
    return tuple(
        Theirs(
            commit_version(status),
            status.modified_ms,
            read_commit(table.store, status.path),
            status=status,
        )
        for status in _list_winners(table, ours)
    )


def ensure_log_goes_on(table: TableRef, ours: Ours) -> None:
    """Make sure that the log still has the version before the one that we try, as it was read.

    This costs one listing, or none if the log was seen just now and a listing is not cheap.

    Raises:
        StorageError: It is not (kind `OPTIMIST_PREDECESSOR_MISSING`), or can't be listed. Nothing
            was written.
    """
    now_s = table.clock.monotonic_s()
    was_just_seen = not table.store.finds_cheaply and ours.known_log.was_just_seen(
        now_s, ours.attempt_version - 1
    )
    if ours.last_seen is not None and not was_just_seen:
        _list_winners(table, ours)


def _list_winners(table: TableRef, ours: Ours) -> tuple[FileStatus, ...]:
    version = ours.attempt_version - 1
    asked_s = table.clock.monotonic_s()
    found = newer_commits(table.store, table.log_path, ours.last_seen, version)
    if found is not None:
        first = commit_version(ours.last_seen) if ours.last_seen else ours.attempt_version
        ours.known_log.note_look(asked_s, table.clock.monotonic_s(), first)
        return found
    raise StorageError(
        f"Nothing was committed: the transaction read version {ours.read_version} of "
        f"{ours.table_path}, and the log no longer continues from that version. Meanwhile the "
        "table was dropped and made again, or restored from a copy, or its log was cleaned up. If "
        "the operation is meant for the table as it is now, run it again.",
        kind=PREDECESSOR_MISSING,
        path=commit_path(table.log_path, version),
        version=version,
        retryable=False,
    )
