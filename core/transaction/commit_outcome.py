"""`CommitOutcome`: what is known of a transaction's commit, and so what may be removed."""

from __future__ import annotations

from enum import Enum

__all__ = ["CommitOutcome"]


class CommitOutcome(Enum):
    """What is known of a transaction's commit at this moment, whatever error is on its way.

    Attributes:
        NOT_COMMITTED: Nothing of it is in the table, and nothing of it can get there any more.
        STAGED: It is a step of a block of several operations, whose commit decides.
        UNKNOWN: A request was made and not answered; the commit may be in the table.
        COMMITTED: It is in the table.
    """

    NOT_COMMITTED = "not committed"
    STAGED = "staged"
    UNKNOWN = "unknown"
    COMMITTED = "committed"
