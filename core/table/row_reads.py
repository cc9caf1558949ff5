"""The reads of `DeltaLog`, which run in this process, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.requests.arguments import several
from optimist.core.runtime.budget import one_operation
from optimist.core.snapshot.local_scan import count_rows, to_arrow
from optimist.core.table.table_handle import TableHandle

__all__ = ["RowReads"]


class RowReads(TableHandle):
    """The methods of `DeltaLog` that read the newest version."""

    @one_operation
    def to_arrow(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
    ) -> pa.Table:
        """Read the rows of the newest version for which a predicate is true, in this process.

        Files that can't match, by what the log says, are not read; the rows of the others are
        filtered one by one. Times are read in UTC. The order of the rows is not defined.

        Args:
            predicate: SQL text or a tree; None asks for all rows.
            columns: The columns wanted, in this order; None asks for all. Where rows are tracked
                (`delta.enableRowTracking`), `_metadata.row_id` and
                `_metadata.row_commit_version` may be among them.
            limit: The largest number of rows to return, whichever come first. No more files are
                read than that takes.

        Raises:
            UsageError: The predicate does not parse, or a part of it can be evaluated only by Spark
                (kind `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: There is no such column.
            ProtocolError: The files need a feature that the reader does not have.
        """
        access = self.table.data_access()
        wanted = None if columns is None else several(columns, "columns")
        return to_arrow(self.snapshot(), predicate, wanted, limit=limit, access=access)

    @one_operation
    def count(self, predicate: str | Predicate | None = None) -> int:
        """Count the matching rows of the newest version. Files are read only if the log can't tell.

        Without a predicate, and with one on partition columns, no file is read if all of them have
        statistics. Deleted rows are not counted.

        Raises:
            UsageError, ProtocolError: As `to_arrow`.
        """
        access = self.table.data_access()
        return count_rows(self.snapshot(), predicate, access=access)

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
