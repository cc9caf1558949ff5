"""The row commands of `DeltaLog`, which run in this process, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from optimist.core.requests.arguments import Rows, arrow_stream, ensure_text, names
from optimist.core.runtime.budget import one_operation
from optimist.core.table import by_need
from optimist.core.table.table_handle import TableHandle

if TYPE_CHECKING:
    from optimist.core.commands.alter.table_changes import TableChanges
    from optimist.core.local.commands import CommandOptions, RowsChanged
    from optimist.core.local.merge.builder import LocalMerge
    from optimist.core.local.merge.request import LocalMergeRequest
    from optimist.core.predicates import Predicate
    from optimist.core.runtime.progress import Progress
    from optimist.core.snapshot.row_scan import RowScan
    from optimist.core.transaction.optimistic import OptimisticTransaction
    from optimist.core.transaction.result import CommitResult, MaybeNone

__all__ = ["RowCommands"]


class RowCommands(TableHandle):
    """The methods of `DeltaLog` that change rows without Spark."""

    @property
    def alter(self) -> TableChanges:
        """Changes of schema, properties, constraints and so on, each a commit of its own."""
        return by_need.TableChanges(self)

    def append(
        self,
        data: Rows,
        *,
        partition_by: Sequence[str] | None = None,
        schema_mode: str | None = None,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        properties: Mapping[str, str | bool | int] | None = None,
    ) -> CommitResult | MaybeNone:
        """Append Arrow rows in one commit. The first append creates the Delta table.

        This is the short form of `write`.

        Args:
            data: The rows, as for `write`.
            partition_by: As for `write`.
            schema_mode: None, or `merge` as for `write`.
            user_metadata: Text for the history.
            txn: As for `write`.
            properties: As for `write`.

        Returns:
            The commit, or None for a replay.

        Raises:
            OptimistError: As `write`; nothing was written.
        """
        return self.write(
            data,
            partition_by=partition_by,
            schema_mode=schema_mode,
            user_metadata=user_metadata,
            txn=txn,
            properties=properties,
        )

    @one_operation
    def write(  # noqa: PLR0913 - one keyword per option of a write
        self,
        data: Rows,
        mode: str = "append",
        *,
        predicate: str | Predicate | None = None,
        partition_by: Sequence[str] | None = None,
        partition_overwrite: str = "static",
        schema_mode: str | None = None,
        target_file_size: int | None = None,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        properties: Mapping[str, str | bool | int] | None = None,
    ) -> CommitResult | MaybeNone:
        """Write Arrow rows in one commit. The first write creates the Delta table.

        Args:
            data: The rows: an Arrow table, or what exports an Arrow stream, such as a frame of
                pandas or Polars or a `pyarrow.RecordBatchReader`. A stream of any length is written
                in bounded memory. Columns are matched by name. Missing ones get their default, are
                computed or numbered, or are null.
            mode: `append`; `overwrite`, which removes the rows that are there; `error` or `ignore`,
                which create a table, and fail or do nothing if there is one.
            predicate: An overwrite removes only the rows for which it is true, as `replaceWhere` on
                Spark; SQL text or a tree, as for `delete`. All new rows must satisfy it.
            partition_by: The partition columns of a new table, or of one whose schema is
                overwritten. On an existing table they must otherwise be the table's own.
            partition_overwrite: `static`, or `dynamic` for an overwrite that removes only the rows
                in the partitions that it writes to. A table without partitions is replaced whole.
            schema_mode: None if the rows must fit the table's columns; `merge` adds new columns,
                and widens types as far as the table allows it; `overwrite` replaces the schema and
                the partitioning together with all rows.
            target_file_size: A file ends with the row group that takes it to this size in bytes;
                None for 1 GiB.
            user_metadata: Text for the history.
            txn: Application id and version. A write whose version is not above the last one
                recorded is a replay, and is skipped. None: as the options say (`write.txnAppId`,
                `write.txnVersion`).
            properties: The table properties of a new table. An existing table must have them.

        Returns:
            The commit, or None for a replay, or if the mode is `ignore` and there is a table.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one replaces;
                nothing was written.
            SchemaError: The data does not fit the table, or breaks a rule of the table or does not
                satisfy the predicate, or the table has other properties; nothing was written.
            UsageError: An argument is unknown, arguments exclude each other, the table exists, or
                only Spark can evaluate an expression (kind `OPTIMIST_NEEDS_SPARK`).
            ArgumentTypeError: The data is no rows of Arrow, or `partition_by` is a text.
        """
        request = by_need.LocalWrite(
            mode,
            predicate,
            names(partition_by, "partition_by"),
            partition_overwrite,
            schema_mode,
            target_file_size,
            user_metadata,
            txn,
            by_need.NewTable(by_need.properties_given(properties), must_fit=True),
        )
        stream = arrow_stream(data, "data")
        begun = self._bound_to(data, self.start_transaction(), begins_there=request.is_overwrite)
        return by_need.write(begun, stream, request)

    def _bound_to(
        self, data: object, txn: OptimisticTransaction, *, begins_there: bool
    ) -> OptimisticTransaction:
        """Return the transaction that writes some rows; those of the table itself bind it.

        The whole table then counts as read. An overwrite or a MERGE by such rows begins at their
        version, or else it would change rows that were committed after it, and that the scan has
        not seen. A version that the caller chose does not count: it is used on purpose.

        Args:
            data: The rows.
            txn: A transaction that has just begun.
            begins_there: Whether it has to begin at the version of the rows.
        """
        if not isinstance(data, by_need.RowScan) or not data.is_of(txn.snapshot):
            return txn
        if not data.is_of_chosen_version:
            self.ensure_sources_fit([data.version])
            if begins_there and data.version < txn.read_version:
                txn = self.start_transaction(self.snapshot(version=data.version))
        txn.read_whole_table()
        return txn

    def delete(
        self,
        predicate: str | Predicate | None = None,
        *,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        progress: Progress | None = None,
        retry: bool | None = None,
    ) -> RowsChanged:
        """Delete the rows for which the predicate is true, or all rows, in one commit.

        By deletion vectors where the table has them (`delta.enableDeletionVectors`); elsewhere the
        other rows of the files are written again. Files are read one by one, in this process.

        Args:
            predicate: SQL text or a tree; None for all rows. A row for which it is null stays.
                Times are read in UTC.
            user_metadata: Text for the history.
            txn: Application id and version of a command that may be repeated, as for `append`.
            progress: Called after each file, see `FileProgress`.
            retry: Whether to run again after a conflict; None leaves that to `conflict.retry`.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is deleted.
            UsageError: The predicate does not parse, or a part of it can be evaluated only by Spark
                (kind `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: There is no such column.
            ProtocolError: The table has a feature under which files can't be rewritten yet.
        """
        options = by_need.CommandOptions(user_metadata, txn, progress, retry)
        return self._run(lambda begun: by_need.delete(begun, predicate, options), options)

    def update(
        self,
        *,
        set: Mapping[str, object],
        predicate: str | Predicate | None = None,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        progress: Progress | None = None,
        retry: bool | None = None,
    ) -> RowsChanged:
        """Set columns to new values in one commit, by the same ways as `delete`.

        Args:
            set: Names of columns or of struct fields (`pos.lat`) to new values: SQL text, which
                sees the row as it was, or another Python value, or a `pyarrow` scalar, or `col`.
            predicate: Which rows, as for `delete`; all rows without one.
            user_metadata: Text for the history.
            txn: Application id and version of a command that may be repeated, as for `append`.
            progress: Called after each file, see `FileProgress`.
            retry: Whether to run again after a conflict, as for `delete`.

        Raises:
            TableNotFoundError: There is no table at the path.
            TableError: The log is damaged.
            ProtocolError: The table needs a feature that this engine can't read.
            DeltaConcurrentModificationException, UsageError, SchemaError: As `delete`; or a new
                value does not fit its column, or only Spark knows it (`OPTIMIST_NEEDS_SPARK`).
        """
        options = by_need.CommandOptions(user_metadata, txn, progress, retry)
        return self._run(lambda begun: by_need.update(begun, set, predicate, options), options)

    def merge(
        self,
        source: Rows,
        predicate: str | Sequence[str],
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> LocalMerge:
        """Build a MERGE of Arrow rows. Add clauses to it, and call `execute`.

        Args:
            source: The rows that the table's are compared with: an Arrow table, or what exports an
                Arrow stream. A long stream is kept on disk. For a `RowScan` of the same table, its
                version must still be the newest when the MERGE commits.
            predicate: When two rows match: names of columns that both have, or SQL text
                (`t.id = s.id AND t.day < 5`). Equalities of columns make it fast.
            target_alias: What expressions call the table's rows.
            source_alias: What they call the source's.

        Raises:
            ArgumentTypeError: The source is no rows of Arrow.
        """
        rows = by_need.source_rows(source, "source")
        if not isinstance(predicate, str):
            predicate = names(predicate, "predicate")
        ensure_text(target_alias, "target_alias")
        ensure_text(source_alias, "source_alias")
        request = by_need.LocalMergeRequest(rows, predicate, target_alias, source_alias)
        own = source if isinstance(source, by_need.RowScan) else None
        return by_need.LocalMerge(request, partial(self._merge_rows, own))

    def _merge_rows(
        self, own: RowScan | None, request: LocalMergeRequest, options: CommandOptions
    ) -> RowsChanged:
        """Run a MERGE, whose source may be a scan of the table; see `merge`."""
        return self._run(lambda begun: by_need.merge(begun, request, options), options, own)

    @one_operation
    def _run(
        self,
        run: Callable[[OptimisticTransaction], RowsChanged],
        options: CommandOptions,
        data: RowScan | None = None,
    ) -> RowsChanged:
        def begin() -> OptimisticTransaction:
            txn = self.start_transaction(self.snapshot())
            return self._bound_to(data, txn, begins_there=True)

        return by_need.run_until_it_lands(begin, run, retry=options.retry)
