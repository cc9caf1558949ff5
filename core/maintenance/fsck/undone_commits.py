"""The undo of a repair's commits: one more commit, after which the table is as it was before.

It is made only if nothing has changed the table since, and it is tried once: a commit that comes
meanwhile wins. No engine knows an undo, so it is recorded as a RESTORE. A version that a RESTORE
made has the content of the version that it names, so it also tells what was undone before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from optimist.core.errors import (
    ConcurrentWriteException,
    LogFileNotFoundError,
    TableError,
    TableNotFoundError,
)
from optimist.core.log.commits import read_commit, read_commit_info
from optimist.core.log.file_table import add_files, files_table, table_keys
from optimist.core.log.names import commit_path
from optimist.core.maintenance.copies.restore import RestoreTo, restore
from optimist.core.protocol.actions import AddFile, CommitInfo
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["UndoCommits", "UndoneCommit"]

_OF_REPAIRS = ("FSCK", "COMPUTE STATS", "RESTORE")


@dataclass(frozen=True, slots=True)
class UndoneCommit:
    """What became of one commit of a repair.

    Attributes:
        undone: Its version.
        version: The commit that undoes it; None if it was left.
        reason: Why it was left.
    """

    undone: int
    version: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UndoCommits:
    """The commits that an undo may need.

    Attributes:
        begin: Starts a transaction on the newest version.
        load: Loads a version by its number.
    """

    begin: Callable[[], OptimisticTransaction]
    load: Callable[[int], Snapshot]

    def ensure_writable(self) -> None:
        """Refuse a table that this engine may not write, if its newest version can be read.

        Raises:
            ProtocolError: The table needs a feature that this engine can't write.
            TableNotFoundError: There is no table.
        """
        try:
            self.begin().ensure_writable()
        except TableNotFoundError:
            raise
        except TableError:
            return  # the undo may be what makes it readable

    def undo(self, version: int, operation: str) -> UndoneCommit | None:
        """Undo a commit, or return why not; None if the table is as it was before it.

        Args:
            version: The version that it made.
            operation: What the record says that it was.

        Raises:
            StorageError: The store failed.
        """
        try:
            return self._undo(version, operation)
        except (TableError, ConcurrentWriteException) as error:
            return UndoneCommit(version, None, str(error.args[0]))

    def _undo(self, version: int, operation: str) -> UndoneCommit | None:
        txn = self.begin()
        info = self._info(txn, version)
        if info is None or info.operation != operation:
            return UndoneCommit(version, None, f"it is no commit of the operation {operation}")
        content = self._content_of(txn, txn.read_version)
        if content < version or self._was_undone(txn, version):
            return None
        if content > version:
            return UndoneCommit(version, None, "others have committed since")
        if operation == "FSCK":
            done = restore(txn, RestoreTo(version - 1), self.load)
            return None if done is None else UndoneCommit(version, done.version)
        return UndoneCommit(version, self._describe_as_before(txn, version))

    def _describe_as_before(self, txn: OptimisticTransaction, version: int) -> int:
        """Give the files of a commit the statistics that they had before it. No row changes."""
        txn.ensure_writable()
        actions = read_commit(txn.table.store, commit_path(txn.table.log_path, version))
        changed = files_table(each for each in actions if isinstance(each, AddFile))
        before = self.load(version - 1).files
        files = before.filter(pc.is_in(table_keys(before), value_set=table_keys(changed)))
        adds = [replace(add, data_change=False) for add in add_files(files)]
        operation = Operation("RESTORE", {"version": version - 1, "timestamp": None})
        return txn.commit_large(adds, operation).version

    def _was_undone(self, txn: OptimisticTransaction, version: int) -> bool:
        """Look among the commits that followed, as far as repairs and their undoing made them."""
        for later in range(version + 1, txn.read_version + 1):
            info = self._info(txn, later)
            to = _restored_version(info)
            if to is not None and to < version:
                return True
            if info is None or info.operation not in _OF_REPAIRS:
                return False
        return False

    def _content_of(self, txn: OptimisticTransaction, version: int) -> int:
        """Return the oldest version that is known to have the content of this one."""
        while True:
            info = self._info(txn, version)
            to = _restored_version(info)
            if to is None or not 0 <= to < version:
                return version
            version = to

    def _info(self, txn: OptimisticTransaction, version: int) -> CommitInfo | None:
        try:
            return read_commit_info(txn.table.store, commit_path(txn.table.log_path, version))
        except LogFileNotFoundError:
            return None


def _restored_version(info: CommitInfo | None) -> int | None:
    if info is None or info.operation != "RESTORE" or not info.operation_parameters:
        return None
    told = str(info.operation_parameters.get("version"))
    return int(told) if told.isdecimal() and len(told) < 20 else None
