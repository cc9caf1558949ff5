"""Conditions at one moment: `current_timestamp()` and its like become constants."""

from __future__ import annotations

from collections.abc import Collection

from optimist.core.expressions.moments import Moment
from optimist.core.predicates.resolution import map_leaves
from optimist.core.predicates.tree import Opaque, Predicate

__all__ = ["predicate_at"]


def predicate_at(
    moment: Moment | None, given: str | Predicate, columns: Collection[str]
) -> Predicate:
    """Return a caller's condition with constants for the functions of the moment.

    Args:
        moment: When the statement began; None keeps the functions as they are.
        given: SQL text or a tree.
        columns: The names of the columns.

    Raises:
        UsageError, ArgumentTypeError: As `Predicate.of`.
    """
    if moment is None:
        return Predicate.of(given)
    if isinstance(given, str):
        return Predicate.parse(moment.fixed(given, columns))
    return map_leaves(Predicate.of(given), lambda leaf: _leaf_at(moment, leaf, columns))


def _leaf_at(moment: Moment, leaf: Predicate, columns: Collection[str]) -> Predicate:
    if not isinstance(leaf, Opaque) or not leaf.is_own_text:
        return leaf
    fixed = moment.fixed(leaf.sql, columns)
    return leaf if fixed == leaf.sql else Predicate.parse(fixed)
