"""`CommitFiles`: the files that one commit has written and no version names yet (spec 10.12)."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from optimist.core.data.intents.intents import Intent, begin_intent
from optimist.core.data.parquet.parquet_writer import delete_files
from optimist.core.data.storage.stored_files import remove_directory, try_remove_file
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
from optimist.core.protocol.actions import AddCDCFile, AddFile
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.commit_outcome import CommitOutcome

__all__ = ["CommitFiles"]

_LOG = logging.getLogger(__name__)


class CommitFiles:
    """The files of one commit, from before the first is written until the commit is settled.

    1. An intent tells VACUUM of the files before the first of them is written.
    2. Each file, or the new directory that holds it, is registered here.
    3. The commit takes this value, and registers the vector files that it writes itself while it
       is rebased.
    4. Whoever made this value settles it by the outcome of the commit: the files go only after the
       commit has failed for certain, and the intent ends once the commit is in the table or the
       files are gone. If neither is known, both stay, and VACUUM finds the files later.

    Args:
        table: The table.
        snapshot: The version that the transaction read.
        within: The files of the whole transaction, which `adopt` these if their own part of it
            ends well. The intent is theirs.
    """

    def __init__(
        self, table: TableRef, snapshot: Snapshot, within: CommitFiles | None = None
    ) -> None:
        self._table = table
        self._table_id = snapshot.metadata.id if snapshot.version >= 0 else None
        self._within = within
        self._intent: Intent | None = None
        self._is_announced = False
        self._directories: list[str] = []
        self._files: list[AddFile | AddCDCFile] = []
        self._paths: list[str] = []
        self._process = os.getpid()

    def announce(self) -> None:
        """Tell VACUUM once that files are about to be written.

        `register` and `register_path` do it, too.

        Raises:
            StorageError: The store or the file system failed. No file may be written.
        """
        if self._within is not None:
            self._within.announce()
        elif not self._is_announced:
            self._intent = begin_intent(self._table, self._table_id)
            self._is_announced = True

    def register(self, directory: str) -> None:
        """Note that files are about to be written to this directory, which holds no others."""
        self.announce()
        self._directories.append(directory)

    def register_files(self, files: Sequence[AddFile | AddCDCFile]) -> None:
        """Note that these files were written to directories that hold other files, too.

        Call `announce` before they are written.
        """
        self._files.extend(files)

    def register_path(self, path: str) -> None:
        """Note that a file, such as one of vectors, is about to be written to this full path."""
        self.announce()
        self._paths.append(path)

    def adopt(self, other: CommitFiles) -> None:
        """Take over the files of a part of the work that has ended without an error."""
        self._directories += other._directories
        self._files += other._files
        self._paths += other._paths

    def settle(self, outcome: CommitOutcome) -> None:
        """Remove the files or keep them, by what is known of their commit.

        In a forked child this does nothing: they are the parent's, which may commit them.
        """
        if outcome is CommitOutcome.NOT_COMMITTED:
            self.remove()
        if outcome in (CommitOutcome.NOT_COMMITTED, CommitOutcome.COMMITTED):
            self.release()

    def release(self) -> None:
        """End the intent: the files are in the table, or gone. Does nothing in a forked child."""
        if self._intent is not None and self._process == os.getpid():
            self._intent.end()
            self._intent = None

    def remove(self) -> None:
        """Remove all files, as far as that works: the error at hand must not be hidden.

        Does nothing in a forked child.
        """
        if self._process != os.getpid():
            return
        for directory in self._directories:
            self._remove_directory(directory)
        if self._files:
            delete_files(self._table.table_path, self._files, self._table.data_access())
        for path in self._paths:
            try_remove_file(path, self._table.data_access())

    def _remove_directory(self, directory: str) -> None:
        self._table.store.abort_uploads(directory)
        try:
            remove_directory(directory, self._table.data_access())
        except OptimistError as failure:
            _LOG.warning(
                "The uncommitted files below %s could not be removed and are left for VACUUM: %s",
                directory,
                failure,
            )
