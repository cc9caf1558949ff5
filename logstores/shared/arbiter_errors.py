"""The errors of a log with an arbiter; see `external_arbiter` for the steps."""

from __future__ import annotations

from optimist.core.errors import StorageError
from optimist.core.foreign_text import shown
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
    """The error for a commit that the arbiter calls complete and whose file is gone."""
    return StorageError(
        f"Nothing was committed: the arbiter says that {shown(name_of(path))} of {table_path} was "
        "committed, and the file is not there. Probably the table was deleted and made anew while "
        "the arbiter still has the entries of the old one: delete the entries of this table path, "
        "or wait until they expire. If the table was not deleted, restore the file.",
        kind="OPTIMIST_STALE_ARBITER_ENTRY",
        path=path,
        table_path=table_path,
        retryable=False,
    )


def given_back(path: str, table_path: str) -> StorageError:
    """The error for an entry that beat ours and was then deleted by its writer."""
    return StorageError(
        f"Nothing was committed: another writer had claimed {shown(name_of(path))} of "
        f"{table_path} and gave it back. Run the operation again.",
        kind="OPTIMIST_STORE_CONFLICT",
        path=path,
        retryable=True,
    )


def predecessor_missing(path: str, previous: str, *, is_known: bool) -> StorageError:
    """The error for a commit before ours that has no file."""
    knowledge = "is known to the arbiter" if is_known else "has no entry in the arbiter"
    return StorageError(
        f"Nothing was committed: {shown(previous)}, the commit before {shown(name_of(path))}, "
        f"{knowledge} and is not in {parent_of(path)}. Restore the file, or see whether all "
        "writers spell the table's path alike.",
        kind="OPTIMIST_PREDECESSOR_MISSING",
        path=path,
        previous=previous,
        retryable=False,
    )


def staged_commit_lost(entry: CommitEntry, target: str) -> StorageError:
    """The error for a commit that can't be finished, because its staged bytes are gone."""
    return StorageError(
        f"The commit {shown(entry.file_name)} of {entry.table_path} can't be finished: its staged "
        f"file {shown(entry.temp_path)} is gone, and {shown(target)} was never made. That commit "
        "is lost, and blocks the table. Was a lifecycle rule too quick? To go on without it, "
        "delete its entry from the arbiter.",
        kind="OPTIMIST_STAGED_COMMIT_LOST",
        path=target,
        temp_path=entry.temp_path,
        table_path=entry.table_path,
        retryable=False,
    )


def no_answer(path: str) -> StorageError:
    """The error for a store that does not say whether a file was created."""
    return StorageError(
        f"The store did not say whether {path} was created, and it can't be seen.",
        kind="OPTIMIST_STORE_NO_ANSWER",
        path=path,
        retryable=True,
    )
