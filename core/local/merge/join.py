"""The condition ON of a MERGE, taken apart: what finds pairs of rows, and what is asked of each.

1. Equalities between a column of each side find the pairs that may match.
2. Other parts are evaluated exactly: on rows of one side before pairs are made, where they name one
   side only, and on the pairs otherwise.
3. Without an equality every row of the table is paired with every row of the source. But an OR
   whose every part has an equality is searched part by part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.merge.keys import ColumnKey, Path, column_key
from optimist.core.local.merge.scope import Sides
from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import find_bare_columns
from optimist.core.predicates.text import quote_path
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    Comparison,
    NullSafeEqual,
    Opaque,
    Or,
)
from optimist.core.requests.arguments import at_least_one, ensure_text
from optimist.core.snapshot.row_filter import row_mask

__all__ = ["JoinBranch", "join_branches", "where_true"]

_MOST_BRANCHES = 16
"""An OR of more parts is evaluated on all pairs, since each branch is a search of its own."""


@dataclass(frozen=True, slots=True)
class JoinBranch:
    """One of the conditions of which ON is an OR. Most MERGEs have one.

    Attributes:
        keys: The columns that must be equal.
        target: What must be true of the table's row alone.
        source: What must be true of the source's row alone, or of no row.
        others: What must be true of both rows.
    """

    keys: tuple[ColumnKey, ...]
    target: tuple[Predicate, ...] = ()
    source: tuple[Predicate, ...] = ()
    others: tuple[Predicate, ...] = ()

    def target_columns(self, sides: Sides) -> frozenset[str]:
        """Return the table's top-level columns that the condition names."""
        found = {key.target[0] for key in self.keys}
        for part in (*self.target, *self.others):
            found |= sides.target_names("MATCHED", part.columns())
        return frozenset(found)

    def able_rows(self, source: pa.Table, sides: Sides) -> tuple[pa.Table, np.ndarray]:
        """Return the rows of the source that can match, and their numbers among the given ones.

        They have the columns that are compared with those of the table.
        """
        numbers = np.arange(source.num_rows)
        paths = frozenset[Path]().union(*(part.columns() for part in self.others))
        names = {key.source[0] for key in self.keys} | sides.source_names("MATCHED", paths)
        compared = source.select(sorted(names))
        if not self.source:
            return compared, numbers
        own = frozenset[Path]().union(*(part.columns() for part in self.source))
        named = source.select(sorted(sides.source_names("MATCHED", own)))
        rows = sides.rows("MATCHED", source=named) if own else _without_columns(source.num_rows)
        mask = where_true(self.source, rows, sides.zone)
        kept = compared.filter(pa.array(mask)) if names else compared
        return kept, numbers[mask]

    def able_targets(self, rows: pa.Table, keys: Sequence[pa.Array], sides: Sides) -> np.ndarray:
        """Return which rows of the table can match: no null is in a key, and their terms hold.

        Args:
            rows: The rows.
            keys: What `ColumnKey.of_target` has given for them, key by key.
            sides: The columns of both sides.
        """
        found = np.ones(rows.num_rows, np.bool_)
        for key, values in zip(self.keys, keys, strict=True):
            if not key.is_null_safe:
                found &= values.is_valid().to_numpy(zero_copy_only=False)
        if self.target:
            found &= where_true(self.target, sides.rows("MATCHED", target=rows), sides.zone)
        return found


def where_true(conditions: Sequence[Predicate], rows: pa.Table, zone: str) -> np.ndarray:
    """Return in which rows all of the conditions are true.

    A condition is evaluated only where those before it are not false.
    """
    mask = row_mask(reduce(and_, conditions), rows, zone=zone, remedy=RUN_WITH_SPARK)
    found: np.ndarray = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return found


def _without_columns(num_rows: int) -> pa.Table:
    """Return rows for conditions that name no column."""
    return pa.table([pa.nulls(num_rows)], names=["none"])


def join_branches(on: str | Sequence[str], sides: Sides) -> tuple[tuple[JoinBranch, ...], str]:
    """Return the branches of a condition, and the condition as SQL.

    Args:
        on: Names of columns that both sides have, or SQL text.
        sides: The columns of both sides.

    Raises:
        UsageError: It does not parse, or only Spark can evaluate a part of it (kind
            `OPTIMIST_NEEDS_SPARK`), or it names no such column.
        SchemaError: It names an unknown column.
    """
    if not isinstance(on, str):
        for name in at_least_one(on, "predicate"):
            ensure_text(name, "predicate")
        aliases = (sides.target_alias, sides.source_alias)
        pairs = [[quote_path((alias, name)) for alias in aliases] for name in on]
        on = " AND ".join(" = ".join(pair) for pair in pairs)
    schema = sides.scopes["MATCHED"].schema
    parts = find_bare_columns(Predicate.parse(on), schema).conjuncts()
    if not _has_key(parts, sides):
        for at, part in enumerate(parts):
            found = [(*parts[:at], *option, *parts[at + 1 :]) for option in _split(part, sides)]
            if found:
                return tuple(_branch(option, sides, asks_pairs=True) for option in found), on
    return (_branch(parts, sides),), on


def _split(part: Predicate, sides: Sides) -> list[tuple[Predicate, ...]]:
    """Return the parts of an OR, each with an equality, or nothing."""
    if not isinstance(part, Or) or len(part.parts) > _MOST_BRANCHES:
        return []
    options = [option.conjuncts() for option in part.parts]
    return options if all(_has_key(option, sides) for option in options) else []


def _has_key(parts: Sequence[Predicate], sides: Sides) -> bool:
    return any(_key_of(part, sides) is not None for part in parts)


def _branch(parts: Sequence[Predicate], sides: Sides, *, asks_pairs: bool = False) -> JoinBranch:
    """Sort the parts of a condition by what they name.

    Args:
        parts: They are joined by AND.
        sides: The columns of both sides.
        asks_pairs: Whether a part that may fail is asked of pairs alone, as in an OR: there, it
            need not be true of the rows of its side.
    """
    keys: list[ColumnKey] = []
    target, source, others = [], [], []
    for part in parts:
        key = _key_of(part, sides)
        if key is not None:
            keys.append(key)
            continue
        resolved = sides.scopes["MATCHED"].predicate(part)
        named = {sides.scopes["MATCHED"].find(path)[0] for path in part.columns()}
        if asks_pairs and _may_fail(part):
            others.append(resolved)
        elif named == {sides.target_alias}:
            target.append(resolved)
        elif sides.target_alias in named:
            others.append(resolved)
        else:
            source.append(resolved)
    return JoinBranch(tuple(keys), tuple(target), tuple(source), tuple(others))


def _may_fail(part: Predicate) -> bool:
    """Check whether a row can make a condition fail: a division does, a comparison does not."""
    return any(isinstance(node, (Opaque, CastComparison)) for node in part.walk())


def _key_of(part: Predicate, sides: Sides) -> ColumnKey | None:
    is_equality = isinstance(part, Comparison) and part.op == "="
    if not is_equality and not isinstance(part, NullSafeEqual):
        return None
    if not isinstance(part, (Comparison, NullSafeEqual)) or not isinstance(part.right, Column):
        return None
    paths = (part.left.path, part.right.path)
    return column_key(paths, sides, is_null_safe=not is_equality, casts_texts=True)
