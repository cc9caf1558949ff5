"""The assignments of `UPDATE SET *` and `INSERT *`: the source's columns, by name (spec 10.15).

With schema evolution, structs of the source can lack fields. An INSERT writes null there. An UPDATE
keeps the table's values there, so it assigns the other fields one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark.sql import Column, DataFrame

from optimist.core.commands.merge.clauses import missing_source_column
from optimist.core.errors import SchemaError
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.types import DataType, StructField, StructType
from optimist.spark.commands.merge.request import MergeClause
from optimist.spark.rows.row_shape import quoted
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["AllColumns"]

_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllColumns:
    """The assignments of a clause that takes all columns.

    Attributes:
        values: The values of the source, by the columns or fields of structs that get them.
        partial: For structs of which only fields are assigned, by their paths in the table: the
            structs of the source.
    """

    values: dict[str, Column] = field(default_factory=dict)
    partial: dict[_Path, Column] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        clause: MergeClause,
        source: DataFrame,
        schema: StructType,
        alias: str | None,
        *,
        evolves_schema: bool,
    ) -> AllColumns:
        """Find the source's column for each of the table's.

        Args:
            clause: The clause.
            source: The rows of the source.
            schema: The table's schema after the MERGE.
            alias: The table's alias.
            evolves_schema: Whether the source can lack columns, and fields of structs.

        Raises:
            SchemaError: The source lacks a column, or has two of its name in other cases (kind
                `DELTA_MERGE_UNRESOLVED_EXPRESSION`).
        """
        found = cls()
        keeps_fields = evolves_schema and clause.action == "update"
        types = from_spark_schema(source.schema) if keeps_fields else StructType(())
        above = () if alias is None else (alias,)
        for item in schema:
            name = _column_named(item.name, clause, source)
            if name is not None:
                value, given = source[quoted(name)], types.find(name)
                if given is not None and _lacks_fields(given.data_type, item.data_type):
                    found._assign(above, (item.name,), item, given, value)
                else:
                    found.values[quoted(item.name)] = value
            elif not evolves_schema and not _is_computed(item):
                raise _missing_column(item.name, clause, source)
        return found

    def _assign(
        self, above: _Path, path: _Path, item: StructField, given: StructField, value: Column
    ) -> None:
        """Assign a field: whole, or the fields that the source's struct has."""
        table, source = item.data_type, given.data_type
        if (
            isinstance(table, StructType)
            and isinstance(source, StructType)
            and _lacks_fields(source, table)
        ):
            self.partial[path] = value
            for inner, given_inner in _common_fields(table, source):
                part = value.getField(given_inner.name)
                self._assign(above, (*path, inner.name), inner, given_inner, part)
        else:
            self.values[".".join(map(quoted, (*above, *path)))] = value


def _lacks_fields(source: DataType, table: DataType) -> bool:
    """Check whether a struct, or a struct right within it, lacks a field of the table's struct."""
    if not (isinstance(table, StructType) and isinstance(source, StructType)):
        return False
    common = list(_common_fields(table, source))
    return len(common) < len(table) or any(
        _lacks_fields(given.data_type, inner.data_type) for inner, given in common
    )


def _common_fields(
    table: StructType, source: StructType
) -> Iterator[tuple[StructField, StructField]]:
    for inner in table:
        given = source.find(inner.name)
        if given is not None:
            yield inner, given


def _column_named(name: str, clause: MergeClause, source: DataFrame) -> str | None:
    """Find the source's column of a name in any case, and prefer the one in the same case."""
    folded = name.lower()
    matches = [column for column in source.columns if column.lower() == folded]
    if name in matches:
        return name
    if len(matches) > 1:
        raise _missing_column(name, clause, source)
    return next(iter(matches), None)


def _missing_column(name: str, clause: MergeClause, source: DataFrame) -> SchemaError:
    remedy = "Name the columns that the clause sets, or call withSchemaEvolution."
    return missing_source_column(name, clause, source.columns, remedy)


def _is_computed(item: StructField) -> bool:
    return generation_expression(item) is not None or is_identity_column(item)
