"""`Answer`: the answer of a command, in the one form from which JSON and tables are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a command.

    Attributes:
        facts: Single facts by name: values that JSON has. None means unknown.
        rows: The long parts by name, as Arrow.
        folded: The columns whose long values a terminal shows on several lines. It cuts others.
    """

    facts: Mapping[str, object] = field(default_factory=dict)
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    folded: tuple[str, ...] = ()

    @staticmethod
    def column(**values: pa.Array) -> pa.Table:
        """Return a long part of the given columns."""
        return pa.table(values)
