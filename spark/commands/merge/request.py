"""A MERGE on Spark as its caller asks for it: a builder, a plan of Spark, or text on Connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from optimist.core.requests.merge_clauses import Clause, Kind
from optimist.spark.session.arguments import ExpressionOrColumn

__all__ = ["MergeClause", "MergeRequest"]

MergeClause: TypeAlias = Clause[ExpressionOrColumn, Mapping[str, ExpressionOrColumn]]
"""A clause whose values are columns of Spark or SQL, by the names of the columns that get them."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A MERGE as its caller asks for it.

    Attributes:
        source: The rows that the table's are compared with.
        condition: When a row of the table and one of the source match.
        clauses: What is done; of those for a row, the first whose condition is true counts.
        evolves_schema: Columns that only the source has become columns of the table.
        own_attributes: The columns of the table that expressions are bound to, as far as Spark has
            resolved them: a Scala `Seq`. None where they name columns.
    """

    source: DataFrame
    condition: ExpressionOrColumn
    clauses: tuple[MergeClause, ...] = ()
    evolves_schema: bool = False
    own_attributes: Any = None

    @property
    def conditions(self) -> tuple[ExpressionOrColumn, ...]:
        """The conditions of ON and of the clauses."""
        given = (clause.condition for clause in self.clauses)
        return (self.condition, *(item for item in given if item is not None))

    def expressions_changed(
        self,
        change: Callable[[ExpressionOrColumn, Kind], ExpressionOrColumn],
        target: Callable[[str], str],
    ) -> MergeRequest:
        """The same MERGE with all of its expressions changed.

        Args:
            change: Changes an expression, by the rows that it sees: those of a kind of clauses. The
                condition of the MERGE sees the same rows as clauses for matches.
            target: Changes the name of what gets a value.
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
