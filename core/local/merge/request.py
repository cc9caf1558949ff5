"""The request for a MERGE without Spark: source, condition and clauses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from optimist.core.errors import UsageError
from optimist.core.expressions.moments import Moment
from optimist.core.local.merge.scope import Sides
from optimist.core.local.merge.stored_source import Source
from optimist.core.predicates import Predicate
from optimist.core.predicates.moments import predicate_at
from optimist.core.requests.merge_clauses import Clause
from optimist.core.schema.types import StructType

__all__ = ["LocalClause", "LocalMergeRequest"]


LocalClause: TypeAlias = "Clause[str | Predicate, Mapping[str, object]]"
"""A clause whose condition and values this process evaluates."""


@dataclass(frozen=True, slots=True)
class LocalMergeRequest:
    """A MERGE without Spark as its caller asks for it.

    Attributes:
        source: The rows that the table's rows are compared with.
        on: Names of columns that must be equal, or SQL text.
        target_alias: The name of the table's rows in expressions.
        source_alias: The name of the source's rows in expressions.
        clauses: The clauses. A row gets the first one for its kind whose condition is true.
        evolves_schema: Whether columns that only the source has become columns of the table.
        moment: When the MERGE began; None leaves defaults such as `now()` to Spark.
    """

    source: Source
    on: str | Sequence[str]
    target_alias: str = "t"
    source_alias: str = "s"
    clauses: tuple[LocalClause, ...] = ()
    evolves_schema: bool = False
    moment: Moment | None = None

    def at_moment(self, moment: Moment, columns: Collection[str]) -> LocalMergeRequest:
        """Return the request with constants for functions such as `current_timestamp()`.

        Args:
            moment: When the statement began.
            columns: The names of the columns of both sides.
        """

        def values(given: Mapping[str, object]) -> Mapping[str, object]:
            if not isinstance(given, Mapping):
                return given  # refused where the values are resolved
            return {
                name: moment.fixed(value, columns) if isinstance(value, str) else value
                for name, value in given.items()
            }

        def condition(given: str | Predicate) -> str | Predicate:
            if isinstance(given, str):
                return moment.fixed(given, columns)
            return predicate_at(moment, given, columns)

        clauses = (clause.mapped(condition, values) for clause in self.clauses)
        on = moment.fixed(self.on, columns) if isinstance(self.on, str) else self.on
        return replace(self, on=on, clauses=tuple(clauses), moment=moment)

    def sides(self, target: StructType, source: StructType, zone: str) -> Sides:
        """Return the columns of both sides, under their aliases.

        Raises:
            UsageError: Both have the same alias (kind `OPTIMIST_INVALID_ARGUMENT`).
        """
        if self.target_alias.lower() == self.source_alias.lower():
            raise UsageError(
                "The table and the source of the MERGE have the same alias. Nothing was written. "
                "Give them different ones.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="source_alias",
            )
        return Sides(self.target_alias, target, self.source_alias, source, zone)
