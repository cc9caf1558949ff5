"""The schema of a table after a write: its own, a wider one, or the rows' (spec 10.1)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from optimist.core.commands.create.existing_table import ensure_properties_held
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

__all__ = ["NewTable", "adopt_schema"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewTable:
    """What a write gives a table that it creates, besides the columns.

    Attributes:
        properties: The table properties.
        name: What the table calls itself.
        comment: What the table is, for people.
        must_fit: Whether a table that exists already must have these properties. Else a warning
            says that it has others, as on Spark, where any option may be a property.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    comment: str | None = None
    must_fit: bool = False


def adopt_schema(txn: OptimisticTransaction, wanted: SchemaWrite, new: NewTable) -> None:
    """Set the metadata with which the rows can be written, or create it for a new table.

    Args:
        txn: The transaction.
        wanted: The schema of the rows, and how the write may change the table's.
        new: What a new table gets.

    Raises:
        SchemaError: The rows do not fit the table, and the write does not let it change; or the
            table exists and has other properties than it must have.
    """
    decision = _decide_schema(txn, wanted)
    if decision.action is SchemaAction.CREATE:
        txn.update_metadata_for_new_table(_new_metadata(txn, decision, new))
        return
    if new.must_fit:
        allow_arbitrary = txn.table.options.allow_arbitrary_properties
        ensure_properties_held(txn.snapshot, new.properties, allow_arbitrary=allow_arbitrary)
    elif new.properties:
        _warn_of_ignored_properties(txn, new.properties)
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


def _decide_schema(txn: OptimisticTransaction, wanted: SchemaWrite) -> SchemaDecision:
    if txn.read_version < 0:
        return decide_schema(None, (), wanted)
    snapshot = txn.snapshot
    return decide_schema(
        snapshot.schema,
        snapshot.partition_columns,
        wanted,
        constraints=snapshot.properties.constraints,
        may_widen=allowed_widening(snapshot.metadata, snapshot.protocol),
    )


def _new_metadata(txn: OptimisticTransaction, decision: SchemaDecision, new: NewTable) -> Metadata:
    options, clock = txn.table.options, txn.table.clock
    return Metadata(
        id=clock.new_uuid(),
        schema_string=schema_to_json(decision.schema),
        name=new.name,
        description=new.comment,
        partition_columns=decision.partition_columns,
        configuration=normalize_configuration(
            new.properties, allow_arbitrary=options.allow_arbitrary_properties
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
