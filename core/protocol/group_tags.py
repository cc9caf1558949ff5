"""The tags of a commit that holds several transactions (spec 1.17)."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.protocol.actions import CommitInfo

__all__ = ["group_tags", "transactions_of"]

_SIZE = "optimist.group.size"
_TXN_IDS = "optimist.group.txnIds"


def group_tags(txn_ids: Sequence[str]) -> dict[str, str]:
    """Return the tags that give the number of transactions in a commit, and their ids."""
    return {_SIZE: str(len(txn_ids)), _TXN_IDS: ",".join(txn_ids)}


def transactions_of(info: CommitInfo) -> frozenset[str]:
    """Return the ids of all transactions that a commit holds, its own included."""
    members = (info.tags or {}).get(_TXN_IDS) or ""
    return frozenset(filter(None, (info.txn_id, *members.split(","))))
