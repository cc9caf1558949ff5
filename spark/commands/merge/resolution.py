"""The expressions of a MERGE, resolved by Spark before any row is read.

Conditions and values of a clause see only the rows that the clause is for: both, the source's, or
the table's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from optimist.core.commands.merge_clauses import MergeClauses
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.requests.merge_clauses import Action, Kind
from optimist.core.schema.identity_columns import (
    ensure_none_inserted,
    ensure_none_updated,
)
from optimist.core.schema.types import StructType
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.all_columns import AllColumns
from optimist.spark.commands.merge.request import MergeClause, MergeRequest
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.bound_condition import BoundCondition, rebound
from optimist.spark.conditions.condition import JoinedCondition, resolve_joined_condition
from optimist.spark.conditions.fixed_now import FixedNow
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.rows.assignments import Assignments
from optimist.spark.rows.touched_files import aliased
from optimist.spark.spark_schema import VOID
from optimist.spark.sql.table_sql import TableSql

__all__ = ["ResolvedClause", "ResolvedMerge"]


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """One clause.

    Attributes:
        number: Its place among all clauses.
        clause: The clause as it was given.
        condition: Its condition; None if it has none.
        assignments: What it assigns; None for a DELETE, and for an INSERT of no column.
    """

    number: int
    clause: MergeClause
    condition: JoinedCondition | None
    assignments: Assignments | None

    def shown(self) -> dict[str, str]:
        """The clause as the history tells it."""
        predicate = {} if self.condition is None else {"predicate": self.condition.text}
        return {**predicate, "actionType": self.clause.action}


@dataclass(frozen=True, slots=True)
class ResolvedMerge(MergeClauses[ResolvedClause]):
    """All expressions of one MERGE.

    Attributes:
        sql: The SQL of the table, with its schema after the MERGE.
        on: The condition by which rows match.
        clauses: The clauses in their order.
        time: Makes the current time the same in all expressions; those above have it already.
        own: The table's rows that Spark resolved the expressions against.
        other: The source.
    """

    sql: TableSql
    on: JoinedCondition
    clauses: tuple[ResolvedClause, ...]
    time: FixedNow
    own: DataFrame
    other: DataFrame

    @classmethod
    def of(cls, target: Target, rows: DataFrame, request: MergeRequest) -> ResolvedMerge:
        """Resolve the expressions; Spark analyses them, and reads no row.

        Args:
            target: The table, with its schema as the MERGE has evolved it.
            rows: What `target.columns()` gave.
            request: The MERGE.

        Raises:
            pyspark.errors.AnalysisException: Spark can't resolve an expression.
            SchemaError, UsageError: As `DeltaMergeBuilder.execute`.
        """
        sql = target.writer.table_sql(target.spark)
        scopes = _Scopes(target, rows, request, sql, target.fixed_now(rows, request.source))
        on = scopes.condition(scopes.both, request.condition)
        clauses = (scopes.resolved(at, clause) for at, clause in enumerate(request.clauses))
        merge = cls(sql, on, tuple(clauses), scopes.time, rows, request.source)
        if on.bound is not None and merge.of_kind("NOT MATCHED BY SOURCE"):
            raise _refused_outer_join(on.text)
        return merge

    @property
    def bound(self) -> tuple[BoundCondition, ...]:
        """The conditions that hold subqueries, which fit only the columns of `own` and `other`."""
        conditions = (self.on, *(item.condition for item in self.clauses))
        found = (item.bound for item in conditions if item is not None)
        return tuple(item for item in found if item is not None)

    @property
    def reads(self) -> tuple[DataFrame, ...]:
        """What the MERGE reads beside the table's rows: the source, and what subqueries read."""
        return (self.other, *(item.as_rows() for item in self.bound))

    def with_own_columns(self, rows: DataFrame, alias: str) -> DataFrame:
        """Rows of the table, whose columns every condition fits, under their alias."""
        if not self.bound:
            return aliased(rows, alias)
        return aliased(rebound(rows, attributes_of(self.own)), alias)

    def with_other_columns(self, rows: DataFrame) -> DataFrame:
        """Rows of the source, whose columns every condition fits."""
        return rebound(rows, attributes_of(self.other)) if self.bound else rows

    def numbers_of(self, action: Action) -> list[int]:
        """The numbers of the clauses that do this."""
        return [item.number for item in self.clauses if item.clause.action == action]

    @property
    def has_updates(self) -> bool:
        """Whether rows of the table may get other values."""
        return bool(self.numbers_of("update"))

    @property
    def has_inserts(self) -> bool:
        """Whether rows may be added that match none."""
        return bool(self.of_kind("NOT MATCHED"))

    @property
    def needs_unchanged_rows(self) -> bool:
        """Whether matching rows without a clause matter: their source rows are not inserted."""
        return self.has_inserts and all(
            item.condition is not None for item in self.of_kind("MATCHED")
        )

    def columns_for_search(self) -> frozenset[str]:
        """The columns that tell which rows match and which clauses they get, in lower case."""
        conditions = (item.condition for item in self.clauses if item.clause.kind != "NOT MATCHED")
        return self.on.names.union(*(item.names for item in conditions if item is not None))


