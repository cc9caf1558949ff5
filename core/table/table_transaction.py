"""`TableTransaction`: several operations in one commit (`DeltaLog.transaction`, spec 1.18)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import TracebackType
from typing import NoReturn

import pyarrow as pa

from optimist.core.commands.idempotence import conf_txn
from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.log.timestamps import Timestamp
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.table_path import TablePath
from optimist.core.predicates import Predicate
from optimist.core.runtime.budget import one_operation
from optimist.core.runtime.clock import Clock
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.one_version import table_not_found
from optimist.core.table.row_commands import RowCommands
from optimist.core.table.row_reads import RowReads
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult, MaybeNone
from optimist.core.transaction.several import SeveralSteps
from optimist.core.transaction.step import not_a_step

__all__ = ["TableTransaction", "not_open", "refused"]


def refused(operation: str) -> Callable[..., NoReturn]:
    """Return a method that refuses an operation that can't be a step."""

    def method(*_: object, **__: object) -> NoReturn:
        """Refuse the operation. `DeltaLog.transaction` tells what can be a step."""
        raise not_a_step(operation)

    return method


class TableTransaction(RowCommands, RowReads):
    """A transaction of several operations on one table, as a context, for one thread.

    The operations are its methods. Each sees the table as those before it leave it. Nobody else
    sees any of them before the end of the block, which commits them all. If an error leaves the
    block, nothing is committed, and the files of all operations are removed. If the error is caught
    within the block, only the operation that raised it is undone.

    Rows that are read by its methods count as read: if another commit changes them meanwhile, the
    commit at the end is a conflict. It is not run again, whatever `conflict.retry` says.

    The result of an operation is not a commit yet: `attempts` is 0, and `version` is the version
    that the transaction will try first.

    Attributes:
        table: The table.
        result: The commit, after the block; None if there was nothing to commit.
    """

    def __init__(
        self,
        log: TableHandle,
        begin: Callable[[], SeveralSteps],
        user_metadata: str | None = None,
    ) -> None:
        self.table = log.table
        self.result: CommitResult | MaybeNone = None
        self._log = log
        self._begin = begin
        self._user_metadata = user_metadata
        self._txn: SeveralSteps | None = None

    @one_operation
    def __enter__(self) -> TableTransaction:
        if self._txn is not None:
            raise not_open("has begun before")
        if conf_txn(self.options) is not None:
            raise UsageError(
                "The conf names an application's transaction (write.txnAppId, write.txnVersion), "
                "which would be each of several operations at once. Nothing was written. Unset "
                "both, and give the operations `txn` instead.",
                kind="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            )
        self._txn = self._begin()
        return self

    @one_operation
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._open_txn.give_up()
            return
        txn = self._open_txn
        try:
            txn.commit_steps(self._user_metadata)
        finally:  # the commit stands where only a hook has failed
            self.result = txn.result

    @property
    def options(self) -> EngineOptions:
        """The engine's options."""
        return self.table.options

    @property
    def clock(self) -> Clock:
        """Where time comes from."""
        return self.table.clock

    def snapshot(
        self,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        *,
        to_read: bool = False,
    ) -> Snapshot:
        """Return the table after the operations so far, or at a version or a time.

        Reads of a snapshot do not count as reads of the transaction.
        """
        if version is not None or timestamp is not None:
            return self._log.snapshot(version, timestamp, to_read=to_read)
        found = self._open_txn.provisional
        if found.version < 0:
            raise table_not_found(self.table)
        return found

    def start_transaction(self, snapshot: Snapshot | None = None) -> OptimisticTransaction:
        """Start a transaction that is the next operation of this one.

        Raises:
            UsageError: The snapshot is an older one, which lacks what operations have done (kind
                `OPTIMIST_STEPS_OUT_OF_ORDER`); or the block has ended, or not begun.
        """
        txn = self._open_txn
        if snapshot is not None and snapshot is not txn.provisional:
            raise UsageError(
                "An operation of a transaction would replace rows by what was read before it, of "
                f"version {snapshot.version} of {self.table.table_path}. It did nothing. Read them "
                "within the transaction.",
                kind="OPTIMIST_STEPS_OUT_OF_ORDER",
            )
        return txn.begin_step()

    def ensure_sources_fit(self, versions: Collection[int]) -> None:
        """Refuse rows of a version that came after the transaction began.

        Such rows come from commits that the transaction has not seen. The next version number means
        the transaction's own provisional version, unless another commit has that number.

        Raises:
            UsageError: There are such rows (kind `OPTIMIST_STEPS_OUT_OF_ORDER`).
        """
        newer = [version for version in versions if version > self._open_txn.read_version]
        if not newer or (max(newer) == self.snapshot().version and not self._has_newer()):
            return
        raise UsageError(
            f"An operation of a transaction would write rows of version {max(newer)} of "
            f"{self.table.table_path}, but the transaction began at version "
            f"{self._open_txn.read_version}. It did nothing. Begin another transaction.",
            kind="OPTIMIST_STEPS_OUT_OF_ORDER",
        )

    def _has_newer(self) -> bool:
        try:
            return self._log.snapshot().version > self._open_txn.read_version
        except TableNotFoundError:
            return False

    def files(self, predicate: str | Predicate | None = None) -> pa.Table:
        """Return the files as `DeltaLog.files` does, after the operations so far."""
        self._note_read(predicate)
        return super().files(predicate)

    transaction = refused("TRANSACTION")
    create = refused("CREATE TABLE")
    convert = refused("CONVERT")
    optimize = refused("OPTIMIZE")
    purge = refused("REORG")
    recompute_statistics = refused("COMPUTE STATS")
    restore = refused("RESTORE")
    clone = refused("CLONE")
    drop_feature = refused("DROP FEATURE")
    vacuum = refused("VACUUM")

    def _version_to_read(
        self,
        predicate: str | Predicate | None,
        version: int | None,
        timestamp: Timestamp | None,
    ) -> Snapshot:
        if version is None and timestamp is None:
            self._note_read(predicate)
        return super()._version_to_read(predicate, version, timestamp)

    def _note_read(self, predicate: str | Predicate | None) -> None:
        self.start_transaction(self.snapshot()).filter_files(predicate)

    def _at_path(self, path: TablePath) -> TableHandle:
        return self._log._at_path(path)

    @property
    def _open_txn(self) -> SeveralSteps:
        if self._txn is None:
            raise not_open("has not begun")
        return self._txn


def not_open(state: str) -> UsageError:
    """Return the error for the use of a transaction outside its block.

    Args:
        state: What it did instead of being open, in words.
    """
    return UsageError(
        f"The transaction {state}. Nothing was written. Use it once, as in `with "
        "log.transaction() as txn:`, and its operations within the block.",
        kind="OPTIMIST_TRANSACTION_FAILED",
    )
