"""CLUSTER BY (spec 6.3, feature `clustering`)."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.commands.clustering import ensure_may_cluster_by
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed
from optimist.core.protocol.clustering import clustering_columns, clustering_domain
from optimist.core.protocol.gates import supports
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["cluster_by"]

_FEATURE = "clustering"


def cluster_by(txn: OptimisticTransaction, columns: Sequence[Path]) -> Alteration | None:
    """Cluster the table by other columns, or by none.

    Existing files stay as they are.

    Returns:
        None if no column is given and the table was never clustered.

    Raises:
        SchemaError: The table is partitioned (kind
            `DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED`), or it can't be
            clustered by these columns; see `ensure_may_cluster_by`.
    """
    if not columns and not supports(txn.protocol, _FEATURE):
        return None
    partitioning = txn.metadata.partition_columns
    if partitioning:
        raise SchemaError(
            f"The table is partitioned by {listed(partitioning)}, so it can't be clustered. "
            "Nothing was written. Write its rows to a new table with CLUSTER BY.",
            kind="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            partition_columns=partitioning,
        )
    schema = txn.table_metadata.schema
    before = clustering_columns(txn.snapshot.domain_metadata, schema)
    after = ensure_may_cluster_by(columns, txn.metadata)
    parameters = {
        "oldClusteringColumns": ",".join(map(path_text, before)),
        "newClusteringColumns": ",".join(map(path_text, after)),
    }
    # The metadata do not change, but the commit has them: it must conflict with a commit that drops
    # a clustering column meanwhile. Concurrent writes do not conflict (spec 2.4).
    return Alteration(
        Operation("CLUSTER BY", parameters),
        txn.metadata,
        (clustering_domain(after, schema),),
        features=(_FEATURE,),
    )
