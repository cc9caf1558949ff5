"""What is known of a condition on rows before it becomes the condition of a command."""

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
"""Names of the zone in which the engine reads times without one."""


@dataclass(frozen=True, slots=True)
class ConditionReading:
    """What Spark, or the messages of a Connect client, say of a condition.

    Attributes:
        text: SQL, or what comes nearest to it.
        names: The top-level columns that it reads, and perhaps more, in lower case.
        predicate: What it says of every row, in the table's names; parts may be opaque.
        obstacle: What it holds that no command accepts; None if there is nothing.
        analyzed: What Spark made of it, bound to the rows; None in Spark Connect, and where it
            reads what those rows do not show.
    """

    text: str
    names: frozenset[str]
    predicate: Predicate
    obstacle: Obstacle | None
    analyzed: Column | None = None


def opaque_where(predicate: Predicate, test: Callable[[Predicate], bool]) -> Predicate:
    """The predicate, with each conjunct for which the test is true made opaque."""
    parts = [
        Opaque(str(part), part.columns(), deterministic=True) if test(part) else part
        for part in predicate.conjuncts()
    ]
    return reduce(and_, parts) if parts else predicate
