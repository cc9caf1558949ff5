"""The reads of `DeltaLog` that tell what changed between two versions (spec 10.11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from optimist.core.errors.argument_types import flag, optional_whole
from optimist.core.log.timestamps import Timestamp, optional_epoch_ms
from optimist.core.requests.arguments import several
from optimist.core.runtime.budget import one_operation
from optimist.core.table import by_need
from optimist.core.table.table_handle import TableHandle

if TYPE_CHECKING:
    from optimist.core.changes.change_scan import ChangeScan
    from optimist.core.predicates import Predicate

__all__ = ["ChangeReads"]


class ChangeReads(TableHandle):
    """The methods of `DeltaLog` that read a change feed."""

    @one_operation
    def changes(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: Timestamp | None = None,
        ending_timestamp: Timestamp | None = None,
    ) -> pa.Table:
        """Return the rows inserted, updated or deleted in a range of versions (spec 10.11).

        The rows have the table's columns as they are at the end of the run, and then `_change_type`
        (`insert`, `update_preimage`, `update_postimage` or `delete`), `_commit_version` and
        `_commit_timestamp`. The rows come commit by commit; those of one commit in no order.
        `scan_changes` gives the same rows as a stream, in bounded memory.

        Args:
            predicate: Only rows for which it is true; it may name the three columns, too.
            columns: The columns wanted, in this order; None asks for all.
            starting_version: The first version.
            ending_version: The last version; the newest one if no end is given.
            starting_timestamp: Instead of `starting_version`: a time, as for `snapshot`. It means
                the first commit made at that time or later.
            ending_timestamp: Instead of `ending_version`: the last commit made at that time or
                before.

        Raises:
            UsageError: No start, both kinds of start or end, or an end before the start.
            TableError: The run is outside the log, the change data feed
                (`delta.enableChangeDataFeed`) was off in a part of it (kind
                `DELTA_MISSING_CHANGE_DATA`), or a file is gone.
            SchemaError: Columns were dropped, renamed or given other types in the run.
        """
        found = self.scan_changes(
            predicate,
            columns,
            starting_version=starting_version,
            ending_version=ending_version,
            starting_timestamp=starting_timestamp,
            ending_timestamp=ending_timestamp,
            in_order=True,
        )
        return found.to_arrow()

    @one_operation
    def scan_changes(  # noqa: PLR0913 (the bounds of `changes`)
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: Timestamp | None = None,
        ending_timestamp: Timestamp | None = None,
        in_order: bool = False,
    ) -> ChangeScan:
        """Return the rows of `changes` as an Arrow stream, without reading them yet.

        The range is chosen now, and keeps its last version. See `ChangeScan`.

        Args:
            predicate: As for `changes`.
            columns: As for `changes`.
            starting_version: As for `changes`.
            ending_version: As for `changes`.
            starting_timestamp: As for `changes`.
            ending_timestamp: As for `changes`.
            in_order: Whether the rows come commit by commit. Without it, rows of several commits
                may mix.

        Raises:
            OptimistError: As `changes`; errors of data files are raised while they are read.
        """
        predicate = None if predicate is None else by_need.Predicate.of(predicate)
        bounds = by_need.ChangeBounds(
            optional_whole(starting_version, "starting_version"),
            optional_whole(ending_version, "ending_version"),
            optional_epoch_ms(starting_timestamp, "starting_timestamp"),
            optional_epoch_ms(ending_timestamp, "ending_timestamp"),
        )
        wanted = None if columns is None else several(columns, "columns")
        is_in_order = flag(in_order, "in_order")
        feed = by_need.change_feed(self.table, self.snapshot(), bounds)
        return by_need.scan_changes(self.table, feed, predicate, wanted, in_order=is_in_order)
