"""The rows of a version in this process: what `Snapshot` adds to a view of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from optimist.core.runtime.clock import Clock
from optimist.core.snapshot import by_need
from optimist.core.snapshot.files_view import FilesView

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from optimist.core.predicates import Predicate
    from optimist.core.snapshot.row_scan import RowScan

__all__ = ["VersionRows"]


class VersionRows(FilesView):
    """A view whose rows can be read.

    `scan` and `count` of a view say what the log knows, without reading a row. So the methods that
    read rows have other names: `scan_rows` and `count_rows`.
    """

    _clock: Clock

    def scan_rows(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        in_order: bool = False,
    ) -> RowScan:
        """Return the rows for which a predicate is true, to be read when asked for.

        Args:
            predicate: As for `DeltaLog.to_arrow`.
            columns: As for `DeltaLog.to_arrow`.
            limit: The largest number of rows, whichever come first.
            in_order: Whether the rows come in the order of the files, as the log has them. Without
                it, rows of several files may mix.

        Raises:
            UsageError, SchemaError: As `DeltaLog.to_arrow`, at once.
        """
        if predicate is not None:
            moment = by_need.Moment(self._clock.now_ms(), self._options.session_time_zone)
            predicate = by_need.predicate_at(moment, predicate, self.schema.names)
        return by_need.RowScan(
            self,
            by_need.RowRequest.of(self, predicate, columns, limit=limit, in_order=in_order),
            access=self._store.data_access(self.table_path) if self._store else None,
            clock=self._clock,
            budget_s=self._options.storage_budget_s,
        )

    def count_rows(self, predicate: str | Predicate | None = None) -> int:
        """Count the matching rows (see `DeltaLog.count`)."""
        return self.scan_rows(predicate).count()

    def to_arrow(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
    ) -> pa.Table:
        """Return the matching rows as a table in memory (see `DeltaLog.to_arrow`)."""
        return self.scan_rows(predicate, columns, limit=limit, in_order=True).to_arrow()

    def head(self, limit: int = 5, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a few rows (see `DeltaLog.head`)."""
        return self.to_arrow(None, columns, limit=limit)

    def to_pandas(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return the matching rows as a frame of pandas (see `DeltaLog.to_pandas`)."""
        return self.scan_rows(predicate, columns, limit=limit, in_order=True).to_pandas()

    def to_polars(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
    ) -> pl.DataFrame:
        """Return the matching rows as a frame of Polars (see `DeltaLog.to_polars`)."""
        return self.scan_rows(predicate, columns, limit=limit, in_order=True).to_polars()
