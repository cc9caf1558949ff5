"""The expressions of a MERGE without Spark, resolved before any row is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.merge_clauses import MergeClauses
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.computed_columns import with_defaults
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.merge.clauses import LocalClause, LocalMergeRequest
from optimist.core.local.merge.keys import JoinKey, join_keys
from optimist.core.local.merge.scope import Scope
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.text import quote_path
from optimist.core.schema.identity_columns import (
    ensure_none_inserted,
    ensure_none_updated,
    identity_columns,
)
from optimist.core.schema.types import StructType

__all__ = ["ResolvedClause", "ResolvedMerge", "ensure_insertable", "first_clause"]


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """One clause.

    Attributes:
        clause: The clause as it was given.
        scope: What its expressions can name.
        condition: Its condition; None if it has none.
        assignments: What it sets; None for a DELETE.
    """

    clause: LocalClause
    scope: Scope
    condition: Predicate | None
    assignments: LocalAssignments | None

    def shown(self) -> dict[str, str]:
        """The clause as the history tells it."""
        given = self.clause.condition
        predicate = {} if given is None else {"predicate": str(given)}
        return {**predicate, "actionType": self.clause.action}


@dataclass(frozen=True, slots=True)
class ResolvedMerge(MergeClauses[ResolvedClause]):
    """All expressions of one MERGE.

    Attributes:
        request: The MERGE as it was given.
        keys: What must be equal.
        on: The same as SQL.
        clauses: The clauses in their order.
    """

    request: LocalMergeRequest
    keys: tuple[JoinKey, ...]
    on: str
    clauses: tuple[ResolvedClause, ...]

    @classmethod
    def of(
        cls, request: LocalMergeRequest, schema: StructType, source: StructType
    ) -> ResolvedMerge:
        """Resolve the expressions against the table's schema and the source's.

        Raises:
            SchemaError: A column does not exist, or a constant does not fit it.
            UsageError: An expression does not parse, or only Spark can evaluate it (kind
                `OPTIMIST_NEEDS_SPARK`).
        """
        own, other = {request.target_alias: schema}, {request.source_alias: source}
        if request.target_alias.lower() == request.source_alias.lower():
            raise UsageError(
                "The table and the source of the MERGE have the same alias. Nothing was written. "
                "Give them different ones.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="source_alias",
            )
        both = Scope({**own, **other})
        scopes = {"MATCHED": both, "NOT MATCHED": Scope(other), "NOT MATCHED BY SOURCE": Scope(own)}
        keys, on = join_keys(request.on, both)
        clauses = (_resolved(item, scopes[item.kind], request, schema) for item in request.clauses)
        return cls(request, keys, on, tuple(clauses))

    def numbered(self, schema: StructType) -> tuple[str, ...]:
        """The identity columns whose numbers new rows get.

        Raises:
            UsageError: Some of the INSERTs bring numbers and others do not (kind
                `OPTIMIST_NEEDS_SPARK`).
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
        return tuple(name for name in names if name not in inserts[0].whole)

    def always_given(self, schema: StructType) -> StructType:
        """The table's columns that every INSERT gives a value."""
        given = [item.assignments.whole for item in self.of_kind("NOT MATCHED") if item.assignments]
        return StructType(tuple(item for item in schema if all(item.name in one for one in given)))

    def columns_for_search(self) -> frozenset[str]:
        """The columns of the table that tell which rows match and which clauses they get."""
        found = {key.own[0] for key in self.keys}
        for item in self.clauses:
            if item.condition is not None and item.clause.kind != "NOT MATCHED":
                names = item.scope.names(item.condition.columns(), self.request.target_alias)
                found |= names
        return frozenset(found)

    def columns_for_update(self, schema: StructType) -> frozenset[str]:
        """The columns of the table that make the new values of rows that are updated."""
        found: set[str] = set()
        for item in self.clauses:
            if item.assignments is not None and item.clause.action == "update":
                found |= set(schema.names) - item.assignments.whole
                for value in item.assignments.values.values():
                    found |= item.scope.names(value.columns, self.request.target_alias)
        return frozenset(found)


def _resolved(
    clause: LocalClause, scope: Scope, request: LocalMergeRequest, schema: StructType
) -> ResolvedClause:
    condition = None if clause.condition is None else scope.predicate(clause.condition)
    if clause.action == "delete":
        return ResolvedClause(clause, scope, condition, None)
    values = clause.values
    if values is None:
        source = scope.sides[request.source_alias]
        numbered = {item.name for item in identity_columns(schema)}
        values = {
            quote_path((item.name,)): _same(item.name, source, request)
            for item in schema
            if item.name not in numbered or source.find(item.name) is not None
        }
    assignments = LocalAssignments.of(values, schema, seen=scope.schema)
    if clause.action == "insert":
        ensure_none_inserted(schema, assignments.targets)
        _ensure_whole_columns(assignments)
        assignments = with_defaults(assignments)
    else:
        ensure_none_updated(schema, assignments.targets)
    return ResolvedClause(clause, scope, condition, assignments)


def ensure_insertable(assignments: LocalAssignments) -> None:
    """Refuse an INSERT into a field of a struct, or into a table that numbers its rows.

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


def _ensure_whole_columns(assignments: LocalAssignments) -> None:
    """Refuse an INSERT into a field of a struct."""
    for path in assignments.values:
        if len(path) > 1:
            name = ".".join(path)
            raise UsageError(
                f"Nested field is not supported in the INSERT clause of MERGE operation: "
                f"{shown(name)}. Nothing was written. Set the whole struct.",
                kind="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                column=name,
            )


def _same(name: str, source: StructType, request: LocalMergeRequest) -> str:
    found = source.find(name)
    if found is None:
        raise SchemaError(
            f"Cannot resolve {shown(name)} in a clause that takes all columns of the table from "
            f"the source, which has none of that name. Its columns are {listed(source.names)}. "
            "Nothing was written. Name the columns that the clause sets.",
            kind="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            column=name,
            candidates=source.names,
        )
    return quote_path((request.source_alias, found.name))


def first_clause(
    clauses: tuple[ResolvedClause, ...], sides: Callable[[], dict[str, pa.Table]], num_rows: int
) -> pa.Array:
    """For each row the place of the first clause whose condition is true; null if none is.

    Args:
        clauses: The clauses of one kind.
        sides: Gives the rows of each side, by its alias; called only if a condition asks for them.
        num_rows: How many rows these are.
    """
    found: Any = pa.nulls(num_rows, pa.int32())
    has_conditions = any(item.condition is not None for item in clauses)
    rows = clauses[0].scope.rows(sides()) if has_conditions else None
    for place, item in reversed(list(enumerate(clauses))):
        number = pa.scalar(place, pa.int32())
        if item.condition is None or rows is None:
            found = pa.repeat(number, num_rows)
        else:
            mask = pc.fill_null(evaluate(item.condition, rows), False)
            found = pc.if_else(mask, number, found)
    return found
