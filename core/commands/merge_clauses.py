"""The order in which the clauses of a MERGE may stand, with Spark and without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from optimist.core.errors import UsageError

__all__ = ["Action", "Kind", "ensure_order"]

Kind: TypeAlias = Literal["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
Action: TypeAlias = Literal["update", "delete", "insert"]


class _Clause(Protocol):
    @property
    def kind(self) -> Kind: ...

    @property
    def condition(self) -> object: ...


_OMITTED: dict[Kind, str] = {
    "MATCHED": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED BY SOURCE": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


def ensure_order(clauses: Sequence[_Clause]) -> None:
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
