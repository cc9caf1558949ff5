"""Chooses whole partitions by a condition, for OPTIMIZE and REORG without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from optimist.core.expressions.moments import Moment
from optimist.core.local.conditions import LocalCondition
from optimist.core.maintenance.optimize.optimize import ensure_no_clustering, ensure_of_partitions
from optimist.core.predicates import Predicate
from optimist.core.predicates.moments import predicate_at
from optimist.core.snapshot import Snapshot

__all__ = ["files_in_partitions"]


def files_in_partitions(
    given: str | Predicate, snapshot: Snapshot, moment: Moment
) -> Callable[[Snapshot], pa.Table]:
    """Return a function that gives the files of the partitions for which a condition is true.

    Args:
        given: SQL text or a tree over partition columns.
        snapshot: The newest version, which the condition is checked against.
        moment: When the command began.

    Raises:
        UsageError: The table is clustered, the condition names a column that is no partition
            column, or only Spark can evaluate it (kind `OPTIMIST_NEEDS_SPARK`).
    """
    ensure_no_clustering(str(given), snapshot)
    predicate = predicate_at(moment, given, snapshot.schema.names)
    ensure_of_partitions({path[0] for path in predicate.columns()}, snapshot)
    condition = LocalCondition.of(predicate, snapshot)

    def files_of(version: Snapshot) -> pa.Table:
        scanner = version.scanner(zone=condition.zone)
        return condition.matching_partitions(version, scanner.files(condition.predicate, None))

    return files_of
