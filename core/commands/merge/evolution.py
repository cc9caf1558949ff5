"""The schema of a table after a MERGE with schema evolution (spec 10.1, 10.15).

New columns of the source go to the end of the table's columns, and new fields of its structs to the
end of the table's structs. A clause that assigns one field adds that field alone. Existing columns
keep their types, and values of another type are cast when they are stored. But if the table allows
it, a column that a clause assigns becomes as wide as the source's column of the same name. The
assigned value does not matter for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optimist.core.predicates.parsing import parse_column_path
from optimist.core.protocol.schema_merge import SchemaAction, SchemaWrite, decide_schema
from optimist.core.protocol.widening import WideningRule, allowed_widening
from optimist.core.requests.merge_clauses import Clause
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    schema_to_json,
)
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["evolve_schema"]


def evolve_schema(
    txn: OptimisticTransaction,
    source: StructType,
    clauses: Sequence[Clause[Any, Mapping[str, Any]]],
    alias: str | None,
    *,
    is_plain: bool = False,
) -> None:
    """Add the columns that the clauses assign and only the source has to the table's schema.

    Args:
        txn: The transaction.
        source: The schema of the source.
        clauses: The clauses. One that takes all columns brings all of the source's.
        alias: The table's alias. A name that begins with it means a column that the table has.
            None where assigned names have no alias.
        is_plain: Whether a method of `DeltaLog` asks, for the words of errors.

    Raises:
        SchemaError: The table cannot have the new columns.
    """
    snapshot = txn.snapshot
    takes_all = any(clause.takes_all_columns for clause in clauses)
    may_widen = allowed_widening(snapshot.metadata, snapshot.protocol)
    names = _assigned(clauses, snapshot.schema, alias)
    brought = source if takes_all else _along(source, tuple(names))
    wanted = _Evolution(may_widen).struct(snapshot.schema, brought)
    decision = decide_schema(
        snapshot.schema,
        snapshot.partition_columns,
        SchemaWrite(wanted, merge_schema=True, is_plain=is_plain),
        constraints=snapshot.properties.constraints,
        may_widen=may_widen,
    )
    if decision.action is SchemaAction.EVOLVE:
        changed = replace(txn.metadata, schema_string=schema_to_json(decision.schema))
        txn.update_metadata(changed)


def _assigned(
    clauses: Sequence[Clause[Any, Mapping[str, Any]]], table: StructType, alias: str | None
) -> Iterator[tuple[str, ...]]:
    """Yield the assigned columns and fields of structs that can come from the source's schema.

    A clause for rows that match no row of the source can't assign columns of the source alone.
    """
    for clause in clauses:
        if clause.kind == "NOT MATCHED BY SOURCE":
            continue
        for name in clause.values or ():
            path = parse_column_path(name)
            if len(path) == 1 or path[0].lower() != (alias or "").lower():
                yield path
            elif named_path(path[1:], table) is not None:
                yield path[1:]


def _along(fields: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """Return the fields at the ends of the paths, in structs without their other fields."""
    kept = []
    for item in fields:
        below = [path[1:] for path in paths if path and path[0].lower() == item.name.lower()]
        if () in below:
            kept.append(item)
        elif below and isinstance(item.data_type, StructType):
            inner = _along(item.data_type, below)
            kept += [replace(item, data_type=inner)] if len(inner) else []
    return StructType(tuple(kept))


@dataclass(frozen=True, slots=True)
class _Evolution:
    """Adds to the table's types what the source's types have beside."""

    may_widen: WideningRule | None

    def struct(self, table: StructType, source: StructType) -> StructType:
        kept = []
        for item in table:
            given = source.find(item.name)
            if given is not None:
                item = replace(item, data_type=self.type_of(item.data_type, given.data_type))
            kept.append(item)
        added = tuple(item for item in source if table.find(item.name) is None)
        return StructType((*kept, *added))

    def type_of(self, table: DataType, source: DataType) -> DataType:
        if isinstance(table, StructType) and isinstance(source, StructType):
            return self.struct(table, source)
        if isinstance(table, ArrayType) and isinstance(source, ArrayType):
            return replace(
                table, element_type=self.type_of(table.element_type, source.element_type)
            )
        if isinstance(table, MapType) and isinstance(source, MapType):
            return replace(
                table,
                key_type=self.type_of(table.key_type, source.key_type),
                value_type=self.type_of(table.value_type, source.value_type),
            )
        is_wider = self.may_widen is not None and self.may_widen(table, source)
        return source if is_wider else table
