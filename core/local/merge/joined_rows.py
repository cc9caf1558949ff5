"""Rows of the table joined with a block of the source: which match, and which clauses they get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.merge.clauses import several_matches
from optimist.core.local.merge.join import JoinBranch, where_true
from optimist.core.local.merge.keys import KeyGroups
from optimist.core.local.merge.resolution import LocalResolvedMerge
from optimist.core.local.merge.source_rows import take_rows
from optimist.core.predicates import Predicate

__all__ = ["BlockSearch", "RowFates"]

_Pairs = tuple[np.ndarray, np.ndarray]


class RowFates:
    """What becomes of some rows of the table, as pairs with rows of the source are added.

    Attributes:
        is_matched: Whether each row matches.
        clauses: The number of each row's clause, or -1.
        sources: The row of the block that changes each row, or -1.
    """

    def __init__(self, num_rows: int, *, takes_several: bool) -> None:
        self.is_matched = np.zeros(num_rows, np.bool_)
        self.clauses = np.full(num_rows, -1, np.int32)
        self.sources = np.full(num_rows, -1, np.int64)
        self._takes_several = takes_several

    def add_changes(self, rows: np.ndarray, sources: np.ndarray, clauses: np.ndarray) -> None:
        """Note pairs of which the row of the table gets a clause.

        Raises:
            UsageError: Another row of the source changes the same row, and it matters.
        """
        if not self._takes_several:
            order = np.lexsort((sources, rows))
            same = rows[order][1:] == rows[order][:-1]
            known = self.sources[rows]
            if (same & (np.diff(sources[order]) != 0)).any() or (
                (known >= 0) & (known != sources)
            ).any():
                raise several_matches()
        self.clauses[rows] = clauses
        self.sources[rows] = sources


@dataclass(frozen=True, slots=True)
class BlockSearch:
    """A block of the source that rows of the table are joined with, by several threads at a time.

    Attributes:
        merge: The MERGE.
        rows: The block.
        branches: The branches of ON, each with the block's rows that can match by it.
        is_matched: Whether each row of the block has matched a row of the table so far.
    """

    merge: LocalResolvedMerge
    rows: pa.Table
    branches: Sequence[tuple[JoinBranch, KeyGroups]]
    is_matched: np.ndarray

    @classmethod
    def of(cls, merge: LocalResolvedMerge, rows: pa.Table) -> BlockSearch:
        """Group the rows of a block by their keys.

        Args:
            merge: The MERGE.
            rows: The block.
        """
        whole, branches = rows.combine_chunks(), []
        for branch in merge.branches:
            kept, numbers = branch.able_rows(whole, merge.sides)
            branches.append((branch, KeyGroups.of(kept, numbers, branch.keys)))
        return cls(merge, whole, branches, np.zeros(rows.num_rows, np.bool_))

    def fates(self, rows: pa.Table) -> RowFates:
        """Return what becomes of rows of the table.

        Raises:
            UsageError: Several rows of the source change one of the table, and it matters.
        """
        merge = self.merge
        found = RowFates(rows.num_rows, takes_several=merge.takes_several_matches)
        for branch, groups in self.branches:
            for pairs in self._matching(rows, branch, groups):
                found.is_matched[pairs[0]] = True
                self.is_matched[pairs[1]] = True
                if merge.of_kind("MATCHED"):
                    self._add_changes(found, rows, pairs)
        return found

    def values(self, positions: pa.Array, fates: RowFates) -> tuple[pa.Table, np.ndarray]:
        """Return the values of the source for the rows that they update, and these rows' places.

        Args:
            positions: The positions of the rows of the table.
            fates: What becomes of these rows.
        """
        columns = self.merge.columns_of_source
        numbers = [number for number, names in columns.items() if names]
        places = np.flatnonzero(np.isin(fates.clauses, numbers))
        names = frozenset[str]().union(*columns.values())
        values = take_rows(self.rows, fates.sources[places], names)
        found = positions.take(pa.array(places)), pa.array(fates.clauses[places])
        fields = [pa.field("position", pa.int64()), pa.field("clause", pa.int32()), *values.schema]
        return pa.table([*found, *values.columns], schema=pa.schema(fields)), places

    def _matching(self, rows: pa.Table, branch: JoinBranch, groups: KeyGroups) -> Iterator[_Pairs]:
        """Yield the pairs that match by a branch of ON."""
        is_wanted = None
        if branch.target:
            is_wanted = where_true(
                branch.target, self.merge.sides.rows("MATCHED", target=rows), self.merge.sides.zone
            )
        for target, source in groups.pairs(rows, is_wanted):
            if not branch.others:
                yield target, source
                continue
            mask = where_true(
                branch.others,
                self._seen(rows, (target, source), branch.others),
                self.merge.sides.zone,
            )
            if mask.any():
                yield target[mask], source[mask]

    def _add_changes(self, found: RowFates, rows: pa.Table, pairs: _Pairs) -> None:
        target, source = pairs
        conditions = [
            item.condition for item in self.merge.of_kind("MATCHED") if item.condition is not None
        ]
        numbers = self.merge.clauses_of_rows(
            "MATCHED", lambda: self._seen(rows, pairs, conditions), len(target)
        )
        clauses = pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False)
        changes = clauses >= 0
        found.add_changes(target[changes], source[changes], clauses[changes])

    def _seen(self, rows: pa.Table, pairs: _Pairs, conditions: Sequence[Predicate]) -> pa.Table:
        """Return pairs as conditions see them, with the columns that they name."""
        sides = self.merge.sides
        paths = frozenset[tuple[str, ...]]().union(*(item.columns() for item in conditions))
        own, other = sides.target_names("MATCHED", paths), sides.source_names("MATCHED", paths)
        if not own and not other:  # constants; a column is needed to count the rows
            own = frozenset(rows.column_names[:1])
        target = rows.select(sorted(own)).take(pa.array(pairs[0])) if own else None
        source = take_rows(self.rows, pairs[1], other) if other else None
        return sides.rows("MATCHED", target=target, source=source)
