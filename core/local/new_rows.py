"""New rows as a table stores them: in its columns and types, complete, and checked (spec 10.3)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.row_rules import (
    as_stored,
    constraint_violated,
    ensure_rows_can_be_checked,
    ensure_rules_kept,
    values_at,
)
from optimist.core.data.column_shape import arrow_rows
from optimist.core.expressions.moments import Moment
from optimist.core.local.computed_columns import complete_rows
from optimist.core.local.conditions import LocalCondition
from optimist.core.protocol.actions import Metadata
from optimist.core.schema.identity_columns import identity_columns
from optimist.core.schema.types import GENERATION_EXPRESSION, StructType
from optimist.core.snapshot.row_filter import row_mask

__all__ = ["NewRows"]

_COMPLETED = frozenset({GENERATION_EXPRESSION, "CURRENT_DEFAULT"})
"""The keys of columns' metadata whose SQL `complete_rows` evaluates."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """The preparation of one write's rows.

    Attributes:
        metadata: The table's metadata after the write.
        schema: The table's schema after the write.
        given: The columns of the rows.
        condition: The condition that all rows must satisfy; None for none.
        moment: When the write began; None leaves defaults such as `now()` to Spark.
    """

    metadata: Metadata
    schema: StructType
    given: StructType
    condition: LocalCondition | None = None
    moment: Moment | None = None

    def ensure_possible(self) -> None:
        """Refuse a table whose rules only Spark can evaluate.

        Raises:
            UsageError: It has such a rule (kind `OPTIMIST_NEEDS_SPARK`).
        """
        ensure_rows_can_be_checked(self.metadata, self.schema, self.given, evaluated=_COMPLETED)

    @property
    def numbered(self) -> tuple[str, ...]:
        """The identity columns whose numbers the rows get."""
        return tuple(
            column.name
            for column in identity_columns(self.schema)
            if self.given.find(column.name) is None
        )

    def prepared(self, rows: pa.Table, *, num_before: int = 0) -> pa.Table:
        """Return the rows for files.

        Args:
            rows: Some of the rows.
            num_before: The number of rows of the same write before them.

        Raises:
            SchemaError: A value does not fit its column, or a row breaks a rule of the table or
                does not satisfy the condition (kind `DELTA_REPLACE_WHERE_MISMATCH`).
            UsageError: Only Spark can compute a value.
        """
        shaped = arrow_rows(rows, self.schema)
        completed, _ = complete_rows(
            shaped, self.schema, rows.column_names, num_before=num_before, moment=self.moment
        )
        stored = as_stored(completed, self.schema, self.metadata.partition_columns)
        ensure_rules_kept(stored, self.metadata, self.schema)
        if self.condition is not None:
            _ensure_matching(stored, self.condition)
        return stored


def _ensure_matching(rows: pa.Table, condition: LocalCondition) -> None:
    """Refuse rows that do not match: the same write again would not replace them."""
    matches = pc.fill_null(row_mask(condition.predicate, rows, zone=condition.zone), False)
    first = pc.index(matches, False).as_py()
    if first >= 0:
        names = {path[0] for path in condition.predicate.columns()}
        values = values_at(rows, first, names)
        kind = "DELTA_REPLACE_WHERE_MISMATCH"
        raise constraint_violated("predicate", condition.text, values, kind=kind)
