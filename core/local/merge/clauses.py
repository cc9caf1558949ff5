"""A MERGE without Spark as its caller gives it: source, join and clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from optimist.core.predicates import Predicate
from optimist.core.requests.merge_clauses import Clause

__all__ = ["LocalClause", "LocalMergeRequest"]


LocalClause: TypeAlias = "Clause[str | Predicate, Mapping[str, object]]"
"""A clause of Python values and of SQL that is evaluated here."""


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
