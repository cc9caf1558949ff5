"""The engine: actions, log, snapshot, predicates, transaction, conflicts. No Spark, no JVM."""

from optimist.core.predicates import Predicate, col
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.table.commit_resolution import CommitResolution, CommitState
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = [
    "CommitResolution",
    "CommitResult",
    "CommitState",
    "DeltaLog",
    "Operation",
    "OptimisticTransaction",
    "Predicate",
    "Snapshot",
    "col",
]
