"""The engine: actions, log, snapshot, predicates, transaction, conflicts. No Spark, no JVM."""

from optimist.core.commit_resolution import CommitResolution, CommitState
from optimist.core.delta_log import DeltaLog
from optimist.core.predicates import Predicate, col
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.operations import Operation
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
