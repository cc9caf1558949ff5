"""The expressions of a MERGE, resolved by Spark before any row is read.

Conditions and values of a clause see only the rows that the clause is for: both rows, the source's,
or the table's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.merge.all_columns import AllColumns
from optimist.core.commands.merge.clauses import nested_insert
from optimist.core.commands.merge.resolved import ResolvedClause, ResolvedMerge
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.requests.merge_clauses import Kind
from optimist.core.schema.identity_columns import (
    ensure_none_inserted,
    ensure_none_updated,
    identity_columns,
)
from optimist.core.schema.types import StructType
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.request import MergeClause, MergeRequest
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.bound_condition import BoundCondition, rebound
from optimist.spark.conditions.condition import JoinedCondition, resolve_joined_condition
from optimist.spark.conditions.fixed_now import FixedNow
from optimist.spark.conditions.subquery_text import SubqueryText, reading_only
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.rows.assignments import Assignments, is_default
from optimist.spark.rows.row_shape import quoted as quoted_name
from optimist.spark.rows.touched_files import aliased
from optimist.spark.spark_schema import VOID, from_spark_schema
from optimist.spark.sql.table_sql import TableSql

__all__ = ["SparkResolvedClause", "SparkResolvedMerge", "SparkSides"]

SparkResolvedClause: TypeAlias = ResolvedClause[JoinedCondition, Assignments]
"""A clause whose expressions Spark evaluates."""


@dataclass(frozen=True, slots=True)
class SparkSides:
    """The rows that Spark resolves the expressions against.

    Attributes:
        target: The table's rows under their alias; none is ever read.
        source: The source's rows.
    """

    target: DataFrame
    source: DataFrame

    def of_kind(self, kind: Kind) -> DataFrame:
        """Return the rows that the expressions of a kind of clause see."""
        if kind == "MATCHED":
            return self.target.crossJoin(self.source)
        return self.source if kind == "NOT MATCHED" else self.target


@dataclass(frozen=True, slots=True)
class SparkResolvedMerge(ResolvedMerge[JoinedCondition, Assignments]):
    """A MERGE whose expressions Spark evaluates.

    Attributes:
        join: The condition by which rows match.
        sides: The rows that Spark resolved the expressions against.
        sql: The SQL of the table, with its schema after the MERGE.
        time: Makes the current time the same in all expressions; those above have it already.
        value_reads: On Spark Connect, queries that read what subqueries of new values read.
    """

    join: JoinedCondition
    sides: SparkSides
    sql: TableSql
    time: FixedNow
    value_reads: tuple[DataFrame, ...]

    @classmethod
    def of(cls, target: Target, sides: SparkSides, request: MergeRequest) -> SparkResolvedMerge:
        """Have Spark resolve the expressions, without reading a row.

        Args:
            target: The table, with its schema as the MERGE has evolved it.
            sides: What `target.columns()` gave, and the source.
            request: The MERGE.

        Raises:
            pyspark.errors.AnalysisException: Spark can't resolve an expression.
            SchemaError, UsageError: As `DeltaMergeBuilder.execute`.
        """
        sql = target.writer.table_sql(target.spark)
        time = target.fixed_now(sides.target, sides.source)
        resolver = _Resolver(target, sides, sql, time, evolves_schema=request.evolves_schema)
        join = resolver.condition("MATCHED", request.condition)
        clauses = (resolver.clause(at, clause) for at, clause in enumerate(request.clauses))
        reads = tuple(rows for clause in request.clauses for rows in resolver.value_reads(clause))
        merge = cls(join.text, tuple(clauses), join, sides, sql, time, reads)
        if join.is_asked_once and merge.searches_all_rows:
            raise _refused_outer_join(join.text)
        return merge

    @property
    def bound(self) -> tuple[BoundCondition, ...]:
        """The conditions that hold subqueries, which fit only the columns of `sides`."""
        found = (item.bound for item in self._conditions)
        return tuple(item for item in found if item is not None)

    @property
    def _conditions(self) -> tuple[JoinedCondition, ...]:
        given = (item.condition for item in self.clauses)
        return (self.join, *(item for item in given if item is not None))

    @property
    def reads(self) -> tuple[DataFrame, ...]:
        """What the MERGE reads beside the table's rows: the source, and what subqueries read."""
        sent = (item.reads for item in self._conditions)
        return (
            self.sides.source,
            *(item.as_rows() for item in self.bound),
            *(item for item in sent if item is not None),
            *self.value_reads,
        )

    def with_target_columns(self, rows: DataFrame, alias: str) -> DataFrame:
        """Return rows of the table under their alias, with the columns that conditions expect."""
        if not self.bound:
            return aliased(rows, alias)
        return aliased(rebound(rows, attributes_of(self.sides.target)), alias)

    def with_source_columns(self, rows: DataFrame) -> DataFrame:
        """Return rows of the source with the columns that conditions expect."""
        return rebound(rows, attributes_of(self.sides.source)) if self.bound else rows

    @property
    def needs_unchanged_rows(self) -> bool:
        """Whether matching rows without a clause matter: their source rows are not inserted."""
        return self.has_inserts and all(
            item.condition is not None for item in self.of_kind("MATCHED")
        )

    def columns_for_search(self) -> frozenset[str]:
        """Return the columns that decide which rows match and which clauses they get.

        The names are in lower case.
        """
        conditions = (item.condition for item in self.clauses if item.kind != "NOT MATCHED")
        return self.join.names.union(*(item.names for item in conditions if item is not None))


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Resolves the expressions of one MERGE."""

    target: Target
    sides: SparkSides
    sql: TableSql
    time: FixedNow
    evolves_schema: bool

    def condition(self, kind: Kind, condition: Column | str) -> JoinedCondition:
        found = resolve_joined_condition(
            self.sides.of_kind(kind),
            condition,
            target=self.sides.target,
            schema=self.target.snapshot.schema,
            alias=self.target.alias or "",
            time=self.time,
        )
        if found.reads is not None:
            return replace(found, reads=self._rows_beside(kind).where(condition))
        if found.bound is None:
            return found
        return found.reading(of_fixed_versions(found.bound.as_rows()))

    def value_reads(self, clause: MergeClause) -> Iterator[DataFrame]:
        """Yield a query that reads what subqueries of a Connect client's new values read."""
        given = (clause.values or {}).values()
        values = [item for item in given if isinstance(item, SubqueryText)]
        if values:
            yield self._rows_beside(clause.kind).select(*map(sf.expr, values))

    def _rows_beside(self, kind: Kind) -> DataFrame:
        """Return the rows that a kind of clause sees, by a query that does not read the table."""
        if kind == "NOT MATCHED":
            return self.sides.source
        rows = reading_only(self.sides.target, self.target.alias)
        return rows.crossJoin(self.sides.source) if kind == "MATCHED" else rows

    def clause(self, number: int, clause: MergeClause) -> SparkResolvedClause:
        kind, given = clause.kind, clause.condition
        condition = None if given is None else self.condition(kind, given)
        return ResolvedClause(
            number,
            kind,
            clause.action,
            condition,
            None if condition is None else condition.text,
            self._assignments(clause),
        )

    def _assignments(self, clause: MergeClause) -> Assignments | None:
        schema, alias = self.sql.schema, self.target.alias
        values, partial = clause.values, None
        if clause.takes_all_columns:
            values, partial = self._all_columns(clause)
        is_insert = clause.action == "insert"
        if is_insert:
            _ensure_insertable(values or {}, schema, alias)
        if not values and clause.action != "update":
            return None
        rows = self.sides.of_kind(clause.kind)
        assignments = Assignments.resolve(
            rows,
            values or {},
            self.sql,
            alias,
            may_lack_fields=self.evolves_schema,
            partial=partial,
        ).mapped(self.time.fixed)
        _resolve_values(rows, assignments, schema)
        ensure_kept = ensure_none_inserted if is_insert else ensure_none_updated
        ensure_kept(schema, assignments.columns)
        return assignments

    def _all_columns(
        self, clause: MergeClause
    ) -> tuple[dict[str, Column], dict[tuple[str, ...], Column]]:
        """Return the values of a clause that takes all columns, and those of partial structs."""
        source, alias = self.sides.source, self.target.alias
        keeps_fields = self.evolves_schema and clause.action == "update"
        every = AllColumns.of(
            clause,
            source.columns,
            from_spark_schema(source.schema) if keeps_fields else StructType(()),
            self.sql.schema,
            remedy="Name the columns that the clause sets, or call withSchemaEvolution.",
            evolves_schema=self.evolves_schema,
        )

        def column(path: tuple[str, ...]) -> Column:
            return reduce(Column.getField, path[1:], source[quoted_name(path[0])])

        def target(path: tuple[str, ...]) -> str:
            above = () if alias is None or len(path) == 1 else (alias,)
            return ".".join(map(quoted_name, (*above, *path)))

        values = {target(path): column(found) for path, found in every.values.items()}
        return values, {path: column(found) for path, found in every.partial.items()}


