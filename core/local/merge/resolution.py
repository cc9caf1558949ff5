"""The expressions of a MERGE without Spark, resolved before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.merge.all_columns import AllColumns
from optimist.core.commands.merge.clauses import nested_insert
from optimist.core.commands.merge.resolved import ResolvedClause, ResolvedMerge
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.expressions.moments import Moment
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.computed_columns import with_defaults
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.merge.join import JoinBranch, join_branches
from optimist.core.local.merge.read_rows import target_predicate
from optimist.core.local.merge.request import LocalClause, LocalMergeRequest
from optimist.core.local.merge.scope import Sides
from optimist.core.local.merge.source_rows import SourceRows
from optimist.core.local.values import parse_assigned
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.text import quote_path
from optimist.core.requests.merge_clauses import Kind
from optimist.core.schema.identity_columns import (
    ensure_none_inserted,
    ensure_none_updated,
    identity_columns,
)
from optimist.core.schema.types import StructType

__all__ = ["LocalResolvedClause", "LocalResolvedMerge", "ensure_insertable"]

LocalResolvedClause: TypeAlias = ResolvedClause[Predicate, LocalAssignments]
"""A clause whose expressions this process evaluates."""


@dataclass(frozen=True, slots=True)
class LocalResolvedMerge(ResolvedMerge[Predicate, LocalAssignments]):
    """A MERGE whose expressions this process evaluates.

    Attributes:
        branches: The conditions of which ON is an OR.
        sides: The columns of the table and of the source.
        source: The rows of the source.
    """

    branches: tuple[JoinBranch, ...]
    sides: Sides
    source: SourceRows

    @classmethod
    def of(
        cls, request: LocalMergeRequest, source: SourceRows, sides: Sides, schema: StructType
    ) -> LocalResolvedMerge:
        """Resolve the expressions against the columns of both sides.

        Args:
            request: The MERGE.
            source: The rows of its source.
            sides: The columns that expressions can name.
            schema: The table's schema after the MERGE.

        Raises:
            SchemaError: A column does not exist, or a constant does not fit it.
            UsageError: An expression does not parse, or only Spark can evaluate it (kind
                `OPTIMIST_NEEDS_SPARK`).
        """
        branches, on = join_branches(request.on, sides)
        resolver = _Resolver(sides, schema, request.evolves_schema, request.moment)
        clauses = (resolver.clause(at, item) for at, item in enumerate(request.clauses))
        return cls(on, tuple(clauses), branches, sides, source)

    def wanted_rows(self) -> Predicate | None:
        """Return a predicate that is true for every row that can change, or None for all rows."""
        if self.searches_all_rows:
            return None
        return target_predicate(self.branches, self.source, self.sides)

    def numbered(self, schema: StructType) -> tuple[str, ...]:
        """Return the identity columns in which new rows get numbers.

        Raises:
            UsageError: Some of the INSERTs bring numbers and others do not, or a generated column
                reads the numbers (kind `OPTIMIST_NEEDS_SPARK`).
        """
        inserts = [item.assignments for item in self.of_kind("NOT MATCHED") if item.assignments]
        names = tuple(column.name for column in identity_columns(schema)) if inserts else ()
        for name in names:
            if len({name in one.whole for one in inserts}) > 1:
                raise UsageError(
                    f"Some INSERT clauses give values for the identity column {shown(name)} and "
                    "others do not; a MERGE without Spark can't do both. "
                    f"{RUN_WITH_SPARK}",
                    kind="OPTIMIST_NEEDS_SPARK",
                    column=name,
                )
        numbered = tuple(name for name in names if name not in inserts[0].whole)
        for item in inserts:
            _ensure_known_before_numbers(item, numbered)
        return numbered

    def always_given(self, schema: StructType) -> StructType:
        """Return the table's columns that every INSERT gives a value."""
        given = [item.assignments.whole for item in self.of_kind("NOT MATCHED") if item.assignments]
        return StructType(tuple(item for item in schema if all(item.name in one for one in given)))

    def columns_for_search(self) -> frozenset[str]:
        """Return the table's columns that decide which rows match and which clauses they get."""
        found = set().union(*(item.target_columns(self.sides) for item in self.branches))
        for item in self.clauses:
            if item.condition is not None and item.kind != "NOT MATCHED":
                found |= self.sides.target_names(item.kind, item.condition.columns())
        return frozenset(found)

    def columns_for_update(self, schema: StructType) -> frozenset[str]:
        """Return the table's columns from which the new values of updated rows are made."""
        found: set[str] = set()
        for item in self.clauses:
            if item.assignments is not None and item.action == "update":
                found |= set(schema.names) - item.assignments.whole
                for value in item.assignments.values.values():
                    found |= self.sides.target_names(item.kind, value.columns)
        return frozenset(found)

    def source_columns(self, clause: LocalResolvedClause) -> frozenset[str]:
        """Return the source's columns of which a clause makes new values."""
        values = () if clause.assignments is None else clause.assignments.values.values()
        paths = frozenset[tuple[str, ...]]().union(*(item.columns for item in values))
        return self.sides.source_names(clause.kind, paths)

    @property
    def columns_of_source(self) -> dict[int, frozenset[str]]:
        """The source's columns of which each update of a matching row makes its new values."""
        return {
            item.number: self.source_columns(item)
            for item in self.of_kind("MATCHED")
            if item.action == "update"
        }

    def clauses_of_rows(
        self, kind: Kind, rows: Callable[[], pa.Table], num_rows: int
    ) -> pa.Int32Array:
        """Return for each row the number of its clause, or null if it gets none.

        Args:
            kind: The kind of the rows; there are clauses for it.
            rows: Returns the rows as `Sides.rows`. It is called only if a clause has a condition.
            num_rows: How many rows there are.
        """
        found: Any = pa.nulls(num_rows, pa.int32())
        clauses = self.of_kind(kind)
        has_conditions = any(item.condition is not None for item in clauses)
        seen = rows() if has_conditions else None
        for item in clauses:
            number = pa.scalar(item.number, pa.int32())
            if item.condition is None or seen is None:
                return pc.fill_null(found, number)
            # A row that has its clause is not asked again: a later condition may fail for it.
            is_open = pc.is_null(found)
            mask = evaluate(item.condition, seen.filter(is_open), zone=self.sides.zone)
            taken = pc.if_else(pc.fill_null(mask, False), number, pa.scalar(None, pa.int32()))
            found = pc.replace_with_mask(found, is_open, taken)
        return found


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Resolves the clauses of one MERGE.

    Attributes:
        sides: The columns that expressions can name.
        schema: The table's schema after the MERGE.
        evolves_schema: Whether the source can have other columns and fields than the table.
        moment: As for the request.
    """

    sides: Sides
    schema: StructType
    evolves_schema: bool
    moment: Moment | None

    def clause(self, number: int, clause: LocalClause) -> LocalResolvedClause:
        scope, given = self.sides.scopes[clause.kind], clause.condition
        condition = None if given is None else scope.predicate(given)
        assignments = None
        if clause.action != "delete":
            assignments = self._assignments(clause)
        if assignments is not None and clause.action == "insert":
            ensure_none_inserted(self.schema, assignments.targets)
            _ensure_whole_columns(assignments)
            assignments = with_defaults(assignments, self.moment)
        elif assignments is not None:
            ensure_none_updated(self.schema, assignments.targets)
        text = None if given is None else str(given)
        return ResolvedClause(number, clause.kind, clause.action, condition, text, assignments)

    def _assignments(self, clause: LocalClause) -> LocalAssignments:
        seen, values = self.sides.scopes[clause.kind].schema, clause.values
        partial: Mapping[tuple[str, ...], tuple[str, ...]] = {}
        if values is None:
            found = self._all_columns(clause)
            values, partial = _as_sql(found.values, self.sides.source_alias), found.partial
        assignments = LocalAssignments.of(
            values,
            self.schema,
            seen=seen,
            zone=self.sides.zone,
            may_lack_fields=self.evolves_schema,
            moment=self.moment,
        )
        structs = _as_sql(partial, self.sides.source_alias)
        origins = (parse_assigned(value, seen, zone=self.sides.zone) for value in structs.values())
        return replace(assignments, partial=dict(zip(partial, origins, strict=True)))

    def _all_columns(self, clause: LocalClause) -> AllColumns:
        source = self.sides.source
        return AllColumns.of(
            clause,
            source.names,
            source,
            self.schema,
            remedy="Name the columns that the clause sets, or call with_schema_evolution.",
            evolves_schema=self.evolves_schema,
        )


def _as_sql(
    paths: Mapping[tuple[str, ...], tuple[str, ...]], source_alias: str
) -> dict[str, object]:
    """Return the paths of the source's values as SQL, by the names of what gets them."""
    return {quote_path(path): quote_path((source_alias, *found)) for path, found in paths.items()}


