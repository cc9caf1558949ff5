"""A MERGE without Spark as its caller gives it: source, join and clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from optimist.core.commands.merge_clauses import Action, Kind
from optimist.core.predicates import Predicate

__all__ = ["LocalClause", "LocalMergeRequest"]


@dataclass(frozen=True, slots=True)
class LocalClause:
    """One clause.

    Attributes:
        kind: The rows that it is for.
        action: What it does to them.
        condition: Which of them; None for all that no clause of the kind before it has taken.
        values: Names of columns to new values; None for a DELETE, and for all columns from those of
            the source that have the same names.
    """

    kind: Kind
    action: Action
    condition: str | Predicate | None = None
    values: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class LocalMergeRequest:
    """A MERGE as its caller asks for it.

    Attributes:
        source: The rows that the table's are compared with.
        on: Names of columns that must be equal, or SQL text.
        target_alias: What expressions call the table's rows.
        source_alias: What they call the source's.
        clauses: What is done; of those for a row, the first whose condition is true counts.
    """

    source: pa.Table
    on: str | Sequence[str]
    target_alias: str = "t"
    source_alias: str = "s"
    clauses: tuple[LocalClause, ...] = ()
