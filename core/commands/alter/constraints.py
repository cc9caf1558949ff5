"""ADD CONSTRAINT and DROP CONSTRAINT (spec 10.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.commands.alter.row_checks import RowChecks
from optimist.core.commands.stored_sql import canonical_sql, ensure_constraint_sound
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.protocol.properties import CONSTRAINT_PREFIX, constraint_keys
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["add_constraint", "drop_constraint"]


def add_constraint(
    txn: OptimisticTransaction, name: str, sql: str, checks: RowChecks
) -> Alteration:
    """Add a CHECK constraint that all rows of the table satisfy.

    Raises:
        SchemaError: A constraint has this name, in any case (kind
            `DELTA_CONSTRAINT_ALREADY_EXISTS`); or see `ensure_constraint_sound` and
            `RowChecks.ensure_constraint_holds`.
    """
    if not name:
        raise UsageError(
            "A constraint needs a name. Nothing was written. Give one.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="name",
        )
    configuration = txn.metadata.configuration
    found = _find_by_name(name, constraint_keys(configuration))
    if found:
        known = configuration[next(iter(found.values()))]
        raise SchemaError(
            f"The table has a constraint {shown(name)} already ({shown(known)}). Nothing was "
            "written. Drop it first, or choose another name.",
            kind="DELTA_CONSTRAINT_ALREADY_EXISTS",
            constraint=name,
            expression=known,
        )
    schema = txn.snapshot.schema
    sql = canonical_sql(sql, schema, keeps_texts=checks.keeps_texts)
    ensure_constraint_sound(name, sql, schema, is_local=False)
    checks.ensure_constraint_holds(txn, name, sql)
    changed = {**configuration, CONSTRAINT_PREFIX + name.lower(): sql}
    return Alteration(
        Operation("ADD CONSTRAINT", {"name": name, "expr": sql}),
        replace(txn.metadata, configuration=changed),
    )


def drop_constraint(txn: OptimisticTransaction, name: str, *, if_exists: bool) -> Alteration:
    """Drop a CHECK constraint, by its exact name or by a name in any case.

    Raises:
        SchemaError: No constraint has this name (kind `DELTA_CONSTRAINT_DOES_NOT_EXIST`), and
            `if_exists` is not set; or several differ from it only in case.
    """
    configuration = txn.metadata.configuration
    keys = constraint_keys(configuration)
    found = _find_by_name(name, keys)
    if len(found) > 1 or not (found or if_exists):
        raise SchemaError(
            f"The table has no constraint {shown(name)}; it has {listed(keys) or 'none'}. Nothing "
            "was written. Use one of these names, or say IF EXISTS.",
            kind="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            constraint=name,
        )
    dropped = next(iter(found.values()), None)
    existed = (
        {"existed": "false"}
        if dropped is None
        else {"expr": configuration[dropped], "existed": "true"}
    )
    kept = {key: text for key, text in configuration.items() if key != dropped}
    return Alteration(
        Operation("DROP CONSTRAINT", {"name": name, **existed}),
        replace(txn.metadata, configuration=kept),
    )


def _find_by_name(name: str, keys: Mapping[str, str]) -> dict[str, str]:
    """Return the constraint of exactly this name, otherwise those that differ only in case."""
    if name in keys:
        return {name: keys[name]}
    return {known: key for known, key in keys.items() if known.lower() == name.lower()}
