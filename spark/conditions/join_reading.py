"""What is known of a condition that joins a table with other rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column

from optimist.core.commands.merge.resolved import JoinKey
from optimist.core.predicates import Predicate

__all__ = ["JoinReading"]


@dataclass(frozen=True, slots=True)
class JoinReading:
    """What is understood of a condition; the rest can be true for any row.

    Attributes:
        target: What it says of the table's rows alone.
        keys: The equalities. The source's side is bound to the source's rows, and its values
            compare as those of the table's side do.
        source: What it says of the source's rows alone, bound to them; None for nothing. Spark need
            not evaluate a key where this is not true, so nobody else may.
    """

    target: Predicate = Predicate.TRUE
    keys: tuple[JoinKey[Column], ...] = ()
    source: Column | None = None
