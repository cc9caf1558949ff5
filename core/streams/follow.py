"""`follow`: read new rows of a table, commit by commit, without Spark (spec 11.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from optimist.core.data.parquet.parquet_reader import RowLayout
from optimist.core.errors import UsageError
from optimist.core.errors.html_repr import field_html
from optimist.core.errors.short_repr import short_repr
from optimist.core.plugins.data_access import DataAccess
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.local_scan import read_rows
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.unblocked import Allowed

__all__ = ["FollowedCommit", "follow"]


@dataclass(frozen=True, slots=True)
class FollowedCommit:
    """The rows that one commit added, or the whole table if a follower begins with it.

    Attributes:
        version: The version of the commit.
        position: The position after this commit, as text to store. `DeltaLog.follow(position=...)`
            continues from it.
        num_files: The number of files that have the rows.
    """

    version: int
    position: str
    num_files: int
    _views: tuple[FilesView, ...] = field(repr=False)
    _access: DataAccess | None = field(repr=False)

    __repr__ = short_repr
    _repr_html_ = field_html

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch.

        Raises:
            TableError: A file is gone or damaged.
        """
        for view in self._views:
            yield from read_rows(view, view.schema, access=self._access)

    def to_arrow(self) -> pa.Table:
        """Read the rows into one table.

        Raises:
            TableError: A file is gone or damaged.
        """
        return pa.Table.from_batches(
            self.batches(), schema=RowLayout(self._views[0].schema).arrow_schema
        )


def follow(
    planner: StreamPlanner, position: str | None, wait_s: float | None, allowed: Allowed
) -> Iterator[FollowedCommit]:
    """Yield the commits after a position (see `DeltaLog.follow`)."""
    if wait_s is not None and not 0 < wait_s < math.inf:
        raise UsageError(
            f"The argument wait_s must be a number of seconds above 0, and is {wait_s}: each look "
            "costs a listing. Nothing was read. Leave it out to end when there is nothing new.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="wait_s",
        )
    table = planner.table
    at = None if position is None else StreamOffset.from_json(position)
    planner.begin_following(at, allowed)
    while True:
        before = at
        for end, views in planner.commits_after(at):
            count, access = sum(view.num_files for view in views), table.data_access()
            yield FollowedCommit(end.version - 1, end.to_json(), count, views, access)
            at = end
        if at != before:
            continue
        if wait_s is None:
            return
        table.clock.sleep(wait_s)
