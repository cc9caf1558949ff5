"""The request for a MERGE on Spark, from a builder, a plan of Spark or text on Connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from optimist.core.requests.merge_clauses import Clause, Kind
from optimist.spark.session.arguments import ExpressionOrColumn

__all__ = ["MergeClause", "MergeRequest"]

MergeClause: TypeAlias = Clause[ExpressionOrColumn, Mapping[str, ExpressionOrColumn]]
"""A clause with the new values, as columns of Spark or SQL, by the columns that get them."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A MERGE on Spark as its caller asks for it.

    Attributes:
        source: The rows that the table's rows are compared with.
        condition: When a row of the table and one of the source match.
        clauses: The clauses. A row gets the first one for its kind whose condition is true.
        evolves_schema: Whether columns that only the source has become columns of the table.
        target_attributes: The columns of the table to which Spark has bound the expressions, a
            Scala `Seq`. None where the expressions name columns.
    """

    source: DataFrame
    condition: ExpressionOrColumn
    clauses: tuple[MergeClause, ...] = ()
    evolves_schema: bool = False
    target_attributes: Any = None

    @property
    def conditions(self) -> tuple[ExpressionOrColumn, ...]:
        """The conditions of ON and of the clauses."""
        given = (clause.condition for clause in self.clauses)
        return (self.condition, *(item for item in given if item is not None))

    @property
    def expressions(self) -> tuple[ExpressionOrColumn, ...]:
        """The conditions and the new values."""
        values = (clause.values or {} for clause in self.clauses)
        return (*self.conditions, *(item for given in values for item in given.values()))

    def expressions_changed(
        self,
        change: Callable[[ExpressionOrColumn, Kind], ExpressionOrColumn],
        target: Callable[[str], str],
    ) -> MergeRequest:
        """Return the same MERGE with all of its expressions changed.

        Args:
            change: Changes an expression. It gets the kind of clause, which decides the rows that
                the expression sees. ON sees the same rows as clauses for matches.
            target: Changes the name of the column or field that gets a value.
        """

        def changed_clause(clause: MergeClause) -> MergeClause:
            kind = clause.kind
            return clause.mapped(
                lambda condition: change(condition, kind),
                lambda values: {
                    target(name): change(value, kind) for name, value in values.items()
                },
            )

        clauses = tuple(map(changed_clause, self.clauses))
        return replace(self, condition=change(self.condition, "MATCHED"), clauses=clauses)
