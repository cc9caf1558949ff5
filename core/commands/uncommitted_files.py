"""Data files that no version holds yet: removed when the commit has failed for certain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType

from optimist.core.data.filesystem import remove_directory
from optimist.core.errors import NOTHING_COMMITTED, OptimistError
from optimist.core.protocol.actions import Action
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["UncommittedFiles"]

_LOG = logging.getLogger(__name__)


class UncommittedFiles:
    """The directories of one transaction's writes, as a context that ends with the commit.

    1. Before the commit begins, any error removes them.
    2. From then on only an error that says for certain that nothing was committed does. After any
       other, an interrupt for example, the version may hold the files; what no version holds,
       vacuum finds.
    """

    def __init__(self, log: DeltaLog) -> None:
        self._log = log
        self._directories: list[str] = []
        self._is_committing = False

    def register(self, directory: str) -> None:
        """Files are about to be written to this directory."""
        self._directories.append(directory)

    def commit(
        self, txn: OptimisticTransaction, actions: Sequence[Action], operation: Operation
    ) -> CommitResult | None:
        """`txn.commit_if_needed`; from here on the files may be part of the table."""
        self._is_committing = True
        return txn.commit_if_needed(actions, operation)

    def __enter__(self) -> UncommittedFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            return
        if not self._is_committing or isinstance(error, NOTHING_COMMITTED):
            for directory in self._directories:
                self._remove(directory)

    def _remove(self, directory: str) -> None:
        """As far as that can be done: the error at hand is the one to tell."""
        self._log.store.abort_uploads(directory)
        try:
            access = self._log.store.data_access(self._log.table_path)
            remove_directory(directory, access)
        except OptimistError as failure:
            _LOG.warning("Files below %s are left for vacuum to find: %s", directory, failure)
