"""`RowScan`: the rows of one version of a table, read when they are asked for.

`Snapshot.scan` was there first, and returns the files that may hold the rows of a predicate. The
rows themselves are `DeltaLog.scan` and `Snapshot.scan_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from optimist.core.errors.html_repr import html_page, or_no_html, rows_html
from optimist.core.errors.short_repr import path_in_repr
from optimist.core.imports import import_by_need
from optimist.core.plugins.data_access import DataAccess
from optimist.core.predicates import Predicate
from optimist.core.runtime.budget import short_errors, within_budget
from optimist.core.runtime.clock import Clock
from optimist.core.schema.types import StructType
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.frames import to_pandas, to_polars
from optimist.core.snapshot.local_scan import RowRequest, count_rows, stream_rows
from optimist.core.snapshot.polars_source import lazy_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from optimist.core.snapshot.row_dataset import RowDataset

__all__ = ["RowScan"]

_MOST_COLUMNS = 50


class RowScan:
    """Rows of one version, as an Arrow stream that can be read any number of times.

    Nothing is read before rows are asked for. A few files are then read ahead by threads, in
    bounded memory. A reader that is left half-way leaves no thread and no open file.

    Whatever takes an Arrow stream takes this object: `pl.DataFrame`,
    `duckdb.sql("SELECT … FROM scan")`, `pa.table`, `DeltaLog.append`.

    Attributes:
        version: The version of the table.
        schema: The Arrow schema of the rows.
        is_of_chosen_version: Whether the caller of `DeltaLog.scan` chose the version.
    """

    def __init__(
        self,
        view: FilesView,
        request: RowRequest,
        *,
        access: DataAccess | None,
        clock: Clock,
        budget_s: float,
    ) -> None:
        self.version = view.version
        self.is_of_chosen_version = False
        self.schema: pa.Schema = request.arrow_schema
        self._view = view
        self._request = request
        self._access = access
        self._clock = clock
        self._budget_s = budget_s

    def __repr__(self) -> str:
        path = path_in_repr(self._view.table_path)
        return f"RowScan(table_path={path}, version={self.version})"

    @or_no_html
    def _repr_html_(self) -> str:
        """Return the columns of the rows, none of which is read, for notebooks."""
        limit = self._request.limit
        predicate = self._request.predicate
        facts = {
            "table": self._view.table_path,
            "version": self.version,
            "only where": None if predicate == Predicate.TRUE else str(predicate),
            "at most": None if limit is None else f"{limit:,} rows",
        }
        columns = [(item.name, str(item.type)) for item in self.schema]
        first = columns[:_MOST_COLUMNS]
        table = rows_html(("column", "type"), first, len(columns) - len(first))
        return html_page(type(self).__name__, facts, table)

    def is_of(self, other: FilesView) -> bool:
        """Return whether the rows come from a version of the same table."""
        mine = self._view
        return (mine.table_path, mine.metadata.id) == (other.table_path, other.metadata.id)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches. The log chooses the files now, and opens none.

        Closing the iterator, or dropping it, ends the reading.

        Raises:
            TableError, StorageError: While rows are taken, as `DeltaLog.to_arrow`.
        """
        # The whole stream is one operation: its threads share this budget.
        with within_budget(self._clock, self._budget_s):
            return short_errors(self._stream(self._request), "scan")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a new `pyarrow.RecordBatchReader` of the rows."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table in memory."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a frame of pandas (see `DeltaLog.to_pandas`)."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a frame of Polars."""
        return to_polars(self.to_arrow())

    def to_polars_lazy(self) -> pl.LazyFrame:
        """Return a lazy frame of Polars that reads only what a query of it needs.

        The query's columns are read, files that its filter leaves out are not, and no more files
        are read than a limit takes. Polars calls its interface for that unstable.

        Raises:
            ConfigError: Polars is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
        """
        return lazy_frame(self.schema, self._view.schema, self._narrowed)

    def to_dataset(self, schema: pa.Schema | None = None) -> RowDataset:
        """Return a dataset of pyarrow, to which DuckDB and Polars pass filters and columns.

        Like the lazy frame it reads only the columns that a query uses, and skips files that its
        filter leaves out. It stands for the rows, not for the files: it has no fragments.

        Args:
            schema: Columns of the scan, in other types of Arrow; None for all as they are. A value
                that does not fit its type is an `ArrowInvalid` where it is read.
        """
        by_need = import_by_need("optimist.core.snapshot.row_dataset")  # Arrow's dataset is heavy
        shown, read = self.schema, self._narrowed
        if schema is not None:
            shown, read = schema, partial(self._in_types, schema)
        dataset: RowDataset = by_need.RowDataset(shown, self._view.schema, read)
        return dataset

    def _in_types(
        self, schema: pa.Schema, columns: list[str] | None, predicate: Predicate, limit: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Return rows as `_narrowed` does, in other types."""
        wanted = [item for item in schema if columns is None or item.name in columns]
        target = pa.schema(wanted)
        for batch in self._narrowed(target.names, predicate, limit):
            yield batch.select(target.names).cast(target)

    def _narrowed(
        self, columns: list[str] | None, predicate: Predicate, limit: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of some of the columns for which one more predicate is true."""
        asked = self._request
        wanted = asked.columns
        if columns:
            wanted = StructType(tuple(item for item in wanted if item.name in columns))
        if asked.limit is not None:  # its rows come first, and then the predicate
            limit = asked.limit if limit is None else min(limit, asked.limit)
            predicate = Predicate.TRUE
        narrowed = replace(
            asked, predicate=_both(asked.predicate, predicate), columns=wanted, limit=limit
        )
        with within_budget(self._clock, self._budget_s):
            return self._stream(narrowed)

    def _stream(self, request: RowRequest) -> Iterator[pa.RecordBatch]:
        """Return the requested rows."""
        return stream_rows(self._view, request, access=self._access)

    def _count(self, predicate: Predicate) -> int:
        """Count the rows for which a predicate is true."""
        return count_rows(self._view, predicate, access=self._access)

    def count(self) -> int:
        """Count the rows. Files are read only if the log can't tell."""
        with within_budget(self._clock, self._budget_s):
            found = self._count(self._request.predicate)
        limit = self._request.limit
        return found if limit is None else min(found, limit)

    def __arrow_c_schema__(self) -> Any:
        """Export the schema by Arrow's C data interface."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Export a new stream of the rows by Arrow's C stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def _both(one: Predicate, other: Predicate) -> Predicate:
    if one == Predicate.TRUE:
        return other
    return one if other == Predicate.TRUE else one & other
