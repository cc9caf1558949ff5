"""What runs after a commit has landed; nothing here can undo or fail it (spec 1.15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from optimist.core.actions import Action
from optimist.core.snapshot import Snapshot

if TYPE_CHECKING:
    from optimist.core.delta_log import DeltaLog

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
    """Something to do after a commit; `register_post_commit_hook` takes it before the commit."""

    @property
    def name(self) -> str:
        """What logs and results call it; a hook of one name is registered once."""

    def run(self, committed: CommittedTransaction) -> None:
        """Do it. Whatever is raised is logged and recorded; the commit stands."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """How a hook ended; `error` is None when all went well."""

    name: str
    error: Exception | None = None


def run_hooks(
    hooks: Sequence[PostCommitHook], committed: CommittedTransaction
) -> tuple[HookOutcome, ...]:
    """Run every hook, in the order of registration, whatever the others do."""
    return tuple(_run(hook, committed) for hook in hooks)


def _run(hook: PostCommitHook, committed: CommittedTransaction) -> HookOutcome:
    try:
        hook.run(committed)
    except Exception as error:  # noqa: BLE001 - the commit has landed; nothing may fail it now
        _LOG.exception(
            "Error when executing post-commit hook %s for commit %d", hook.name, committed.version
        )
        return HookOutcome(hook.name, error)
    return HookOutcome(hook.name)
