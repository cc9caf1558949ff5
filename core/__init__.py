"""The engine: actions, log, snapshot, predicates, transaction, conflicts. No Spark, no JVM.

The public names are imported on first use, so that a store, which needs only the contract of
stores, loads neither Arrow nor an SQL parser.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimist.core.commands.table_definition import Column, Identity
    from optimist.core.predicates import Predicate, col
    from optimist.core.snapshot import Snapshot
    from optimist.core.table.commit_resolution import CommitResolution, CommitState
    from optimist.core.table.delta_log import DeltaLog
    from optimist.core.transaction.conflicts.operations import Operation
    from optimist.core.transaction.optimistic import OptimisticTransaction
    from optimist.core.transaction.result import CommitResult

__all__ = [
    "Column",
    "CommitResolution",
    "CommitResult",
    "CommitState",
    "DeltaLog",
    "Identity",
    "Operation",
    "OptimisticTransaction",
    "Predicate",
    "Snapshot",
    "col",
]

_PLACES = {
    "Column": "optimist.core.commands.table_definition",
    "CommitResolution": "optimist.core.table.commit_resolution",
    "CommitResult": "optimist.core.transaction.result",
    "CommitState": "optimist.core.table.commit_resolution",
    "DeltaLog": "optimist.core.table.delta_log",
    "Identity": "optimist.core.commands.table_definition",
    "Operation": "optimist.core.transaction.conflicts.operations",
    "OptimisticTransaction": "optimist.core.transaction.optimistic",
    "Predicate": "optimist.core.predicates",
    "Snapshot": "optimist.core.snapshot",
    "col": "optimist.core.predicates",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