@dataclass(frozen=True, slots=True)
class _Scopes:
    """The rows that the expressions of a clause can see."""

    target: Target
    rows: DataFrame
    request: MergeRequest
    sql: TableSql
    time: FixedNow

    @property
    def both(self) -> DataFrame:
        return self.rows.crossJoin(self.request.source)

    def of(self, kind: Kind) -> DataFrame:
        if kind == "MATCHED":
            return self.both
        return self.request.source if kind == "NOT MATCHED" else self.rows

    def condition(self, frame: DataFrame, condition: Column | str) -> JoinedCondition:
        schema, alias = self.target.snapshot.schema, self.target.alias or ""
        found = resolve_joined_condition(
            frame,
            condition,
            own=self.rows,
            schema=schema,
            alias=alias,
            time=self.time,
        )
        if found.bound is None:
            return found
        return found.reading(of_fixed_versions(found.bound.as_rows()))

    def resolved(self, number: int, clause: MergeClause) -> ResolvedClause:
        frame = self.of(clause.kind)
        given = clause.condition
        condition = None if given is None else self.condition(frame, given)
        values, partial = clause.values, None
        if clause.takes_all_columns:
            every = AllColumns.of(
                clause,
                self.request.source,
                self.sql.schema,
                self.target.alias,
                evolves_schema=self.request.evolves_schema,
            )
            values, partial = every.values, every.partial
        assignments = None
        is_insert = clause.action == "insert"
        if is_insert:
            _ensure_insertable(values or {}, self.sql.schema, self.target.alias)
        if values or clause.action == "update":
            assignments = Assignments.resolve(
                frame,
                values or {},
                self.sql,
                self.target.alias,
                may_lack_fields=self.request.evolves_schema,
                partial=partial,
            ).mapped(self.time.fixed)
            _resolve_values(frame, assignments, self.sql.schema)
            ensure_kept = ensure_none_inserted if is_insert else ensure_none_updated
            ensure_kept(self.sql.schema, assignments.columns)
        return ResolvedClause(number, clause, condition, assignments)


def _refused_outer_join(text: str) -> UsageError:
    return UsageError(
        f"The condition {quoted(text)} of ON holds a subquery, which is not supported together "
        "with WHEN NOT MATCHED BY SOURCE. Nothing was written. Compute its answer first, as a "
        "column of the source.",
        kind="DELTA_UNSUPPORTED_SUBQUERY",
        condition=text,
    )


def _resolve_values(frame: DataFrame, assignments: Assignments, schema: StructType) -> None:
    """Have Spark resolve the casts, too; only the other fields of a struct are not known yet."""
    whole = {path[0] for path in assignments.values if len(path) == 1}
    columns = [
        assignments.new_value(field)
        for field in schema
        if field.name in whole and field.data_type != VOID
    ]
    _ = frame.select(*columns).schema


def _ensure_insertable(names: Iterable[str], schema: StructType, alias: str | None) -> None:
    """Refuse an INSERT into a field of a struct, or into one column twice."""
    seen: set[str] = set()
    for name in names:
        path = parse_column_path(name)
        is_qualified = len(path) > 1 and path[0].lower() == (alias or "").lower()
        if is_qualified and schema.find(path[1]) is not None:
            path = path[1:]
        if len(path) > 1 and schema.find(path[0]) is not None:
            raise UsageError(
                f"Nested field is not supported in the INSERT clause of MERGE operation: "
                f"{shown(name)}. Nothing was written. Build the whole struct.",
                kind="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                column=name,
            )
        if path[-1].lower() in seen:
            raise UsageError(
                f"Duplicate column name in INSERT clause: {shown(name)}. Nothing was written. Name "
                "each column once.",
                kind="DELTA_DUPLICATE_COLUMNS_ON_INSERT",
                column=name,
            )
        seen.add(path[-1].lower())
