"""`Step`: one operation of a transaction that has several (spec 1.18).

To a command it is a transaction like any other, on the table as the steps before it leave it. Its
commit is checked as always; then it is not written, but staged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action, AddFile, RemoveFile
from optimist.core.snapshot import Snapshot
from optimist.core.transaction import prepare
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.reads import Reads
from optimist.core.transaction.hooks.hooks import PostCommitHook
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.prepared_commit import perform_cdc_metadata_check
from optimist.core.transaction.result import CommitResult
from optimist.core.transaction.staged import StagedStep

__all__ = ["Step", "not_a_step"]

_OPERATIONS = frozenset(
    {
        "WRITE",
        "DELETE",
        "TRUNCATE",
        "UPDATE",
        "MERGE",
        "ADD COLUMNS",
        "RENAME COLUMN",
        "DROP COLUMNS",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "REPLACE COLUMNS",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "CLUSTER BY",
        "Manual Update",  # what sets and removes domains
    }
)
"""The operations that a step may be; others do their work in several commits, or can't be rebased,
or only arrange files."""


class Step(OptimisticTransaction):
    """One operation of a transaction; single use.

    Args:
        table: The table.
        snapshot: The table as the steps before it leave it.
        listener: The handle's.
        stage: Takes what the step has done, and tells the version that will be tried first.
    """

    def __init__(
        self,
        table: TableRef,
        snapshot: Snapshot,
        listener: CommitListener,
        stage: Callable[[Step, StagedStep], int],
    ) -> None:
        super().__init__(table, snapshot, listener)
        self._stage = stage
        self._is_staged = False

    @property
    def is_staged(self) -> bool:
        """Whether the transaction has taken it over."""
        return self._is_staged

    @property
    def reads(self) -> Reads:
        """What it has read so far, of files that earlier steps have written, too."""
        return self._reads.freeze()

    @property
    def undo(self) -> Callable[[], None]:
        """Removes the files that it has written."""
        return self._undo

    @property
    def release(self) -> Callable[[], None]:
        """Tells VACUUM that these are committed, or gone."""
        return self._release

    @property
    def hooks(self) -> Sequence[PostCommitHook]:
        """What is to run after the commit."""
        return self._hooks

    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Check the actions and stage them.

        Returns:
            No commit yet: the version that the transaction will try first, after 0 attempts.

        Raises:
            UsageError: The operation can't be a step (kind `OPTIMIST_NOT_A_STEP`); or the commit is
                not valid, as for any transaction.
            SchemaError, ProtocolError: The commit is not valid.
        """
        with self._closing():
            return self._staged(self._checked(actions, operation, tags))

    def commit_if_needed(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult | None:
        """As `commit`, but stage nothing where there are no actions."""
        with self._closing():
            done = self._checked(actions, operation, tags)
            return self._staged(done) if done.actions else None

    def commit_large(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        *,
        files: ManyFiles | None = None,
    ) -> CommitResult:
        """Refused: such a commit can't be moved past another one."""
        del actions, tags, files
        raise not_a_step(operation.name)

    def _checked(
        self, actions: Sequence[Action], operation: Operation, tags: Mapping[str, str] | None
    ) -> StagedStep:
        if operation.name not in _OPERATIONS or any(_only_arranges(each) for each in actions):
            raise not_a_step(operation.name)
        rest = self._adopt_metadata(prepare.dedupe_set_transactions(actions))
        tags = self._with_identity_marks(tags)
        draft = self._in_preparation(rest, operation)
        prepared = prepare.prepare_commit(draft)
        perform_cdc_metadata_check(draft)
        recorded = self.read_version >= 0 and self.snapshot.properties.enable_change_data_feed
        return StagedStep(operation, prepared, dict(tags or {}), recorded)

    def _staged(self, done: StagedStep) -> CommitResult:
        # Whatever strikes from here on, its files belong to the transaction, which removes them.
        self._may_be_in_table = True
        self._is_staged = True
        try:
            version = self._stage(self, done)
        except Exception:
            self._may_be_in_table = self._is_staged = False
            raise
        level = self.snapshot.properties.isolation_level.value
        return CommitResult(version, self.txn_id, 0, 0, level)


def not_a_step(operation: str) -> UsageError:
    """The error for an operation that can't be a step of a transaction."""
    return UsageError(
        f"{operation} can't be one of several operations of a transaction. It did nothing. Run it "
        "on the table itself, before the transaction or after it.",
        kind="OPTIMIST_NOT_A_STEP",
        operation=operation,
    )


def _only_arranges(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile) and not action.data_change
