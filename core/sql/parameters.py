"""Values for the parameters of a statement: `:x` by name, `?` by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Parameters"]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values of a statement's markers, each as the SQL text of a constant.

    Attributes:
        named: By name, for `:x`.
        positional: In the order of the `?` in the statement.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    positional: Sequence[str] = ()

    def sql_of(self, marker: str, place: int) -> str | None:
        """Return the SQL text that a marker stands for, or None if it has no value.

        Args:
            marker: The marker as it is written.
            place: How many `?` stand before it.
        """
        if marker == "?":
            return self.positional[place] if place < len(self.positional) else None
        return self.named.get(marker[1:])
