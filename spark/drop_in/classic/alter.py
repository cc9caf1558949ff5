"""ALTER TABLE as Spark's parser has understood it: its changes, as those of `DeltaTable.alter`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.spark.commands.alter import changes_of
from optimist.spark.commands.catalog.catalog_entries import move
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.session.conf import open_log

__all__ = ["alter"]

_LOCATION = "location"


def alter(spark: SparkSession, identifier: Any, more: Any) -> None:
    """Make the changes of one statement: one commit, as a statement has changes of one kind.

    Args:
        spark: The session.
        identifier: The name within the catalog; for a table by its path, the path.
        more: The `CatalogTable`, or None for a path; then an array of Spark's `TableChange`.
    """
    entry, changes = more
    path = str(identifier.name()) if entry is None else CatalogTable.of(spark, entry).path
    table = changes_of(spark, open_log(spark, path))
    given = list(changes)
    if not given:
        return  # IF EXISTS, and nothing of it does
    location = _location(given)
    if location is not None:
        move(spark, identifier, entry, location)
        return
    kinds = [str(change.getClass().getSimpleName()) for change in given]
    is_replacement = set(kinds) == {"DeleteColumn", "AddColumn"}
    apply = _replace_columns if is_replacement else _KINDS.get(kinds[0])
    if apply is None:
        raise not_built_yet(f"The change {kinds[0]} of ALTER TABLE")
    apply(table, given)


def _set_properties(table: TableChanges, changes: Sequence[Any]) -> None:
    table.set_properties({str(change.property()): str(change.value()) for change in changes})


def _location(changes: Sequence[Any]) -> str | None:
    """The place that SET LOCATION says, to Spark a property of that name."""
    for change in changes:
        is_property = str(change.getClass().getSimpleName()) == "SetProperty"
        if is_property and str(change.property()) == _LOCATION:
            return str(change.value())
    return None


def _unset_properties(table: TableChanges, changes: Sequence[Any]) -> None:
    # Spark does not say whether the statement has IF EXISTS, and Delta takes each as if it had.
    table.unset_properties([str(change.property()) for change in changes], if_exists=True)


def _add_columns(table: TableChanges, changes: Sequence[Any]) -> None:
    table.add_columns(map(_new_column, changes))


def _replace_columns(table: TableChanges, changes: Sequence[Any]) -> None:
    """Spark says it as all columns going, and those of the new list coming."""
    added = (each for each in changes if str(each.getClass().getSimpleName()) == "AddColumn")
    table.replace_columns(map(_new_column, added))


def _new_column(change: Any) -> NewColumn:
    return NewColumn(
        _path(change),
        str(change.dataType().sql()),
        bool(change.isNullable()),
        _text(change.comment()),
        None if change.defaultValue() is None else str(change.defaultValue().getSql()),
        **_position(change),
    )


def _drop_columns(table: TableChanges, changes: Sequence[Any]) -> None:
    table.drop_columns(map(_path, changes), if_exists=all(change.ifExists() for change in changes))


def _rename_column(table: TableChanges, changes: Sequence[Any]) -> None:
    for change in changes:
        table.rename_column(_path(change), str(change.newName()))


def _change_columns(table: TableChanges, changes: Sequence[Any]) -> None:
    """All that is said of one column is one change of it."""
    found: dict[tuple[str, ...], ColumnChange] = {}
    for change in changes:
        path = _path(change)
        kind = str(change.getClass().getSimpleName())
        known = found.get(path, ColumnChange(path))
        found[path] = replace(known, **_CHANGED[kind](change))
    table.change_columns(found.values())


def _cluster_by(table: TableChanges, changes: Sequence[Any]) -> None:
    columns = [list(column.fieldNames()) for column in changes[-1].clusteringColumns()]
    table.cluster_by([tuple(map(str, column)) for column in columns])


def _add_constraint(table: TableChanges, changes: Sequence[Any]) -> None:
    for change in changes:
        constraint = change.constraint()
        if str(constraint.getClass().getSimpleName()) != "Check":
            raise not_built_yet("ADD CONSTRAINT of another kind than CHECK")
        if not constraint.enforced():
            raise not_built_yet("ADD CONSTRAINT ... NOT ENFORCED")
        table.add_constraint(str(constraint.name()), str(constraint.predicateSql()))


def _drop_constraint(table: TableChanges, changes: Sequence[Any]) -> None:
    for change in changes:
        table.drop_constraint(str(change.name()), if_exists=bool(change.ifExists()))


def _path(change: Any) -> tuple[str, ...]:
    return tuple(map(str, change.fieldNames()))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _position(change: Any) -> dict[str, Any]:
    position = change.position()
    if position is None:
        return {}
    is_first = str(position.getClass().getSimpleName()) == "First"
    return {"first": True} if is_first else {"after": str(position.column())}


def _default(change: Any) -> dict[str, Any]:
    sql = str(change.newDefaultValue() or "")
    return {"default": sql} if sql else {"drop_default": True}


_CHANGED: Mapping[str, Callable[[Any], dict[str, Any]]] = MappingProxyType(
    {
        "UpdateColumnType": lambda change: {"data_type": str(change.newDataType().sql())},
        "UpdateColumnNullability": lambda change: {"nullable": bool(change.nullable())},
        "UpdateColumnComment": lambda change: {"comment": str(change.newComment())},
        "UpdateColumnPosition": _position,
        "UpdateColumnDefaultValue": _default,
    }
)
_KINDS: Mapping[str, Callable[[TableChanges, Sequence[Any]], None]] = MappingProxyType(
    {
        "SetProperty": _set_properties,
        "RemoveProperty": _unset_properties,
        "AddColumn": _add_columns,
        "DeleteColumn": _drop_columns,
        "RenameColumn": _rename_column,
        **dict.fromkeys(_CHANGED, _change_columns),
        "ClusterBy": _cluster_by,
        "AddConstraint": _add_constraint,
        "DropConstraint": _drop_constraint,
    }
)
