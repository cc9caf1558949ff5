"""`KnownCommit`: a commit whose actions need not be read from the log, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from optimist.core.log.file_set import FileSet
from optimist.core.log.file_sums import FileChanges, ReadFiles, new_adds, only_adds_new_files
from optimist.core.log.file_table import file_actions_batch
from optimist.core.log.many_files import ManyFiles
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import Action, AddFile, RemoveFile

__all__ = ["KnownCommit", "file_actions", "file_changes"]


@dataclass(frozen=True, slots=True)
class KnownCommit:
    """A commit whose actions need not be read from the log.

    Attributes:
        version: Its version.
        actions: All of its actions.
        status: Its file.
        files: Its files, or all that it removes, if these are columns and not among the actions.
        read: What its transaction has read, of the version before all commits that are told of
            together with it; None for nothing.
    """

    version: int
    actions: tuple[Action, ...]
    status: FileStatus
    files: ManyFiles | None = None
    read: ReadFiles | None = None

    @property
    def has_distinct_files(self) -> bool:
        """Whether no two adds, and no two removes of it, are known to name the same file."""
        is_alone = not any(isinstance(each, AddFile | RemoveFile) for each in self.actions)
        return self.files is not None and is_alone and self.files.has_distinct_paths


def file_actions(commits: Sequence[KnownCommit]) -> Iterator[pa.RecordBatch]:
    """Yield the adds and removes of commits in order, as batches of `ACTIONS_SCHEMA`.

    Consecutive commits without files as columns give one batch.
    """
    waiting: list[AddFile | RemoveFile] = []
    for commit in commits:
        if commit.files:  # before the files that actions add, as in the commit
            if waiting:
                yield file_actions_batch(waiting)
            waiting = []
            yield from commit.files.batches()
        waiting += [each for each in commit.actions if isinstance(each, AddFile | RemoveFile)]
    if waiting:
        yield file_actions_batch(waiting)


def file_changes(
    commits: Sequence[KnownCommit], batches: Sequence[pa.RecordBatch], before: FileSet
) -> FileChanges | None:
    """Return what commits change in the sums of a version's files.

    None of the commits has all of its files as columns.

    Args:
        commits: The commits.
        batches: Their `file_actions`.
        before: The files of the version before them.

    Returns:
        None if the sums do not follow from these alone.
    """
    tables = [pa.Table.from_batches([batch]) for batch in batches or [file_actions_batch(())]]
    (actions,) = pa.concat_tables(tables).combine_chunks().to_batches() or [file_actions_batch(())]
    if all(not commit.files and only_adds_new_files(commit.actions) for commit in commits):
        return FileChanges.of(actions, before, only_new=True)
    new = [add for commit in commits for add in new_adds(commit.actions, commit.read)]
    read = next((commit.read for commit in commits if commit.read), None)
    return FileChanges.of(actions, before, new=new, read=read)
