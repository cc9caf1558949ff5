"""ADD CONSTRAINT and DROP CONSTRAINT (spec 10.3)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.commands.alter.row_checks import RowChecks
from optimist.core.errors import SchemaError, UsageError
from optimist.core.foreign_text import listed, shown
from optimist.core.protocol.properties import CONSTRAINT_PREFIX
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["add_constraint", "drop_constraint"]


def add_constraint(
    txn: OptimisticTransaction, name: str, sql: str, checks: RowChecks
) -> Alteration:
    """Add a CHECK constraint that all rows of the table satisfy.

    Raises:
        SchemaError: There is one of that name in any case (kind
            `DELTA_CONSTRAINT_ALREADY_EXISTS`), or as `RowChecks.ensure_constraint_holds`.
    """
    if not name:
        raise UsageError(
            "A constraint needs a name. Nothing was written. Give one.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="name",
        )
    known = TableMetadata.of(txn.metadata).properties.constraints.get(name.lower())
    if known is not None:
        raise SchemaError(
            f"The table has a constraint {shown(name)} already ({shown(known)}). Nothing was "
            "written. Drop it first, or choose another name.",
            kind="DELTA_CONSTRAINT_ALREADY_EXISTS",
            constraint=name,
            expression=known,
        )
    checks.ensure_constraint_holds(txn, name, sql)
    changed = {**txn.metadata.configuration, CONSTRAINT_PREFIX + name.lower(): sql}
    return Alteration(
        Operation("ADD CONSTRAINT", {"name": name, "expr": sql}),
        replace(txn.metadata, configuration=changed),
    )


def drop_constraint(txn: OptimisticTransaction, name: str, *, if_exists: bool) -> Alteration:
    """Drop a CHECK constraint, named in any case.

    Raises:
        SchemaError: There is none of that name (kind `DELTA_CONSTRAINT_DOES_NOT_EXIST`), and
            `if_exists` is not set.
    """
    constraints = TableMetadata.of(txn.metadata).properties.constraints
    known = constraints.get(name.lower())
    if known is None and not if_exists:
        raise SchemaError(
            f"The table has no constraint {shown(name)}; it has "
            f"{listed(constraints) or 'none'}. Nothing was written. Check the name, or say IF "
            "EXISTS.",
            kind="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            constraint=name,
        )
    existed = {"existed": "false"} if known is None else {"expr": known, "existed": "true"}
    key = CONSTRAINT_PREFIX + name.lower()
    kept = {k: text for k, text in txn.metadata.configuration.items() if k.lower() != key}
    return Alteration(
        Operation("DROP CONSTRAINT", {"name": name, **existed}),
        replace(txn.metadata, configuration=kept),
    )
