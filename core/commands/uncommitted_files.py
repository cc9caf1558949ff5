"""Data files that no version holds yet, and their removal if the commit failed for certain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType

from optimist.core.data.intents.intents import Intent, begin_intent
from optimist.core.data.parquet.parquet_writer import delete_files
from optimist.core.data.storage.stored_files import remove_directory, try_remove_file
from optimist.core.errors import OptimistError
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action, AddCDCFile, AddFile
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["UncommittedFiles"]

_LOG = logging.getLogger(__name__)


class UncommittedFiles:
    """The files that one transaction has written, as a context that ends with the commit.

    An error or an interrupt removes them, unless the transaction says that a version may hold them
    (`OptimisticTransaction.may_be_in_table`): its commit has landed, or a request of it has no
    answer. The error itself does not decide, because a step after the commit may have raised it.
    Files that are kept, and that no version holds, are found by VACUUM.

    An intent tells VACUUM of the files, from before the first until the commit is known to be in
    the table or the files are removed. If neither is known, it stays.

    Args:
        txn: The transaction; another one on its table may be the one that commits.
        within: The files of the whole transaction, which `adopt` these if their own part of it
            ends well; the intent is theirs.
    """

    def __init__(self, txn: OptimisticTransaction, within: UncommittedFiles | None = None) -> None:
        self._table = txn.table
        self._table_id = txn.snapshot.metadata.id if txn.read_version >= 0 else None
        self._within = within
        self._intent: Intent | None = None
        self._is_announced = False
        self._directories: list[str] = []
        self._files: list[AddFile | AddCDCFile] = []
        self._paths: list[str] = []
        self._txn: OptimisticTransaction | None = None

    def announce(self) -> None:
        """Tell VACUUM that files are about to be written, once; the methods below do it, too."""
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
        """Note that these files were written, in directories that hold other files as well.

        Call `announce` before they are.
        """
        self._files.extend(files)

    def register_path(self, path: str) -> None:
        """Note that a file, which is no data file, is about to be written to this full path."""
        self.announce()
        self._paths.append(path)

    def adopt(self, other: UncommittedFiles) -> None:
        """Look after the files of another context, which has ended without an error."""
        self._directories += other._directories
        self._files += other._files
        self._paths += other._paths

    def commit(
        self, txn: OptimisticTransaction, actions: Sequence[Action], operation: Operation
    ) -> CommitResult:
        """Call `txn.commit`; from here on the files may be part of the table."""
        self._begin(txn)
        return txn.commit(actions, operation)

    def commit_if_needed(
        self, txn: OptimisticTransaction, actions: Sequence[Action], operation: Operation
    ) -> CommitResult | None:
        """Call `txn.commit_if_needed`; from here on the files may be part of the table."""
        self._begin(txn)
        return txn.commit_if_needed(actions, operation)

    def commit_large(
        self,
        txn: OptimisticTransaction,
        actions: Sequence[Action],
        operation: Operation,
        files: ManyFiles | None = None,
    ) -> CommitResult:
        """Call `txn.commit_large`; from here on the files may be part of the table."""
        self._begin(txn)
        return txn.commit_large(actions, operation, files=files)

    def _begin(self, txn: OptimisticTransaction) -> None:
        self._txn = txn
        txn.tell_of_files(self.register_path, self._remove_all, self._end_intent)

    def __enter__(self) -> UncommittedFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        txn = self._txn
        if error is not None and not (txn is not None and txn.may_be_in_table):
            self._remove_all()
        elif error is not None and txn is not None and not txn.has_landed:
            return  # a request of the commit may still arrive
        if not (txn is not None and txn.is_staged):
            self._end_intent()

    def _end_intent(self) -> None:
        if self._intent is not None:
            self._intent.end()
            self._intent = None

    def _remove_all(self) -> None:
        for directory in self._directories:
            self._remove(directory)
        if self._files:
            delete_files(self._table.table_path, self._files, self._table.data_access())
        for path in self._paths:
            try_remove_file(path, self._table.data_access())

    def _remove(self, directory: str) -> None:
        """Remove a directory as far as that works, so as not to hide the error at hand."""
        self._table.store.abort_uploads(directory)
        try:
            remove_directory(directory, self._table.data_access())
        except OptimistError as failure:
            _LOG.warning(
                "The uncommitted files below %s could not be removed and are left for VACUUM: %s",
                directory,
                failure,
            )
