"""ALTER TABLE as Spark's parser has understood it: its changes as `TableAlteration`s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.requests import alterations as ra
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.statements.alterations import alter as alter_table
from optimist.spark.commands.catalog.catalog_entries import move
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.commands.statement_context import SparkStatements

__all__ = ["alter"]

_Changes: TypeAlias = Sequence[ra.TableAlteration]
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
    given = list(changes)
    location = _location(given)
    if location is not None:
        move(spark, identifier, entry, location)
        return
    context = SparkStatements(spark)
    for change in _read(given):
        alter_table(context, context.open_path(path), change)


def _read(changes: Sequence[Any]) -> _Changes:
    """Return the changes of a statement, or none if IF EXISTS leaves nothing of it."""
    if not changes:
        return ()
    kinds = [_kind(change) for change in changes]
    is_replacement = set(kinds) == {"DeleteColumn", "AddColumn"}
    read = _replace_columns if is_replacement else _KINDS.get(kinds[0])
    if read is None:
        raise not_built_yet(f"The change {kinds[0]} of ALTER TABLE")
    return read(changes)


def _location(changes: Sequence[Any]) -> str | None:
    """Return the place that SET LOCATION says, to Spark a property of that name."""
    for change in changes:
        if _kind(change) == "SetProperty" and str(change.property()) == _LOCATION:
            return str(change.value())
    return None


def _set_properties(changes: Sequence[Any]) -> _Changes:
    pairs = tuple((str(change.property()), str(change.value())) for change in changes)
    return (ra.SetProperties(pairs),)


def _unset_properties(changes: Sequence[Any]) -> _Changes:
    # Spark does not say whether the statement has IF EXISTS, and Delta takes each as if it had.
    keys = tuple(str(change.property()) for change in changes)
    return (ra.UnsetProperties(keys, if_exists=True),)


def _add_columns(changes: Sequence[Any]) -> _Changes:
    return (ra.AddColumns(tuple(map(_new_column, changes))),)


def _replace_columns(changes: Sequence[Any]) -> _Changes:
    """Read REPLACE COLUMNS: Spark says that all columns go, and those of the new list come."""
    added = (each for each in changes if _kind(each) == "AddColumn")
    return (ra.ReplaceColumns(tuple(map(_new_column, added))),)


def _new_column(change: Any) -> NewColumn:
    return NewColumn(
        _path(change),
        str(change.dataType().sql()),
        bool(change.isNullable()),
        _text(change.comment()),
        None if change.defaultValue() is None else str(change.defaultValue().getSql()),
        **_position(change),
    )


def _drop_columns(changes: Sequence[Any]) -> _Changes:
    if_exists = all(change.ifExists() for change in changes)
    return (ra.DropColumns(tuple(map(_path, changes)), if_exists),)


def _rename_column(changes: Sequence[Any]) -> _Changes:
    return [ra.RenameColumn(_path(change), str(change.newName())) for change in changes]


def _change_columns(changes: Sequence[Any]) -> _Changes:
    """Read ALTER COLUMN: all that is said of one column is one change of it."""
    found: dict[tuple[str, ...], ColumnChange] = {}
    for change in changes:
        path = _path(change)
        known = found.get(path, ColumnChange(path))
        found[path] = replace(known, **_CHANGED[_kind(change)](change))
    return (ra.ChangeColumns(tuple(found.values())),)


def _cluster_by(changes: Sequence[Any]) -> _Changes:
    columns = [list(column.fieldNames()) for column in changes[-1].clusteringColumns()]
    return (ra.ClusterBy(tuple(tuple(map(str, column)) for column in columns)),)


def _add_constraint(changes: Sequence[Any]) -> _Changes:
    for change in changes:
        constraint = change.constraint()
        if _kind(constraint) != "Check":
            raise not_built_yet("ADD CONSTRAINT of another kind than CHECK")
        if not constraint.enforced():
            raise not_built_yet("ADD CONSTRAINT ... NOT ENFORCED")
    constraints = (change.constraint() for change in changes)
    return [ra.AddConstraint(str(each.name()), str(each.predicateSql())) for each in constraints]


def _drop_constraint(changes: Sequence[Any]) -> _Changes:
    return [ra.DropConstraint(str(each.name()), bool(each.ifExists())) for each in changes]


def _kind(change: Any) -> str:
    return str(change.getClass().getSimpleName())


def _path(change: Any) -> tuple[str, ...]:
    return tuple(map(str, change.fieldNames()))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _position(change: Any) -> dict[str, Any]:
    position = change.position()
    if position is None:
        return {}
    is_first = _kind(position) == "First"
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
_KINDS: Mapping[str, Callable[[Sequence[Any]], _Changes]] = MappingProxyType(
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