def ensure_insertable(assignments: LocalAssignments) -> None:
    """Refuse an INSERT into a field of a struct, or into a table with identity columns.

    Raises:
        UsageError: It is one of these (kinds `DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION` and
            `OPTIMIST_NEEDS_SPARK`).
    """
    for column in identity_columns(assignments.schema):
        raise UsageError(
            "A MERGE without Spark can't give numbers to the identity column "
            f"{shown(column.name)}. {RUN_WITH_SPARK}",
            kind="OPTIMIST_NEEDS_SPARK",
            column=column.name,
        )
    _ensure_whole_columns(assignments)


def _ensure_known_before_numbers(assignments: LocalAssignments, numbered: Sequence[str]) -> None:
    """Refuse generated columns that read numbers, which rows get after all other values."""
    generated = {} if assignments.generated is None else assignments.generated.values
    for name, value in generated.items():
        if name not in assignments.targets and {path[0] for path in value.columns} & {*numbered}:
            raise UsageError(
                f"The generated column {shown(name)} reads an identity column; a MERGE without "
                f"Spark can't compute it. {RUN_WITH_SPARK}",
                kind="OPTIMIST_NEEDS_SPARK",
                column=name,
            )


def _ensure_whole_columns(assignments: LocalAssignments) -> None:
    for path in assignments.values:
        if len(path) > 1:
            raise nested_insert(".".join(path))
