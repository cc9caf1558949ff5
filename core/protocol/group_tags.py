"""The tags of a commit that holds several transactions (spec 1.17)."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.protocol.actions import CommitInfo

__all__ = ["group_tags", "transactions_of"]

_SIZE = "optimist.group.size"
_TXN_IDS = "optimist.group.txnIds"


def group_tags(txn_ids: Sequence[str]) -> dict[str, str]:
    """How many transactions a commit holds, and their ids."""
    return {_SIZE: str(len(txn_ids)), _TXN_IDS: ",".join(txn_ids)}


def transactions_of(info: CommitInfo) -> frozenset[str]:
    """The ids of the transactions that a commit holds, and its own; empty if it tells none."""
    members = (info.tags or {}).get(_TXN_IDS) or ""
    return frozenset(filter(None, (info.txn_id, *members.split(","))))
