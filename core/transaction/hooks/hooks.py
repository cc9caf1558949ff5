"""Post-commit hooks, which run after a commit has landed and can't undo or fail it (spec 1.15)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.log.many_files import ManyFiles
from optimist.core.log_upkeep.later_commits import commits_after
from optimist.core.protocol.actions import Action
from optimist.core.runtime.budget import within_budget
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.hooks.background import BackgroundWork

__all__ = [
    "CommittedTransaction",
    "HookOutcome",
    "PostCommitHook",
    "run_hooks",
]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """A commit that is in the table, as a hook sees it.

    Attributes:
        table: The table.
        version: The version that was committed.
        actions: What it wrote, commitInfo first where there is one.
        snapshot: The table at exactly that version.
        txn_id: The transaction's id.
        is_large: Whether it was made by `commit_large`, whose files are as many as the table's.
        files: The files that it wrote as columns, if it did; these are not among the actions.
    """

    table: TableRef
    version: int
    actions: tuple[Action, ...]
    snapshot: Snapshot
    txn_id: str
    is_large: bool = False
    files: ManyFiles | None = None


class PostCommitHook(Protocol):
    """Something to do after a commit. Register it before, with `register_post_commit_hook`.

    A hook whose attribute `may_run_later` is true runs in the background where the option
    `postCommit.background` is on. If its attribute `only_newest_counts` is true, too, one that
    still waits is left out when a newer one of the table comes, and ends as that one does.
    """

    @property
    def name(self) -> str:
        """The hook's name in logs and results. Of several with one name only the first is kept."""

    def run(self, committed: CommittedTransaction) -> None:
        """Do the hook's work. Its errors are logged and recorded, and the commit stands."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """How a hook ended.

    Attributes:
        name: The hook's name.
        error: What it raised; None when all went well, or when it is not done yet.
        pending: The future of the final outcome, for a hook in the background; else None.
    """

    name: str
    error: Exception | None = None
    pending: Future[HookOutcome] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[HookOutcome], tuple[str, Exception | None]]:
        """Pickle what is known by now: another process can't wait for the hook."""
        is_settled = self.pending is not None and self.pending.done()
        known = self.wait() if is_settled else self
        return HookOutcome, (known.name, known.error)

    @property
    def is_pending(self) -> bool:
        """Whether the hook has not finished yet."""
        return self.pending is not None and not self.pending.done()

    def wait(self, timeout_s: float | None = None) -> HookOutcome:
        """Wait for the hook to finish, and return its final outcome.

        In a process that was forked since the commit the outcome can't be known: what is returned
        has a `UsageError` of kind `OPTIMIST_FORKED_HOOK` as its `error`.

        Raises:
            TimeoutError: The hook is not done after `timeout_s` seconds.
        """
        if self.pending is None:
            return self
        try:
            return self.pending.result(timeout_s)
        except CancelledError:
            return HookOutcome(self.name, _of_the_parent(self.name))
        except FutureTimeoutError:  # another class than the builtin one before Python 3.11
            raise TimeoutError(
                f"The hook {self.name} has not finished after {timeout_s} s. The commit is in the "
                "table."
            ) from None


def run_hooks(
    hooks: Sequence[PostCommitHook],
    committed: CommittedTransaction,
    background: BackgroundWork,
    is_late: Callable[[PostCommitHook, CommittedTransaction], bool],
) -> tuple[HookOutcome, ...]:
    """Run every hook in the order given, even after one of them has failed.

    Args:
        hooks: The hooks to run.
        committed: The commit that they follow.
        background: Runs the hooks that are to run later, in the same order.
        is_late: Whether a hook is to run later.
    """
    return tuple(
        _submit_hook(hook, committed, background)
        if is_late(hook, committed)
        else _run_hook(hook, committed)
        for hook in hooks
    )


def _submit_hook(
    hook: PostCommitHook, committed: CommittedTransaction, background: BackgroundWork
) -> HookOutcome:
    try:
        work = partial(_run_hook, hook, committed, is_late=True)
        key = hook.name if getattr(hook, "only_newest_counts", False) else None
        return HookOutcome(hook.name, pending=background.submit(work, key))
    except RuntimeError:  # the interpreter is ending and starts no more threads
        return _run_hook(hook, committed)


def _run_hook(
    hook: PostCommitHook, committed: CommittedTransaction, *, is_late: bool = False
) -> HookOutcome:
    table = committed.table
    try:
        # In the background the hook is an operation with its own budget; otherwise it is part of
        # the commit, whose budget goes on.
        with within_budget(table.clock, table.options.storage_budget_s):
            if is_late:
                _ensure_still_there(committed)
            hook.run(committed)
    except Exception as error:  # noqa: BLE001 - the commit has landed; nothing may fail it now
        _LOG.exception(
            "Error when executing post-commit hook %s for commit %d", hook.name, committed.version
        )
        return HookOutcome(hook.name, error)
    return HookOutcome(hook.name)


def _ensure_still_there(committed: CommittedTransaction) -> None:
    """Write nothing about a version into the log of a table that has taken its table's place."""
    table, snapshot = committed.table, committed.snapshot
    if not snapshot.known_log.was_just_seen(table.clock.monotonic_s(), snapshot.version):
        commits_after(table.store, snapshot)


def _of_the_parent(name: str) -> UsageError:
    return UsageError(
        f"The hook {name} runs in the background of the process that committed, and this process "
        "was forked from it. The commit is in the table. Ask for the hook's outcome in the process "
        "that committed.",
        kind="OPTIMIST_FORKED_HOOK",
        hook=name,
    )
