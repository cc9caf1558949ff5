"""The assignments of `UPDATE SET *` and `INSERT *`: the source's columns, by name (spec 10.15).

With schema evolution, structs of the source can lack fields. An INSERT writes null there. An UPDATE
keeps the table's values there, so it assigns the other fields one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from optimist.core.commands.merge.clauses import missing_source_column
from optimist.core.errors import SchemaError
from optimist.core.requests.merge_clauses import Clause
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.types import DataType, StructField, StructType

__all__ = ["AllColumns"]

_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllColumns:
    """The assignments of a clause that takes all columns.

    Attributes:
        values: The paths of the source's values, by the paths of the columns or fields that get
            them.
        partial: For structs of which only fields are assigned, by their paths in the table: the
            paths of the source's structs.
    """

    values: dict[_Path, _Path] = field(default_factory=dict)
    partial: dict[_Path, _Path] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        clause: Clause[Any, Any],
        columns: Sequence[str],
        types: StructType,
        schema: StructType,
        *,
        remedy: str,
        evolves_schema: bool,
    ) -> AllColumns:
        """Find the source's column for each of the table's.

        Args:
            clause: The clause.
            columns: The columns of the source.
            types: Those with types that tables have.
            schema: The table's schema after the MERGE.
            remedy: What the caller can do if the source lacks a column.
            evolves_schema: Whether the source can lack columns, and fields of structs.

        Raises:
            SchemaError: The source lacks a column, or has two of its name in other cases (kind
                `DELTA_MERGE_UNRESOLVED_EXPRESSION`).
        """
        found = cls()
        keeps_fields = evolves_schema and clause.action == "update"

        def missing(name: str) -> SchemaError:
            return missing_source_column(name, clause, columns, remedy)

        for item in schema:
            names = _columns_named(item.name, columns)
            if len(names) > 1:
                raise missing(item.name)
            if names:
                given = types.find(names[0]) if keeps_fields else None
                found._assign((item.name,), item, given, (names[0],))
            elif not evolves_schema and not _is_computed(item):
                raise missing(item.name)
        return found

    def _assign(
        self, path: _Path, item: StructField, given: StructField | None, source: _Path
    ) -> None:
        """Assign a field: whole, or the fields that the source's struct has."""
        table = item.data_type
        if given is not None and _lacks_fields(given.data_type, table):
            self.partial[path] = source
            for inner, given_inner in _common_fields(table, given.data_type):
                below = (*source, given_inner.name)
                self._assign((*path, inner.name), inner, given_inner, below)
        else:
            self.values[path] = source


def _lacks_fields(source: DataType, table: DataType) -> bool:
    """Check whether a struct, or a struct right within it, lacks a field of the table's struct."""
    if not (isinstance(table, StructType) and isinstance(source, StructType)):
        return False
    common = list(_common_fields(table, source))
    return len(common) < len(table) or any(
        _lacks_fields(given.data_type, inner.data_type) for inner, given in common
    )


def _common_fields(table: DataType, source: DataType) -> Iterator[tuple[StructField, StructField]]:
    if isinstance(table, StructType) and isinstance(source, StructType):
        for inner in table:
            given = source.find(inner.name)
            if given is not None:
                yield inner, given


def _columns_named(name: str, columns: Sequence[str]) -> list[str]:
    """Find the columns of a name in any case, or the one in the same case."""
    return [name] if name in columns else [one for one in columns if one.lower() == name.lower()]


def _is_computed(item: StructField) -> bool:
    return generation_expression(item) is not None or is_identity_column(item)
