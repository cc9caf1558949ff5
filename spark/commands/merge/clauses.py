"""The clauses of a MERGE as their caller gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark.sql import Column

from optimist.core.errors import UsageError
from optimist.spark.session.arguments import ExpressionOrColumn

__all__ = ["Action", "Clause", "Kind", "ensure_order"]

Kind: TypeAlias = Literal["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
Action: TypeAlias = Literal["update", "delete", "insert"]


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


_OMITTED: dict[Kind, str] = {
    "MATCHED": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED BY SOURCE": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


def ensure_order(clauses: Sequence[Clause]) -> None:
    """Refuse a MERGE without clauses, and clauses that no row could ever reach.

    Raises:
        UsageError: There is no clause (kind `DELTA_MERGE_MISSING_WHEN`), or one that is not the
            last of its kind has no condition.
    """
    if not clauses:
        raise UsageError(
            "There must be at least one WHEN clause in a MERGE statement. Nothing was written. "
            "Call whenMatchedUpdate, whenNotMatchedInsert or another of its kind before execute.",
            kind="DELTA_MERGE_MISSING_WHEN",
        )
    for kind, error in _OMITTED.items():
        alike = [clause for clause in clauses if clause.kind == kind]
        if any(clause.condition is None for clause in alike[:-1]):
            raise UsageError(
                f"When there are more than one {kind} clauses in a MERGE statement, only the last "
                f"{kind} clause can omit the condition. Nothing was written. Give the others one, "
                "or leave out the clauses after it.",
                kind=error,
            )
