"""`DeltaMergeBuilder`: names and signatures of `delta.tables`, to the letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from optimist.core.requests.merge_clauses import Action, Clause, Kind
from optimist.spark.commands.merge.request import MergeClause, MergeRequest
from optimist.spark.session.arguments import (
    ExpressionOrColumn,
    ensure_assignments,
    ensure_condition,
)

__all__ = ["DeltaMergeBuilder"]


class DeltaMergeBuilder:
    """A MERGE that is being put together; get one with `DeltaTable.merge`.

    Each call returns a new builder with one more clause; a MERGE can have any number. A row gets
    the first clause of its kind whose condition is true. Only the last clause of a kind can have no
    condition.

    Conditions and values of `whenMatched…` see both rows, those of `whenNotMatched…` the source's
    row, and those of `whenNotMatchedBySource…` the table's row.
    """

    def __init__(self, request: MergeRequest, run: Callable[[MergeRequest], DataFrame]) -> None:
        self._request = request
        self._run = run

    def whenMatchedUpdate(
        self,
        condition: ExpressionOrColumn | None = None,
        set: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> DeltaMergeBuilder:
        """Set columns, or fields within structs, of rows of the table that match.

        Raises:
            UsageError: `set` is None.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        values = ensure_assignments(set, "'set' in whenMatchedUpdate")
        return self._with("MATCHED", condition, values)

    def whenMatchedUpdateAll(
        self, condition: ExpressionOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Set all columns of rows that match to the source's columns of the same names."""
        return self._with("MATCHED", condition, None)

    def whenMatchedDelete(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Delete rows of the table that match."""
        ensure_condition(condition)
        return self._and(Clause("MATCHED", "delete", condition))

    def whenNotMatchedInsert(
        self,
        condition: ExpressionOrColumn | None = None,
        values: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> DeltaMergeBuilder:
        """Insert a row for each row of the source that matches none of the table.

        Columns that are not named get their defaults, or are computed, or are null.

        Raises:
            UsageError: `values` is None.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        given = ensure_assignments(values, "'values' in whenNotMatchedInsert")
        return self._with("NOT MATCHED", condition, given)

    def whenNotMatchedInsertAll(
        self, condition: ExpressionOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Insert the rows of the source that match none of the table, column by column."""
        return self._with("NOT MATCHED", condition, None)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: ExpressionOrColumn | None = None,
        set: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> DeltaMergeBuilder:
        """Set columns, or fields within structs, of rows of the table that match none.

        Raises:
            UsageError: `set` is None.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        values = ensure_assignments(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with("NOT MATCHED BY SOURCE", condition, values)

    def whenNotMatchedBySourceDelete(
        self, condition: ExpressionOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Delete rows of the table that match no row of the source."""
        ensure_condition(condition)
        return self._and(Clause("NOT MATCHED BY SOURCE", "delete", condition))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add columns, and fields of structs, that only the source has to the table."""
        return DeltaMergeBuilder(replace(self._request, evolves_schema=True), self._run)

    def execute(self) -> DataFrame:
        """Run the MERGE in one transaction.

        Returns:
            One row: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and
            `num_inserted_rows`.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                was written.
            ProtocolError: The table has a feature under which files can't be rewritten yet.
            SchemaError: A column does not exist, or a row violates a constraint.
            UsageError: Several rows of the source would change one of the table (kind
                `DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE`); the clauses stand in an
                impossible order; or a condition is not deterministic, or on Spark Connect a column
                with a subquery; or ON holds one beside a clause for NOT MATCHED BY SOURCE.
        """
        return self._run(self._request)

    def _with(
        self,
        kind: Kind,
        condition: ExpressionOrColumn | None,
        values: Mapping[str, ExpressionOrColumn] | None,
    ) -> DeltaMergeBuilder:
        ensure_condition(condition)
        action: Action = "insert" if kind == "NOT MATCHED" else "update"
        return self._and(Clause(kind, action, condition, values))

    def _and(self, clause: MergeClause) -> DeltaMergeBuilder:
        request = replace(self._request, clauses=(*self._request.clauses, clause))
        return DeltaMergeBuilder(request, self._run)
