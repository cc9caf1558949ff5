"""The schema of a table after a write: its own, a wider one, or the rows' (spec 10.1)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.clustering import ensure_clustering_fits
from optimist.core.protocol.properties import normalize_configuration
from optimist.core.protocol.schema_merge import (
    SchemaAction,
    SchemaDecision,
    SchemaWrite,
    decide_schema,
)
from optimist.core.protocol.widening import allowed_widening
from optimist.core.schema.types import schema_to_json
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["adopt_schema"]

_LOG = logging.getLogger(__name__)


def adopt_schema(df: DataFrame, txn: OptimisticTransaction, request: WriteRequest) -> None:
    """Set the metadata with which the rows can be written, or create it for a new table.

    Raises:
        SchemaError: The rows do not fit the table, and the request does not let it change.
    """
    decision = _decide_schema(df, txn, request)
    if decision.action is SchemaAction.CREATE:
        txn.update_metadata_for_new_table(_new_metadata(txn, decision, request.properties))
        return
    if request.properties:
        _warn_of_ignored_properties(txn, request.properties)
    if decision.action is SchemaAction.KEEP:
        return
    changed = replace(
        txn.metadata,
        schema_string=schema_to_json(decision.schema),
        partition_columns=decision.partition_columns,
    )
    # The commit would also refuse it, but only after all rows were written.
    ensure_clustering_fits(changed, txn.snapshot.domain_metadata)
    if decision.action is SchemaAction.OVERWRITE:
        txn.update_metadata_for_table_overwrite(changed)
    else:
        txn.update_metadata(changed)


def _decide_schema(
    df: DataFrame, txn: OptimisticTransaction, request: WriteRequest
) -> SchemaDecision:
    merge = request.merge_schema
    wanted = SchemaWrite(
        from_spark_schema(df.schema),
        partition_columns=request.partition_by,
        is_overwrite=request.is_overwrite,
        merge_schema=txn.table.options.schema_auto_merge_enabled if merge is None else merge,
        overwrite_schema=request.replaces_schema,
        data_change=not request.is_rearrangement,
    )
    snapshot = txn.snapshot
    if txn.read_version < 0:
        return decide_schema(None, (), wanted)
    return decide_schema(
        snapshot.schema,
        snapshot.partition_columns,
        wanted,
        constraints=snapshot.properties.constraints,
        may_widen=allowed_widening(snapshot.metadata, snapshot.protocol),
    )


def _new_metadata(
    txn: OptimisticTransaction, decision: SchemaDecision, properties: Mapping[str, str]
) -> Metadata:
    options, clock = txn.table.options, txn.table.clock
    return Metadata(
        id=clock.new_uuid(),
        schema_string=schema_to_json(decision.schema),
        partition_columns=decision.partition_columns,
        configuration=normalize_configuration(
            properties, allow_arbitrary=options.allow_arbitrary_properties
        ),
        created_time=clock.now_ms(),
    )


def _warn_of_ignored_properties(txn: OptimisticTransaction, properties: Mapping[str, str]) -> None:
    """Warn about ignored properties: a write sets them only on a new table, as in Delta."""
    known = {key.lower(): value for key, value in txn.metadata.configuration.items()}
    other = sorted(key for key, value in properties.items() if known.get(key.lower()) != value)
    if other:
        _LOG.warning(
            "The table %s exists, so this write does not set its properties %s.",
            txn.snapshot.table_path,
            ", ".join(other),
        )
