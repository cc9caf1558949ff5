"""The result of `DeltaTable.alter()` from when it was a method; the next version removes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.requests.columns import ColumnChange, ColumnName, NewColumn
from optimist.core.transaction.result import CommitResult

__all__ = ["AlterByOldNames"]


class AlterByOldNames:
    """The methods of `TableChanges`, by their old names as well."""

    def __init__(self, changes: TableChanges) -> None:
        self._changes = changes

    def __getattr__(self, name: str) -> Callable[..., CommitResult | None]:
        old = _OLD.get(name)
        found: Callable[..., CommitResult | None] = (
            getattr(self._changes, name) if old is None else partial(old, self._changes)
        )
        return found


def _add_column(
    changes: TableChanges,
    colName: ColumnName,
    dataType: Any,
    comment: str | None = None,
    **place: Any,
) -> CommitResult:
    return changes.add_columns([NewColumn(colName, dataType, comment=comment, **place)])


def _add_columns(changes: TableChanges, cols: Any) -> CommitResult:
    return changes.add_columns(
        [
            NewColumn((each.name,), each.dataType, each.nullable, each.metadata.get("comment"))
            for each in cols
        ]
    )


def _change_column(
    changes: TableChanges,
    colName: ColumnName,
    dataType: Any = None,
    dropDefault: bool = False,
    **others: Any,
) -> CommitResult:
    return changes.change_columns(
        [ColumnChange(colName, dataType, drop_default=dropDefault, **others)]
    )


def _unset_properties(changes: TableChanges, names: Any, ifExists: bool = False) -> CommitResult:
    return changes.unset_properties(names, if_exists=ifExists)


def _drop_columns(changes: TableChanges, *cols: ColumnName, ifExists: bool = False) -> CommitResult:
    return changes.drop_columns(cols, if_exists=ifExists)


def _drop_constraint(changes: TableChanges, name: str, ifExists: bool = False) -> CommitResult:
    return changes.drop_constraint(name, if_exists=ifExists)


def _cluster_by(changes: TableChanges, *cols: ColumnName) -> CommitResult | None:
    return changes.cluster_by(cols)


def _rename_column(changes: TableChanges, colName: ColumnName, newName: str) -> CommitResult:
    return changes.rename_column(colName, newName)


def _sync_identity(changes: TableChanges, colName: ColumnName) -> CommitResult:
    return changes.sync_identity(colName)


def _set_properties(changes: TableChanges, properties: Mapping[str, str]) -> CommitResult:
    return changes.set_properties(properties)


_OLD: Mapping[str, Callable[..., CommitResult | None]] = MappingProxyType(
    {
        "addColumn": _add_column,
        "addColumns": _add_columns,
        "addConstraint": TableChanges.add_constraint,
        "changeColumn": _change_column,
        "clusterBy": _cluster_by,
        "dropColumns": _drop_columns,
        "dropConstraint": _drop_constraint,
        "removeDomainMetadata": TableChanges.remove_domain,
        "renameColumn": _rename_column,
        "setComment": TableChanges.set_comment,
        "setDomainMetadata": TableChanges.set_domain,
        "setProperties": _set_properties,
        "syncIdentity": _sync_identity,
        "unsetProperties": _unset_properties,
    }
)
