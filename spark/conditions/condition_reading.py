"""The reading of a condition on rows, before it becomes the condition of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Literal, TypeAlias

from pyspark.sql import Column

from optimist.core.predicates import Predicate
from optimist.core.predicates.tree import Opaque

__all__ = ["UTC_NAMES", "ConditionReading", "Obstacle", "opaque_where"]

Obstacle: TypeAlias = Literal["non-deterministic", "subquery", "star"]
UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
"""Names of the zone in which the engine reads times that name no zone."""


@dataclass(frozen=True, slots=True)
class ConditionReading:
    """A condition as Spark, or the messages of a Connect client, describe it.

    Attributes:
        text: SQL, or the text nearest to it.
        names: The top-level columns that it reads, and perhaps more, in lower case.
        predicate: The condition on each row, in the table's names; parts may be opaque.
        obstacle: A part that no command accepts, or None.
        analyzed: The column that Spark made of it, bound to the rows. None on Spark Connect, or if
            it reads columns that those rows do not show.
    """

    text: str
    names: frozenset[str]
    predicate: Predicate
    obstacle: Obstacle | None
    analyzed: Column | None = None


def opaque_where(predicate: Predicate, test: Callable[[Predicate], bool]) -> Predicate:
    """Make each conjunct of a predicate opaque for which the test is true."""
    parts = [
        Opaque(str(part), part.columns(), deterministic=True) if test(part) else part
        for part in predicate.conjuncts()
    ]
    return reduce(and_, parts) if parts else predicate
