"""What a caller says about a commit: metadata for the history, retries, transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CommitProperties", "PostCommitHookProperties", "Transaction"]


@dataclass
class Transaction:
    """A version that an application records of itself in a commit.

    Attributes:
        app_id: The application's id.
        version: Its version. A write whose version is not above the last one recorded is a replay,
            and is skipped; deltalake writes it again.
        last_updated: Not kept; the commit has its time.
    """

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass
class CommitProperties:
    """How a commit is made.

    Attributes:
        custom_metadata: JSON values by names, for the commit's line in the history. `userMetadata`
            is a text, which every engine shows.
        max_commit_retries: How often the commit is tried again after other commits.
        app_transactions: The version of an application; at most one.
    """

    custom_metadata: dict[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: list[Transaction] | None = None


@dataclass
class PostCommitHookProperties:
    """What happens after a commit.

    Attributes:
        create_checkpoint: Whether a commit at which `delta.checkpointInterval` asks for a
            checkpoint writes it.
        cleanup_expired_logs: Whether such a commit also deletes expired files of the log; None for
            what `delta.enableExpiredLogCleanup` says.
    """

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None