def _refused_outer_join(text: str) -> UsageError:
    return UsageError(
        f"The condition {quoted(text)} of ON holds a subquery, which is not supported together "
        "with WHEN NOT MATCHED BY SOURCE. Nothing was written. Compute its answer first, as a "
        "column of the source.",
        kind="DELTA_UNSUPPORTED_SUBQUERY",
        condition=text,
    )


def _resolve_values(frame: DataFrame, assignments: Assignments, schema: StructType) -> None:
    """Have Spark resolve the casts, too, except where the other fields of a struct matter."""
    whole = {path[0] for path in assignments.values if len(path) == 1}
    columns = [
        assignments.new_value(field)
        for field in schema
        if field.name in whole and field.data_type != VOID
    ]
    _ = frame.select(*columns).schema


def _ensure_insertable(
    values: Mapping[str, Column | str], schema: StructType, alias: str | None
) -> None:
    """Refuse an INSERT into a field of a struct, or into one column twice, or of no number."""
    seen: set[str] = set()
    for name, value in values.items():
        path = parse_column_path(name)
        is_qualified = len(path) > 1 and path[0].lower() == (alias or "").lower()
        if is_qualified and schema.find(path[1]) is not None:
            path = path[1:]
        if len(path) > 1 and schema.find(path[0]) is not None:
            raise nested_insert(name)
        if path[-1].lower() in seen:
            raise UsageError(
                f"Duplicate column name in INSERT clause: {shown(name)}. Nothing was written. Name "
                "each column once.",
                kind="DELTA_DUPLICATE_COLUMNS_ON_INSERT",
                column=name,
            )
        seen.add(path[-1].lower())
        if _is_number_left_to_table(value, schema, path[-1]):
            raise SchemaError(
                f"Cannot resolve DEFAULT in INSERT clause for {shown(name)}: the numbers of an "
                "identity column are no default. Nothing was written. Leave the column out.",
                kind="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                column=name,
            )


def _is_number_left_to_table(value: Column | str, schema: StructType, name: str) -> bool:
    """Return whether a value is DEFAULT for an identity column that takes numbers of others."""
    says_default = isinstance(value, str) and is_default(value, schema)
    if not says_default:
        return False
    same = (item for item in identity_columns(schema) if item.name.lower() == name.lower())
    return any(item.may_be_inserted for item in same)
