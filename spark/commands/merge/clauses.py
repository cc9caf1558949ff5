"""The clauses of a MERGE as their caller gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column

from optimist.core.commands.merge_clauses import Action, Kind, ensure_order
from optimist.spark.session.arguments import ExpressionOrColumn

__all__ = ["Action", "Clause", "Kind", "ensure_order"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause.

    Attributes:
        kind: The rows that it is for.
        action: What it does to them.
        condition: Which of them; None for all that no clause of the kind before it has taken.
        assignments: Names of columns to new values; None for a DELETE, and for all columns from
            those of the source that have the same names.
    """

    kind: Kind
    action: Action
    condition: ExpressionOrColumn | None = None
    assignments: Mapping[str, Column | str] | None = None

    @property
    def takes_all_columns(self) -> bool:
        """Whether it is `UPDATE SET *` or `INSERT *`."""
        return self.action != "delete" and self.assignments is None
