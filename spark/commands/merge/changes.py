"""What a MERGE changes in the table: one pass that joins its rows with the source (spec 10.15).

The pass keeps on the executors, for each match, where the row stands, the number of the source's
row, the clause and, where changed rows are written, the new values. So it is as long as the
changes, and values are computed once. The driver gets a bit per row of the files that hold any, and
counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from optimist.core.commands.merge_clauses import several_matches
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.touched_files import TouchedFiles
from optimist.spark.commands.checks import violations_raised
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.columns import COPIED
from optimist.spark.commands.merge.outcome import counts_of
from optimist.spark.commands.merge.stages import Stages
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_shape import quoted
from optimist.spark.rows.stored_rows import stored_rows
from optimist.spark.rows.touched_files import (
    Matches,
    distinct_positions,
    matches_of,
)

__all__ = ["MergeChanges", "MergeSearch"]


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """What the pass has found.

    Attributes:
        rows: What `Stages.changes` gave, stored; None where no file had to be looked at.
        touched: The files with rows that get a clause, and which rows these are.
        counts: How many rows change.
    """

    rows: DataFrame | None
    touched: TouchedFiles
    counts: RowCounts


@dataclass(frozen=True, slots=True)
class MergeSearch:
    """Looks for the changes of one MERGE.

    Attributes:
        target: The table.
        stages: The projections.
        with_values: Compute the values after the MERGE, too.
    """

    target: Target
    stages: Stages
    with_values: bool

    @contextmanager
    def run(
        self, candidates: pa.Table, other: DataFrame, num_source_rows: int
    ) -> Iterator[MergeChanges]:
        """Find the changes; their rows are kept until the context ends.

        Args:
            candidates: The files that may hold rows to be changed, as rows of `Snapshot.files`.
            other: The source's rows, numbered.
            num_source_rows: How many these are.

        Raises:
            UsageError: Several rows of the source change one of the table.
        """
        if candidates.num_rows and self._is_worth_narrowing(candidates, num_source_rows):
            candidates = self._narrowed(candidates, other)
        if not candidates.num_rows:
            yield MergeChanges(None, TouchedFiles(candidates, 0, ()), RowCounts())
            return
        own = self._own(candidates, self.stages.names.places, with_all=self.with_values)
        with violations_raised():
            found = stored_rows(
                self.stages.changes(own, other, with_values=self.with_values), at_once=False
            )
        with found as rows:
            yield self._gathered(rows, candidates)

    def _is_worth_narrowing(self, candidates: pa.Table, num_source_rows: int) -> bool:
        """Whether few of the files can match, so that reading keys first spares other columns.

        A row of the source seldom matches rows of more than one file.
        """
        by_source = self.stages.merge.of_kind("NOT MATCHED BY SOURCE")
        is_small = 2 * num_source_rows <= candidates.num_rows
        is_asked_once = self.stages.merge.on.bound is not None
        return self.with_values and not by_source and is_small and not is_asked_once

    def _narrowed(self, candidates: pa.Table, other: DataFrame) -> pa.Table:
        """The files that hold rows which match."""
        places = Places(self.stages.names.path, None)
        own = self._own(candidates, places, with_all=False)
        matching = own.join(other, self.stages.merge.on.column, "left_semi")
        return self._files(candidates, matches_of(matching, places)).files

    def _own(self, files: pa.Table, places: Places, *, with_all: bool) -> DataFrame:
        snapshot, merge = self.target.snapshot, self.stages.merge
        wanted = snapshot.schema.names if with_all else merge.columns_for_search()
        rows = self.target.plane.placed_rows(snapshot, files, places, wanted, with_row_ids=with_all)
        return merge.with_own_columns(rows, self.stages.alias)

    def _gathered(self, rows: DataFrame, candidates: pa.Table) -> MergeChanges:
        merge, names = self.stages.merge, self.stages.names
        clause, is_match = quoted(names.clause), f"{quoted(names.other)} IS NOT NULL"
        sums = {
            str(item.number): f"count_if({clause} = {item.number})"
            for item in merge.clauses
            if item.clause.kind != "NOT MATCHED"
        }
        # A match that no clause takes changes nothing, however many of them a row has.
        is_change = f"{is_match} AND {clause} <> {COPIED}"
        sums["matches"] = f"count_if({is_change})"
        sums["matched"] = distinct_positions(names.position, is_change)
        with violations_raised():
            found = matches_of(rows, names.places, chosen=f"{clause} <> {COPIED}", sums=sums)
        if found.sums["matches"] > found.sums["matched"] and not merge.takes_several_matches:
            raise several_matches()
        touched = self._files(candidates, found)
        return MergeChanges(rows, touched, counts_of(merge, found.sums))

    def _files(self, candidates: pa.Table, found: Matches) -> TouchedFiles:
        plane, snapshot = self.target.plane, self.target.snapshot
        return found.files(candidates, plane.find_paths(snapshot, candidates, found.paths))
