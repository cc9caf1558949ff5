"""A MERGE with resolved expressions, and what follows from its clauses.

Each plane has its own types of conditions and assignments. Which clause comes first, what the
history says and how rows are counted does not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from optimist.core.commands.row_balance import RowBalance
from optimist.core.commands.row_counts import RowCounts
from optimist.core.requests.merge_clauses import Action, Kind
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["JoinKey", "ResolvedClause", "ResolvedMerge"]

_Expression = TypeVar("_Expression")
_Condition = TypeVar("_Condition")
_Assignments = TypeVar("_Assignments")


@dataclass(frozen=True, slots=True)
class JoinKey(Generic[_Expression]):
    """Two expressions that must be equal.

    Attributes:
        target: The expression over the table's row.
        source: The expression over the source's row.
        is_null_safe: Whether null equals null, as in `<=>`.
    """

    target: _Expression
    source: _Expression
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedClause(Generic[_Condition, _Assignments]):
    """One clause of a MERGE.

    Attributes:
        number: Its index among all clauses.
        kind: The rows that it is for.
        action: What it does to them.
        condition: Its condition; None if it has none.
        condition_text: The condition as SQL, for the history.
        assignments: What it assigns; None for a DELETE, and for an INSERT of no column.
    """

    number: int
    kind: Kind
    action: Action
    condition: _Condition | None
    condition_text: str | None
    assignments: _Assignments | None

    def for_history(self) -> dict[str, str]:
        """Return the clause as the history shows it."""
        predicate = {} if self.condition_text is None else {"predicate": self.condition_text}
        return {**predicate, "actionType": self.action}


@dataclass(frozen=True, slots=True)
class ResolvedMerge(Generic[_Condition, _Assignments]):
    """The resolved clauses of one MERGE.

    Attributes:
        on: The condition by which rows match, as SQL.
        clauses: The clauses in their order.
    """

    on: str
    clauses: tuple[ResolvedClause[_Condition, _Assignments], ...]

    def of_kind(self, kind: Kind) -> tuple[ResolvedClause[_Condition, _Assignments], ...]:
        """Return the clauses for one kind of rows, in their order."""
        return tuple(item for item in self.clauses if item.kind == kind)

    def numbers_of(self, action: Action, kind: Kind | None = None) -> list[int]:
        """Return the numbers of the clauses with an action, of all kinds or of one."""
        return [
            item.number
            for item in self.clauses
            if item.action == action and kind in (None, item.kind)
        ]

    @property
    def only_inserts(self) -> bool:
        """Whether rows that the table has stay as they are."""
        return all(item.kind == "NOT MATCHED" for item in self.clauses)

    @property
    def has_updates(self) -> bool:
        """Whether rows of the table can get other values."""
        return bool(self.numbers_of("update"))

    @property
    def has_inserts(self) -> bool:
        """Whether source rows without a match can be added."""
        return bool(self.of_kind("NOT MATCHED"))

    @property
    def searches_all_rows(self) -> bool:
        """Whether rows that match no source row can change, so that every file is searched."""
        return bool(self.of_kind("NOT MATCHED BY SOURCE"))

    @property
    def takes_several_matches(self) -> bool:
        """Whether several source rows can match one row of the table without an error.

        They can if the only clause for matches deletes every one.
        """
        matched = self.of_kind("MATCHED")
        return [(item.action, item.condition) for item in matched] == [("delete", None)]

    @property
    def balance(self) -> RowBalance:
        """How many rows the MERGE can add, compared with those in the files that it removes."""
        if self.numbers_of("insert"):
            return RowBalance.ANY
        return RowBalance.NO_MORE if self.numbers_of("delete") else RowBalance.EQUAL

    def operation(self) -> Operation:
        """Return the operation for the history."""
        return Operation.merge(
            self.on,
            matched=[item.for_history() for item in self.of_kind("MATCHED")],
            not_matched=[item.for_history() for item in self.of_kind("NOT MATCHED")],
            not_matched_by_source=[
                item.for_history() for item in self.of_kind("NOT MATCHED BY SOURCE")
            ],
        )

    def counts(self, num_rows: Mapping[int, int]) -> RowCounts:
        """Count changed rows by the action of their clause, without copied and inserted rows.

        Args:
            num_rows: How many rows got each clause, by its number; no entry means none.
        """

        def total(kind: Kind, action: Action) -> int:
            return sum(num_rows.get(number, 0) for number in self.numbers_of(action, kind))

        return RowCounts(
            updated=total("MATCHED", "update"),
            updated_by_source=total("NOT MATCHED BY SOURCE", "update"),
            deleted=total("MATCHED", "delete"),
            deleted_by_source=total("NOT MATCHED BY SOURCE", "delete"),
        )
