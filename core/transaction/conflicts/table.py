"""The conflict table: what is checked against each winner, and in which order (spec 2.2).

Each row is a check that may refuse, a rebase that moves the pending commit past the winner, or
both. The first check that finds a conflict ends the commit. Rows can be read and tested one by
one; nothing else decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    Conflict,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.transaction.conflicts import checks, rebase
from optimist.core.transaction.conflicts.followed_rows import follow_moved_rows
from optimist.core.transaction.conflicts.messages import explain
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.united_vectors import unite_vectors

__all__ = ["CONFLICT_TABLE", "ConflictRule", "pass_winner"]

Check = Callable[[Ours, Theirs], Conflict | None]
Rebase = Callable[[Ours, Theirs], Ours]

_ALL_LEVELS = frozenset(IsolationLevel)
_WITH_APPENDS = frozenset({IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE})


@dataclass(frozen=True, slots=True)
class ConflictRule:
    """One row of the table.

    Attributes:
        name: What is looked at.
        section: The section of the specification.
        check: Finds a conflict, or None where the rule only rebases.
        error: The class to raise on a conflict, and `kind` its error class in Delta.
        levels: The isolation levels at which the check counts.
        rebase: Moves our pending commit past the winner; runs only if the check let it pass.
    """

    name: str
    section: str
    check: Check | None = None
    error: type[DeltaConcurrentModificationException] = DeltaConcurrentModificationException
    kind: str = ""
    levels: frozenset[IsolationLevel] = _ALL_LEVELS
    rebase: Rebase | None = None


CONFLICT_TABLE: tuple[ConflictRule, ...] = (
    ConflictRule(
        "protocol",
        "2.3",
        check=checks.protocol_conflict,
        error=ProtocolChangedException,
        kind="DELTA_PROTOCOL_CHANGED",
        rebase=rebase.adopt_protocol,
    ),
    ConflictRule(
        "metadata",
        "2.4",
        check=checks.metadata_conflict,
        error=MetadataChangedException,
        kind="DELTA_METADATA_CHANGED",
        rebase=rebase.adopt_metadata,
    ),
    ConflictRule(
        "domain metadata",
        "2.5",
        check=checks.domain_metadata_conflict,
        error=ConcurrentTransactionException,
        kind="DELTA_CONCURRENT_TRANSACTION",
    ),
    ConflictRule(
        "application transactions",
        "2.6",
        check=checks.app_transaction_conflict,
        error=ConcurrentTransactionException,
        kind="DELTA_CONCURRENT_TRANSACTION",
    ),
    ConflictRule(
        "row tracking backfill",
        "2.7",
        check=checks.backfill_conflict,
        error=ConcurrentTransactionException,
        kind="DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL",
        rebase=rebase.reconcile_backfill,
    ),
    ConflictRule("row ids", "2.7", rebase=rebase.reassign_row_ids),
    ConflictRule("type widening", "2.7", rebase=rebase.bump_type_change_versions),
    ConflictRule(
        "concurrent appends",
        "2.8",
        check=checks.concurrent_append_conflict,
        error=ConcurrentAppendException,
        kind="DELTA_CONCURRENT_APPEND",
        levels=_WITH_APPENDS,
    ),
    ConflictRule(
        "concurrent deletes of files read",
        "2.9",
        check=checks.concurrent_delete_read_conflict,
        error=ConcurrentDeleteReadException,
        kind="DELTA_CONCURRENT_DELETE_READ",
    ),
    ConflictRule(
        "concurrent changes of rows read",
        "2.12",
        check=checks.concurrent_row_conflict,
        error=ConcurrentDeleteReadException,
        kind="DELTA_CONCURRENT_DELETE_READ",
    ),
    ConflictRule(
        "concurrent deletes of files deleted",
        "2.10",
        check=checks.concurrent_delete_delete_conflict,
        error=ConcurrentDeleteDeleteException,
        kind="DELTA_CONCURRENT_DELETE_DELETE",
        rebase=unite_vectors,
    ),
    ConflictRule("in-commit timestamp", "2.11", rebase=rebase.advance_in_commit_timestamp),
    ConflictRule("concurrent moves of rows", "2.12", rebase=follow_moved_rows),
)


def pass_winner(ours: Ours, theirs: Theirs) -> Ours:
    """Check one winner and move past it.

    Returns:
        Our transaction as if it had started after the winner.

    Raises:
        DeltaConcurrentModificationException: A check found a conflict; its class says which.
        ProtocolError: The winner upgraded the table beyond this engine.
    """
    for rule in CONFLICT_TABLE:
        if rule.check is not None and ours.isolation_level in rule.levels:
            conflict = rule.check(ours, theirs)
            if conflict is not None:
                raise rule.error(
                    explain(conflict, ours.table_path, ours.operation),
                    kind=rule.kind,
                    conflict=conflict,
                )
        if rule.rebase is not None:
            ours = rule.rebase(ours, theirs)
    return ours
