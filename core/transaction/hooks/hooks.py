"""What runs after a commit has landed; nothing here can undo or fail it (spec 1.15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from optimist.core.protocol.actions import Action
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.transaction.hooks.background import BackgroundWork

if TYPE_CHECKING:
    from optimist.core.table.delta_log import DeltaLog

__all__ = ["CommittedTransaction", "HookOutcome", "PostCommitHook", "run_hooks"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """A commit that is in the table, as a hook sees it.

    Attributes:
        log: The table's handle.
        version: The version that was committed.
        actions: What it wrote, commitInfo first where there is one.
        snapshot: The table at exactly that version.
        txn_id: The transaction's id.
    """

    log: DeltaLog
    version: int
    actions: tuple[Action, ...]
    snapshot: Snapshot
    txn_id: str


class PostCommitHook(Protocol):
    """Something to do after a commit; `register_post_commit_hook` takes it before the commit.

    A hook with an attribute `may_run_later` that is true is run in the background where the option
    `postCommit.background` is on.
    """

    @property
    def name(self) -> str:
        """What logs and results call it; a hook of one name is registered once."""

    def run(self, committed: CommittedTransaction) -> None:
        """Do it. Whatever is raised is logged and recorded; the commit stands."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """How a hook ended.

    Attributes:
        name: The hook's name.
        error: What it raised; None when all went well, or when it is not done yet.
        pending: Gives the final outcome, for a hook that runs in the background; else None.
    """

    name: str
    error: Exception | None = None
    pending: Future[HookOutcome] | None = field(default=None, compare=False, repr=False)

    @property
    def is_pending(self) -> bool:
        """Whether it is still to come how the hook ends."""
        return self.pending is not None and not self.pending.done()

    def wait(self, timeout_s: float | None = None) -> HookOutcome:
        """The final outcome, once it is there.

        Raises:
            TimeoutError: The hook is not done after so many seconds.
        """
        if self.pending is None:
            return self
        try:
            return self.pending.result(timeout_s)
        except FutureTimeoutError:  # another class than the builtin one before Python 3.11
            raise TimeoutError(f"{self.name} is not done after {timeout_s} s") from None


def run_hooks(
    hooks: Sequence[PostCommitHook],
    committed: CommittedTransaction,
    background: BackgroundWork | None = None,
) -> tuple[HookOutcome, ...]:
    """Run every hook, in the order of registration, whatever the others do.

    Args:
        hooks: What to run.
        committed: The commit they follow.
        background: Takes the hooks that may run later; they keep their order among each other.
            None runs all of them now.
    """
    return tuple(
        _submit(hook, committed, background)
        if background is not None and getattr(hook, "may_run_later", False)
        else _run(hook, committed)
        for hook in hooks
    )


def _submit(
    hook: PostCommitHook, committed: CommittedTransaction, background: BackgroundWork
) -> HookOutcome:
    try:
        return HookOutcome(hook.name, pending=background.submit(lambda: _run(hook, committed)))
    except RuntimeError:  # the interpreter is ending: nobody starts threads any more
        return _run(hook, committed)


def _run(hook: PostCommitHook, committed: CommittedTransaction) -> HookOutcome:
    try:
        hook.run(committed)
    except Exception as error:  # noqa: BLE001 - the commit has landed; nothing may fail it now
        _LOG.exception(
            "Error when executing post-commit hook %s for commit %d", hook.name, committed.version
        )
        return HookOutcome(hook.name, error)
    return HookOutcome(hook.name)
