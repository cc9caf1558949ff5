"""ALTER TABLE and COMMENT ON TABLE: one change of a table, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.requests import alterations as ra
from optimist.core.sql.statements import AlterTable
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.statements.maintenance import drop_feature
from optimist.core.statements.result_rows import NO_ROWS

__all__ = ["alter", "alter_table"]


def alter_table(context: StatementContext, log: OpenTable, statement: AlterTable) -> pa.Table:
    """Run ALTER TABLE."""
    alter(context, log, statement.change)
    return NO_ROWS


def alter(context: StatementContext, log: OpenTable, change: ra.TableAlteration) -> None:
    """Make one change of a table in one commit (`TableChanges`)."""
    if isinstance(change, ra.DropFeature):
        drop_feature(context, log, change)
    else:
        _CHANGES[type(change)](context.changes(log), change)


def _set_properties(table: TableChanges, change: ra.SetProperties) -> None:
    table.set_properties(dict(change.properties))


def _unset_properties(table: TableChanges, change: ra.UnsetProperties) -> None:
    table.unset_properties(change.keys, if_exists=change.if_exists)


def _set_comment(table: TableChanges, change: ra.SetComment) -> None:
    table.set_comment(change.comment)


def _add_columns(table: TableChanges, change: ra.AddColumns) -> None:
    table.add_columns(change.columns)


def _replace_columns(table: TableChanges, change: ra.ReplaceColumns) -> None:
    table.replace_columns(change.columns)


def _rename_column(table: TableChanges, change: ra.RenameColumn) -> None:
    table.rename_column(change.column, change.new_name)


def _drop_columns(table: TableChanges, change: ra.DropColumns) -> None:
    table.drop_columns(change.columns, if_exists=change.if_exists)


def _change_columns(table: TableChanges, change: ra.ChangeColumns) -> None:
    table.change_columns(change.changes)


def _add_constraint(table: TableChanges, change: ra.AddConstraint) -> None:
    table.add_constraint(change.name, change.condition)


def _drop_constraint(table: TableChanges, change: ra.DropConstraint) -> None:
    table.drop_constraint(change.name, if_exists=change.if_exists)


def _cluster_by(table: TableChanges, change: ra.ClusterBy) -> None:
    table.cluster_by(change.columns)


def _sync_identity(table: TableChanges, change: ra.SyncIdentity) -> None:
    table.sync_identity(change.column)


_CHANGES: Mapping[type, Callable[[TableChanges, Any], None]] = MappingProxyType(
    {
        ra.SetProperties: _set_properties,
        ra.UnsetProperties: _unset_properties,
        ra.SetComment: _set_comment,
        ra.AddColumns: _add_columns,
        ra.ReplaceColumns: _replace_columns,
        ra.RenameColumn: _rename_column,
        ra.DropColumns: _drop_columns,
        ra.ChangeColumns: _change_columns,
        ra.AddConstraint: _add_constraint,
        ra.DropConstraint: _drop_constraint,
        ra.ClusterBy: _cluster_by,
        ra.SyncIdentity: _sync_identity,
    }
)
