"""Data files that no version holds yet, and their removal if the commit failed for certain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType

from optimist.core.data.parquet_writer import delete_files
from optimist.core.data.stored_files import remove_directory, try_remove_file
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
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
    """

    def __init__(self, table: TableRef) -> None:
        self._table = table
        self._directories: list[str] = []
        self._files: list[AddFile | AddCDCFile] = []
        self._paths: list[str] = []
        self._txn: OptimisticTransaction | None = None

    def register(self, directory: str) -> None:
        """Note that files are about to be written to this directory, which holds no others."""
        self._directories.append(directory)

    def register_files(self, files: Sequence[AddFile | AddCDCFile]) -> None:
        """Note that these files were written, in directories that hold other files as well."""
        self._files.extend(files)

    def register_path(self, path: str) -> None:
        """Note that a file, which is no data file, is about to be written to this full path."""
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
        self, txn: OptimisticTransaction, actions: Sequence[Action], operation: Operation
    ) -> CommitResult:
        """Call `txn.commit_large`; from here on the files may be part of the table."""
        self._begin(txn)
        return txn.commit_large(actions, operation)

    def _begin(self, txn: OptimisticTransaction) -> None:
        self._txn = txn
        txn.tell_of_files(self.register_path, self._remove_all)

    def __enter__(self) -> UncommittedFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not (self._txn is not None and self._txn.may_be_in_table):
            self._remove_all()

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
