"""The clauses of a MERGE, whoever asks for it: a builder, SQL text or a plan of Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

__all__ = ["Action", "Clause", "Kind"]

Kind: TypeAlias = Literal["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
Action: TypeAlias = Literal["update", "delete", "insert"]
_Condition = TypeVar("_Condition")
_Values = TypeVar("_Values")
_OtherCondition = TypeVar("_OtherCondition")
_OtherValues = TypeVar("_OtherValues")


@dataclass(frozen=True, slots=True)
class Clause(Generic[_Condition, _Values]):
    """One WHEN clause.

    Attributes:
        kind: The rows that it is for.
        action: What it does to them.
        condition: Which of them; None for all that no clause of the kind before it has taken.
        values: Columns with their new values; None for a DELETE, and for all columns from those of
            the source that have the same names.
    """

    kind: Kind
    action: Action
    condition: _Condition | None = None
    values: _Values | None = None

    @property
    def takes_all_columns(self) -> bool:
        """Whether it is `UPDATE SET *` or `INSERT *`."""
        return self.action != "delete" and self.values is None

    def mapped(
        self,
        condition: Callable[[_Condition], _OtherCondition],
        values: Callable[[_Values], _OtherValues],
    ) -> Clause[_OtherCondition, _OtherValues]:
        """Return the clause with its condition and its values translated."""
        return Clause(
            self.kind,
            self.action,
            None if self.condition is None else condition(self.condition),
            None if self.values is None else values(self.values),
        )
