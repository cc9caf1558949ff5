"""The reads of `DeltaLog`, which run in this process, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from optimist.core.log.timestamps import Timestamp
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.requests.arguments import several
from optimist.core.runtime.budget import one_operation
from optimist.core.snapshot import Snapshot
from optimist.core.table.table_handle import TableHandle

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from optimist.core.predicates import Predicate
    from optimist.core.snapshot.row_scan import RowScan

__all__ = ["RowReads"]


class RowReads(TableHandle):
    """The methods of `DeltaLog` that read rows, of the newest version unless another is named."""

    @one_operation
    def scan(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        limit: int | None = None,
        in_order: bool = False,
    ) -> RowScan:
        """Return the rows that `to_arrow` reads as an Arrow stream, without reading them yet.

        The version is chosen now. The rows are read in bounded memory, when something takes them,
        such as `pl.DataFrame` or `duckdb.sql("SELECT … FROM scan")`; see `RowScan`.

        Args:
            predicate: As for `to_arrow`.
            columns: As for `to_arrow`.
            version: As for `to_arrow`.
            timestamp: As for `to_arrow`.
            limit: As for `to_arrow`.
            in_order: Whether the rows come in the order of the files, as the log has them. Without
                it, rows of several files may mix.

        Raises:
            OptimistError: As `to_arrow`; errors of data files are raised while they are read.
        """
        snapshot = self._version_to_read(predicate, version, timestamp)
        wanted = None if columns is None else several(columns, "columns")
        found = snapshot.scan_rows(predicate, wanted, limit=limit, in_order=in_order)
        found.is_of_chosen_version = version is not None or timestamp is not None
        return found

    @one_operation
    def to_arrow(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Read the rows of a version for which a predicate is true, in this process.

        Files that can't match, by what the log says, are not read; the rows of the others are
        filtered one by one. Times are read in UTC. The order of the rows is not defined.

        Args:
            predicate: SQL text or a tree; None asks for all rows.
            columns: The columns wanted, in this order; None asks for all. Where rows are tracked
                (`delta.enableRowTracking`), `_metadata.row_id` and
                `_metadata.row_commit_version` may be among them.
            version: A version number, instead of the newest version.
            timestamp: A time, as for `snapshot`, instead of the newest version.
            limit: The largest number of rows to return, whichever come first. No more files are
                read than that takes.

        Raises:
            UsageError: The predicate does not parse, or a part of it can be evaluated only by Spark
                (kind `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: There is no such column.
            TableError: The version is no longer in the log, or its files may be gone.
            ProtocolError: The files need a feature that the reader does not have.
        """
        found = self.scan(
            predicate, columns, version=version, timestamp=timestamp, limit=limit, in_order=True
        )
        return found.to_arrow()

    def head(
        self,
        limit: int = 5,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
    ) -> pa.Table:
        """Read a few rows, to see what the table holds. No more files are read than that takes.

        Args:
            limit: The largest number of rows.
            columns: As for `to_arrow`.
            version: As for `to_arrow`.
            timestamp: As for `to_arrow`.

        Raises:
            OptimistError: As `to_arrow`.
        """
        return self.to_arrow(None, columns, version=version, timestamp=timestamp, limit=limit)

    @one_operation
    def to_pandas(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Read rows as `to_arrow` does, into a frame of pandas.

        Columns of integers that hold a null get pandas' nullable type, such as `Int64`, so that no
        number changes. All else is as pyarrow's `to_pandas` has it.

        Raises:
            OptimistError: As `to_arrow`.
            ConfigError: pandas is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
        """
        found = self.scan(
            predicate, columns, version=version, timestamp=timestamp, limit=limit, in_order=True
        )
        return found.to_pandas()

    @one_operation
    def to_polars(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        limit: int | None = None,
    ) -> pl.DataFrame:
        """Read rows as `to_arrow` does, into a frame of Polars.

        Raises:
            OptimistError: As `to_arrow`.
            ConfigError: Polars is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
        """
        found = self.scan(
            predicate, columns, version=version, timestamp=timestamp, limit=limit, in_order=True
        )
        return found.to_polars()

    @one_operation
    def count(
        self,
        predicate: str | Predicate | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
    ) -> int:
        """Count the matching rows of a version. Files are read only if the log can't tell.

        Without a predicate, and with one on partition columns, no file is read if all of them have
        statistics. Deleted rows are not counted.

        Args:
            predicate: As for `to_arrow`.
            version: As for `to_arrow`.
            timestamp: As for `to_arrow`.

        Raises:
            UsageError, TableError, ProtocolError: As `to_arrow`.
        """
        return self._version_to_read(predicate, version, timestamp).count_rows(predicate)

    @one_operation
    def files(self, predicate: str | Predicate | None = None) -> pa.Table:
        """Return the live files of the newest version, with the columns of `Snapshot.files`.

        Args:
            predicate: Only files that may hold rows for which it is true.

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
        """
        return self.snapshot().scan(predicate).files

    @property
    def metadata(self) -> Metadata:
        """The newest version's schema, partitioning and properties. Each access looks for it."""
        return self.snapshot().metadata

    @property
    def protocol(self) -> Protocol:
        """The newest version's protocol. Each access looks for it."""
        return self.snapshot().protocol

    def _version_to_read(
        self,
        predicate: str | Predicate | None,
        version: int | None,
        timestamp: Timestamp | None,
    ) -> Snapshot:
        """Return the version whose rows that match a predicate will be read."""
        del predicate  # a transaction notes what it reads
        return self.snapshot(version, timestamp, to_read=True)
