"""Writes that may be played again: application id and version (spec 10.6)."""

from __future__ import annotations

from optimist.core.protocol.actions import SetTransaction
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["is_replay", "progress"]


def is_replay(txn: OptimisticTransaction, identity: tuple[str, int] | None) -> bool:
    """Whether the application has got this far already; the look-up counts as a read."""
    if identity is None:
        return False
    app_id, version = identity
    return txn.txn_version(app_id) >= version


def progress(log: DeltaLog, identity: tuple[str, int] | None) -> tuple[SetTransaction, ...]:
    """The action that records how far the application has got; none for ordinary writes."""
    if identity is None:
        return ()
    app_id, version = identity
    return (SetTransaction(app_id, version, last_updated=log.clock.now_ms()),)
