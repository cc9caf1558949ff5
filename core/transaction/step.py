"""`StepCommitter`: stages a transaction as one operation of a block of several (spec 1.18).

To a command such a transaction is like any other, on the table as the steps before it leave it. Its
commit is checked as always; then it is not written, but staged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from optimist.core.errors import UsageError
from optimist.core.protocol.actions import Action, AddFile, RemoveFile
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.committer import CommitRequest
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.prepare import prepare_commit
from optimist.core.transaction.prepared_commit import perform_cdc_metadata_check
from optimist.core.transaction.result import CommitResult
from optimist.core.transaction.staged import StagedStep

__all__ = ["StepCommitter", "not_a_step"]

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


class StepCommitter:
    """Stages one transaction. Single use, and for one thread; see `Committer`.

    Args:
        txn_id: The transaction's id.
        stage: Takes what the step has done, and returns the version that will be tried first.

    Attributes:
        written: The files that the step has written, once its commit has begun. From when it is
            staged on, the block removes or releases them.
    """

    def __init__(self, txn_id: str, stage: Callable[[StagedStep], int]) -> None:
        self.txn_id = txn_id
        self.outcome = CommitOutcome.NOT_COMMITTED
        self.version: int | None = None
        self.result: CommitResult | None = None
        self.written: CommitFiles | None = None
        self._stage = stage

    def ensure_accepts(self, actions: Sequence[Action], operation: Operation) -> None:
        """Refuse an operation that can't be a step.

        Raises:
            UsageError: It can't be (kind `OPTIMIST_NOT_A_STEP`).
        """
        if operation.name not in _OPERATIONS or any(_only_arranges(each) for each in actions):
            raise not_a_step(operation.name)

    def commit(self, request: CommitRequest) -> CommitResult:
        """Check the actions and stage them.

        Returns:
            The version that the block will try first, after 0 attempts.

        Raises:
            UsageError, SchemaError, ProtocolError: The commit is not valid.
        """
        return self._stage_step(_check_step(request), request)

    def commit_if_needed(self, request: CommitRequest) -> CommitResult | None:
        """Check the actions and stage them, if there are any."""
        done = _check_step(request)
        return self._stage_step(done, request) if done.actions else None

    def commit_large(self, request: CommitRequest) -> CommitResult:
        """Refuse a commit that can't be moved past another one."""
        raise not_a_step(request.draft.operation.name)

    def _stage_step(self, done: StagedStep, request: CommitRequest) -> CommitResult:
        self.written = request.written
        # Whatever strikes from here on, its files belong to the block, which removes them.
        self.outcome = CommitOutcome.STAGED
        try:
            version = self._stage(done)
        except Exception:
            self.outcome = CommitOutcome.NOT_COMMITTED
            raise
        level = request.draft.snapshot.properties.isolation_level.value
        return CommitResult(version, self.txn_id, 0, 0, level)


def _check_step(request: CommitRequest) -> StagedStep:
    draft = request.draft
    if draft.files:  # later steps may replace each of them
        draft = replace(draft, actions=draft.files.among(draft.actions), files=None)
    prepared = prepare_commit(draft)
    perform_cdc_metadata_check(draft)
    recorded = draft.read_version >= 0 and draft.snapshot.properties.enable_change_data_feed
    tags = dict(request.tags or {})
    return StagedStep(draft.operation, prepared, tags, tuple(request.hooks), recorded)


def not_a_step(operation: str) -> UsageError:
    """Return the error for an operation that can't be a step of a transaction."""
    return UsageError(
        f"{operation} can't be one of several operations of a transaction. It did nothing. Run it "
        "on the table itself, before the transaction or after it.",
        kind="OPTIMIST_NOT_A_STEP",
        operation=operation,
    )


def _only_arranges(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile) and not action.data_change
