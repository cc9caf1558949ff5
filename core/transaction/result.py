"""`CommitResult`: what a commit returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from optimist.core.errors.html_repr import field_html
from optimist.core.transaction.hooks.hooks import HookOutcome

__all__ = ["CommitResult", "MaybeNone"]

MaybeNone: TypeAlias = Any
"""None, but only in a case that the documentation of the result names, such as a replay.

Type checkers let a caller use the result without a test for None.
"""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A commit that is in the table.

    Attributes:
        version: The version it created.
        txn_id: The id in its commitInfo: its transaction's, or that of a group of several.
        attempts: How many times a version was tried; 1 without contention.
        elapsed_ms: How long the attempts took, waiting and conflict checks included.
        isolation_level: The level it was committed at.
        hooks: How each post-commit hook ended. A failed one does not undo the commit; one in the
            background may not have ended yet.
    """

    version: int
    txn_id: str
    attempts: int
    elapsed_ms: int
    isolation_level: str
    hooks: tuple[HookOutcome, ...] = ()

    _repr_html_ = field_html

    def __repr__(self) -> str:
        failed = f", {len(self.failed_hooks)} hooks failed" if self.failed_hooks else ""
        return f"CommitResult(version={self.version}, attempts={self.attempts}{failed})"

    @property
    def failed_hooks(self) -> tuple[HookOutcome, ...]:
        """The hooks known to have failed. The commit stands all the same."""
        return tuple(hook for hook in self.hooks if hook.error is not None)

    def wait_for_hooks(self, timeout_s: float | None = None) -> CommitResult:
        """Wait for the hooks in the background, and return this result with their outcomes.

        Raises:
            TimeoutError: One of them is not done after `timeout_s` seconds.
        """
        return replace(self, hooks=tuple(hook.wait(timeout_s) for hook in self.hooks))
