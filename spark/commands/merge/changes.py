"""The pass that finds what a MERGE changes: it joins the table and the source (spec 10.15).

For each match the pass stores on the executors where the row stands, the number of the source's
row, its clause and, where changed rows are written, its new values. So the stored rows are as many
as the changes, and values are computed once. The driver gets a bit per row of the files that hold
any, and counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from optimist.core.commands.merge.clauses import several_matches
from optimist.core.commands.merge.run import RowsToMerge
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.touched_files import TouchedFiles
from optimist.spark.commands.checks import violations_raised
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.columns import COPIED
from optimist.spark.commands.merge.resolution import SparkResolvedMerge
from optimist.spark.commands.merge.stages import Stages
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_shape import quoted
from optimist.spark.rows.stored_rows import stored_rows
from optimist.spark.rows.touched_files import (
    Matches,
    distinct_positions,
    matches_of,
)

__all__ = ["MergeSearch", "SparkRowsToMerge"]


@dataclass(frozen=True, slots=True)
class SparkRowsToMerge(RowsToMerge):
    """What the pass has found.

    Attributes:
        changes: What `Stages.changes` returned, stored; None where no file was searched.
        unmatched: The rows of the source that match no row of the table; None if no row is added.
    """

    changes: DataFrame | None
    unmatched: DataFrame | None


@dataclass(frozen=True, slots=True)
class MergeSearch:
    """Finds the changes of one MERGE.

    Attributes:
        target: The table.
        stages: The projections.
        with_values: Whether to compute the values after the MERGE, too.
    """

    target: Target
    stages: Stages
    with_values: bool

    @contextmanager
    def run(
        self, candidates: pa.Table, source: DataFrame, num_source_rows: int
    ) -> Iterator[SparkRowsToMerge]:
        """Find the changes, and store their rows until the context ends.

        Args:
            candidates: The files that may hold rows to be changed, as rows of `Snapshot.files`.
            source: The source's rows with their numbers.
            num_source_rows: How many rows the source has.

        Raises:
            UsageError: Several rows of the source change one of the table.
        """
        if candidates.num_rows and self._is_worth_narrowing(candidates, num_source_rows):
            candidates = self._narrowed(candidates, source)
        if not candidates.num_rows:
            yield self._found(TouchedFiles(candidates, 0, ()), RowCounts(), None, source)
            return
        target = self._target_rows(candidates, self.stages.names.places, with_all=self.with_values)
        with violations_raised():
            stored = stored_rows(
                self.stages.changes(target, source, with_values=self.with_values), at_once=False
            )
        with stored as changes:
            touched, counts = self._gathered(changes, candidates)
            yield self._found(touched, counts, changes, source)

    def _found(
        self, touched: TouchedFiles, counts: RowCounts, changes: DataFrame | None, source: DataFrame
    ) -> SparkRowsToMerge:
        unmatched = None
        if self._merge.has_inserts:
            unmatched = source if changes is None else self.stages.unmatched(source, changes)
        needed = None if self._merge.needs_unchanged_rows else touched
        return SparkRowsToMerge(touched, counts, needed, changes, unmatched)

    @property
    def _merge(self) -> SparkResolvedMerge:
        return self.stages.merge

    def _is_worth_narrowing(self, candidates: pa.Table, num_source_rows: int) -> bool:
        """Check whether few files can match, so that reading the keys first saves time.

        A row of the source seldom matches rows of more than one file.
        """
        merge = self._merge
        is_small = 2 * num_source_rows <= candidates.num_rows
        is_asked_once = merge.join.is_asked_once
        return self.with_values and not merge.searches_all_rows and is_small and not is_asked_once

    def _narrowed(self, candidates: pa.Table, source: DataFrame) -> pa.Table:
        """Return the files that hold rows which match."""
        places = Places(self.stages.names.path, None)
        target = self._target_rows(candidates, places, with_all=False)
        matching = target.join(source, self._merge.join.column, "left_semi")
        return self._files(candidates, matches_of(matching, places)).files

    def _target_rows(self, files: pa.Table, places: Places, *, with_all: bool) -> DataFrame:
        snapshot, merge = self.target.snapshot, self._merge
        wanted = snapshot.schema.names if with_all else merge.columns_for_search()
        rows = self.target.plane.placed_rows(snapshot, files, places, wanted, with_row_ids=with_all)
        return merge.with_target_columns(rows, self.stages.alias)

    def _gathered(self, rows: DataFrame, candidates: pa.Table) -> tuple[TouchedFiles, RowCounts]:
        """Return where the changed rows stand, and how many there are."""
        merge, names = self._merge, self.stages.names
        clause, is_match = quoted(names.clause), f"{quoted(names.source)} IS NOT NULL"
        clauses = [item.number for item in merge.clauses if item.kind != "NOT MATCHED"]
        sums = {str(number): f"count_if({clause} = {number})" for number in clauses}
        # A match without a clause changes nothing, so a row can have many of them.
        is_change = f"{is_match} AND {clause} <> {COPIED}"
        sums["matches"] = f"count_if({is_change})"
        sums["matched"] = distinct_positions(names.position, is_change)
        with violations_raised():
            found = matches_of(rows, names.places, chosen=f"{clause} <> {COPIED}", sums=sums)
        if found.sums["matches"] > found.sums["matched"] and not merge.takes_several_matches:
            raise several_matches()
        num_rows = {number: found.sums[str(number)] for number in clauses}
        if merge.takes_several_matches:  # a row that matches several times is deleted once
            num_rows |= dict.fromkeys(merge.numbers_of("delete", "MATCHED"), found.sums["matched"])
        return self._files(candidates, found), merge.counts(num_rows)

    def _files(self, candidates: pa.Table, found: Matches) -> TouchedFiles:
        plane, snapshot = self.target.plane, self.target.snapshot
        return found.files(candidates, plane.find_paths(snapshot, candidates, found.paths))
