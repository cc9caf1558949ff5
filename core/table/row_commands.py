"""What the handle of a table changes of its rows in this process, without Spark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from optimist.core.budget import one_operation
from optimist.core.commands.arguments import Rows, arrow_table
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.local.commands import CommandOptions, RowsChanged, delete, merge, update
from optimist.core.local.merge.builder import LocalMerge
from optimist.core.local.merge.clauses import LocalMergeRequest
from optimist.core.local.progress import Progress
from optimist.core.predicates import Predicate
from optimist.core.snapshot import Snapshot
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["RowCommands"]


class RowCommands(TableHandle):
    """The commands of the local plane; `DeltaLog` is the one that has them."""

    @abstractmethod
    def _newest_version(self) -> Snapshot:
        """The newest version; there must be one."""

    @one_operation
    def delete(
        self,
        predicate: str | Predicate | None = None,
        *,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        progress: Progress | None = None,
        retry: bool | None = None,
    ) -> RowsChanged:
        """Delete the rows for which the predicate is true, in one commit; all rows without one.

        By deletion vectors where the table has them (`delta.enableDeletionVectors`); elsewhere the
        other rows of the files are written again. Files are read one by one, in this process.

        Args:
            predicate: SQL text or a tree; a row for which it is null stays. Times are read in UTC.
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
        options = CommandOptions(user_metadata, txn, progress, retry)
        return self._run(lambda begun: delete(begun, predicate, options), options)

    @one_operation
    def _update_rows(
        self,
        values: Mapping[str, object],
        predicate: str | Predicate | None,
        options: CommandOptions,
    ) -> RowsChanged:
        """UPDATE; see `DeltaLog.update`."""
        return self._run(lambda begun: update(begun, values, predicate, options), options)

    def merge(
        self,
        source: Rows,
        on: str | Sequence[str],
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> LocalMerge:
        """A MERGE of Arrow rows; add clauses to it, and call `execute`.

        Args:
            source: The rows that the table's are compared with, as `append` takes them.
            on: When two rows match: names of columns that both have, or SQL text, equalities of
                columns joined by AND (`t.id = s.id AND t.day <=> s.day`).
            target_alias: What expressions call the table's rows.
            source_alias: What they call the source's.
        """
        rows = arrow_table(source, "source")
        return LocalMerge(LocalMergeRequest(rows, on, target_alias, source_alias), self._merge_rows)

    @one_operation
    def _merge_rows(self, request: LocalMergeRequest, options: CommandOptions) -> RowsChanged:
        """MERGE; see `merge`."""
        return self._run(lambda begun: merge(begun, request, options), options)

    def _run(
        self, run: Callable[[OptimisticTransaction], RowsChanged], options: CommandOptions
    ) -> RowsChanged:
        return run_until_it_lands(
            lambda: self.start_transaction(self._newest_version()), run, retry=options.retry
        )
