"""The errors of a log with an arbiter; see `external_arbiter` for the steps."""

from __future__ import annotations

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import name_of, parent_of
from optimist.core.plugins.arbiter import CommitEntry

__all__ = [
    "given_back",
    "no_answer",
    "predecessor_missing",
    "staged_commit_lost",
    "stale_entry",
]


def stale_entry(path: str, table_path: str) -> StorageError:
    """Return the error for a commit that is complete in the arbiter but whose file is gone."""
    return StorageError(
        f"Nothing was committed: the arbiter has {shown(name_of(path))} of {table_path} as "
        "committed, but the file is not there. If the table was deleted and created again, the "
        "arbiter still has the entries of the old one: delete the entries of this table path, or "
        "wait until they expire. If the table was not deleted, restore the file.",
        kind="OPTIMIST_STALE_ARBITER_ENTRY",
        path=path,
        table_path=table_path,
        retryable=False,
    )


def given_back(path: str, table_path: str) -> StorageError:
    """Return the error for an entry that beat ours and that its writer then deleted."""
    return StorageError(
        f"Nothing was committed: another writer claimed {shown(name_of(path))} of {table_path}, "
        "then gave it up. Run the operation again.",
        kind="OPTIMIST_STORE_CONFLICT",
        path=path,
        retryable=True,
    )


def predecessor_missing(path: str, previous: str, *, is_known: bool) -> StorageError:
    """Return the error for a previous commit that has no file."""
    knowledge = "has an entry in the arbiter" if is_known else "has no entry in the arbiter"
    return StorageError(
        f"Nothing was committed: {shown(previous)}, the commit before {shown(name_of(path))}, "
        f"{knowledge}, but no file in {parent_of(path)}. Restore the file, and check that all "
        "writers spell the path of the table in the same way.",
        kind="OPTIMIST_PREDECESSOR_MISSING",
        path=path,
        previous=previous,
        retryable=False,
    )


def staged_commit_lost(entry: CommitEntry, target: str) -> StorageError:
    """Return the error for a commit whose staged bytes are gone, so that it can't be finished."""
    return StorageError(
        f"The commit {shown(entry.file_name)} of {entry.table_path} can't be finished: its staged "
        f"file {shown(entry.temp_path)} is gone, and {shown(target)} was never created. That "
        "commit is lost, and the table takes no more commits until its entry is deleted from the "
        "arbiter. Check whether a lifecycle rule deletes files below _delta_log/.tmp.",
        kind="OPTIMIST_STAGED_COMMIT_LOST",
        path=target,
        temp_path=entry.temp_path,
        table_path=entry.table_path,
        retryable=False,
    )


def no_answer(path: str) -> StorageError:
    """Return the error for a store that does not say whether a file was created."""
    return StorageError(
        f"The store did not say whether {path} was created, and looking for it failed. Run the "
        "operation again.",
        kind="OPTIMIST_STORE_NO_ANSWER",
        path=path,
        retryable=True,
    )
