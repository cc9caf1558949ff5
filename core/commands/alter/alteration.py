"""One ALTER TABLE: its change of the metadata and its commit (spec 10.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.protocol.actions import Action, Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["Alteration", "Change", "alter", "with_schema"]


@dataclass(frozen=True, slots=True)
class Alteration:
    """The content of the commit of an ALTER TABLE.

    Attributes:
        operation: The operation for the history.
        metadata: The table's new metadata; None to keep them.
        actions: Other actions.
        tags: Tags of the commit.
        features: Table features that do not follow from the metadata. They need `metadata`.
    """

    operation: Operation
    metadata: Metadata | None = None
    actions: tuple[Action, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()


Change: TypeAlias = Callable[[OptimisticTransaction], Alteration | None]
"""Decides what to commit, after all checks; returns None if there is nothing to do."""


def alter(begin: Callable[[], OptimisticTransaction], change: Change) -> CommitResult | None:
    """Run an ALTER TABLE to its commit, which is recorded even if it changes nothing.

    Args:
        begin: Starts a transaction on the newest version.
        change: Decides what to commit. With the option `conflict.retry` it is called again after a
            conflict, with a new transaction.

    Returns:
        The commit; None if there was nothing to do.

    Raises:
        DeltaConcurrentModificationException: Another commit changed something that this one relies
            on, such as the metadata. Nothing was changed.
        SchemaError, ConfigError, ProtocolError, UsageError: The change is not allowed.
    """

    def run(txn: OptimisticTransaction) -> CommitResult | None:
        txn.ensure_writable(to_alter=True)
        wanted = change(txn)
        if wanted is None:
            return None
        if wanted.metadata is not None:
            txn.update_metadata(wanted.metadata, features=wanted.features)
        return txn.commit(wanted.actions, wanted.operation, dict(wanted.tags) or None)

    return run_until_it_lands(begin, run)


def with_schema(metadata: Metadata, schema: StructType) -> Metadata:
    """Return the metadata with another schema."""
    if schema == TableMetadata.of(metadata).declared_schema:
        return metadata
    return replace(metadata, schema_string=schema_to_json(schema))
