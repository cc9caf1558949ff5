"""Checks of the columns that UPDATE and MERGE assign together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown

__all__ = ["ensure_apart"]


def ensure_apart(paths: Iterable[tuple[str, ...]], *, inserts: bool = False) -> None:
    """Refuse two targets that are the same, or one of which lies within the other.

    Args:
        paths: The targets.
        inserts: Whether new rows are made of them.

    Raises:
        UsageError: They contradict each other (kind `DELTA_CONFLICT_SET_COLUMN`, and
            `DELTA_DUPLICATE_COLUMNS_ON_INSERT` in new rows).
    """
    kind = "DELTA_DUPLICATE_COLUMNS_ON_INSERT" if inserts else "DELTA_CONFLICT_SET_COLUMN"
    for one, other in combinations(sorted(paths, key=len), 2):
        if other[: len(one)] == one:
            names = (".".join(one), ".".join(other))
            raise UsageError(
                f"The assignments to {shown(names[0])} and {shown(names[1])} contradict each "
                "other. Nothing was written. Assign each column or field once.",
                kind=kind,
                column=names[0],
                columns=names,
            )
