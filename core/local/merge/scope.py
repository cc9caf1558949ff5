"""The names that expressions of a MERGE can use: the table's columns, the source's, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.predicates import Predicate, ensure_columns
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.requests.merge_clauses import Kind
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot.row_filter import ensure_exact

__all__ = ["Scope", "Sides"]


@dataclass(frozen=True)
class Scope:
    """Rows under their aliases; a column that only one side has needs no alias.

    Attributes:
        sides: The columns of each side, by its alias.
        zone: The session's time zone.
    """

    sides: dict[str, StructType]
    zone: str = "UTC"

    @cached_property
    def schema(self) -> StructType:
        """The columns that expressions can name: a struct for each side, and those on one side."""
        structs = [StructField(alias, columns) for alias, columns in self.sides.items()]
        return StructType((*structs, *(item for _, item in self._bare)))

    @cached_property
    def _bare(self) -> list[tuple[str, StructField]]:
        """The columns that need no alias, each with the alias of its side."""
        all_names = [item.name.lower() for columns in self.sides.values() for item in columns]
        all_names += [alias.lower() for alias in self.sides]
        return [
            (alias, item)
            for alias, columns in self.sides.items()
            for item in columns
            if all_names.count(item.name.lower()) == 1
        ]

    def predicate(self, given: str | Predicate) -> Predicate:
        """Resolve a condition: its columns get the spelling of `schema`.

        Raises:
            UsageError: It does not parse, or a part of it can be evaluated only by Spark (kind
                `OPTIMIST_NEEDS_SPARK`).
            SchemaError: It names an unknown column.
        """
        parsed = Predicate.of(given)
        for path in sorted(parsed.columns()):
            if len(path) > 1 and self.schema.find(path[0]) is None:
                raise self._unknown_name(path)
        predicate = ensure_columns(parsed, self.schema)
        ensure_exact(predicate, self.schema, remedy=RUN_WITH_SPARK, zone=self.zone)
        return predicate

    def find(self, path: tuple[str, ...]) -> tuple[str, ResolvedColumn]:
        """Find the side that has a column, and the column there.

        Raises:
            UsageError: There is no such column, or both sides have it (kind
                `OPTIMIST_INVALID_PREDICATE`).
        """
        alias = next((name for name in self.sides if name.lower() == path[0].lower()), None)
        if alias is not None and len(path) > 1:
            found = resolve_column(path[1:], self.sides[alias])
            if found is not None:
                return alias, found
        for side, item in self._bare:
            if item.name.lower() == path[0].lower():
                found = resolve_column(path, self.sides[side])
                if found is not None:
                    return side, found
        raise self._unknown_name(path)

    def _unknown_name(self, path: tuple[str, ...]) -> UsageError:
        return UsageError(
            f"The name {quoted('.'.join(path))} is not a column of {' or '.join(self.sides)}, or "
            "it is a column of both. Nothing was written. Write the alias before the name.",
            kind="OPTIMIST_INVALID_PREDICATE",
            predicate=".".join(path),
        )

    def rows(self, sides: Mapping[str, pa.Table]) -> pa.Table:
        """Return the rows in the columns of `schema` that the sides have.

        Args:
            sides: The rows of each side, by its alias.
        """
        names, columns = [], []
        for alias, table in sides.items():
            names.append(alias)
            columns.append(_struct_of(table))
        for alias, item in self._bare:
            if alias in sides and item.name in sides[alias].column_names:
                names.append(item.name)
                columns.append(sides[alias][item.name])
        return pa.table(columns, names=names)


@dataclass(frozen=True)
class Sides:
    """The columns of the table and of the source, each under its alias.

    Attributes:
        target_alias: The name for the table's rows.
        target: The table's columns.
        source_alias: The name for the source's rows.
        source: The source's columns.
        zone: The session's time zone.
    """

    target_alias: str
    target: StructType
    source_alias: str
    source: StructType
    zone: str = "UTC"

    @cached_property
    def scopes(self) -> Mapping[Kind, Scope]:
        """What the expressions of each kind of clause can name."""
        target, source = {self.target_alias: self.target}, {self.source_alias: self.source}
        return {
            "MATCHED": Scope({**target, **source}, self.zone),
            "NOT MATCHED": Scope(source, self.zone),
            "NOT MATCHED BY SOURCE": Scope(target, self.zone),
        }

    def target_names(self, kind: Kind, paths: frozenset[tuple[str, ...]]) -> frozenset[str]:
        """Return the table's top-level columns among the columns that a clause names."""
        return self._names_of(self.target_alias, kind, paths)

    def source_names(self, kind: Kind, paths: frozenset[tuple[str, ...]]) -> frozenset[str]:
        """Return the source's top-level columns among the columns that a clause names."""
        return self._names_of(self.source_alias, kind, paths)

    def _names_of(
        self, alias: str, kind: Kind, paths: frozenset[tuple[str, ...]]
    ) -> frozenset[str]:
        found = map(self.scopes[kind].find, paths)
        return frozenset(column.path[0] for side, column in found if side == alias)

    def rows(
        self, kind: Kind, *, target: pa.Table | None = None, source: pa.Table | None = None
    ) -> pa.Table:
        """Return rows as the expressions of a kind of clause see them.

        Args:
            kind: The kind.
            target: The rows of the table, if the kind sees them.
            source: The rows of the source, if the kind sees them.
        """
        given = {self.target_alias: target, self.source_alias: source}
        return self.scopes[kind].rows(
            {alias: rows for alias, rows in given.items() if rows is not None}
        )


def _struct_of(table: pa.Table) -> pa.Array:
    if not table.num_columns:
        return pa.array([{}] * table.num_rows, pa.struct([]))
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(arrays, fields=list(table.schema))
