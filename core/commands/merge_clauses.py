"""The clauses of a MERGE, with Spark and without it: their order, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from optimist.core.commands.row_balance import RowBalance
from optimist.core.errors import UsageError
from optimist.core.requests.merge_clauses import Clause, Kind
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["MergeClauses", "ensure_order", "several_matches"]


class _Resolved(Protocol):
    @property
    def clause(self) -> Clause[Any, Any]: ...

    @property
    def condition(self) -> object: ...

    def shown(self) -> dict[str, str]: ...


_ResolvedT = TypeVar("_ResolvedT", bound=_Resolved)
_OMITTED: dict[Kind, str] = {
    "MATCHED": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED BY SOURCE": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


def ensure_order(clauses: Sequence[Clause[Any, Any]]) -> None:
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


def several_matches() -> UsageError:
    """The error for a row of the table that several rows of the source would change."""
    return UsageError(
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same "
        "target row in the Delta table in possibly conflicting ways. Nothing was written. Leave "
        "out, or combine, the rows of the source that match the same row, or tell them apart in "
        "the condition.",
        kind="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    )


class MergeClauses(Generic[_ResolvedT]):
    """The resolved clauses of a MERGE, and what follows from all of them together."""

    __slots__ = ()

    clauses: tuple[_ResolvedT, ...]

    def of_kind(self, kind: Kind) -> tuple[_ResolvedT, ...]:
        """The clauses for one kind of rows, in their order."""
        return tuple(item for item in self.clauses if item.clause.kind == kind)

    @property
    def only_inserts(self) -> bool:
        """Whether no row that the table has can change."""
        return all(item.clause.kind == "NOT MATCHED" for item in self.clauses)

    @property
    def takes_several_matches(self) -> bool:
        """Whether it does not matter how many rows of the source change a row of the table."""
        matched = self.of_kind("MATCHED")
        return [(item.clause.action, item.condition) for item in matched] == [("delete", None)]

    @property
    def balance(self) -> RowBalance:
        """How many rows it may add, against those in the files that it removes."""
        actions = {item.clause.action for item in self.clauses}
        if "insert" in actions:
            return RowBalance.ANY
        return RowBalance.NO_MORE if "delete" in actions else RowBalance.EQUAL

    def operation(self, on: str) -> Operation:
        """The operation, as the history tells it.

        Args:
            on: The condition by which rows match, as SQL.
        """
        return Operation.merge(
            on,
            matched=[item.shown() for item in self.of_kind("MATCHED")],
            not_matched=[item.shown() for item in self.of_kind("NOT MATCHED")],
            not_matched_by_source=[item.shown() for item in self.of_kind("NOT MATCHED BY SOURCE")],
        )
