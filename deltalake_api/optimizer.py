"""`TableOptimizer`, the commands that make fewer and larger files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from optimist.core.errors.argument_types import optional_whole
from optimist.core.requests.arguments import names
from optimist.deltalake import metrics
from optimist.deltalake.arguments import HOOKS_FIRST, call_of
from optimist.deltalake.exceptions import errors_translated
from optimist.deltalake.filters import Filters, predicate_of
from optimist.deltalake.handles import Call
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
from optimist.deltalake.writer.properties import WriterProperties

if TYPE_CHECKING:
    from optimist.deltalake.table import DeltaTable

__all__ = ["TableOptimizer"]

_LARGEST = (1 << 63) - 1


class TableOptimizer:
    """The commands of `DeltaTable.optimize`.

    Args:
        table: The table.
    """

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    def __repr__(self) -> str:
        return f"TableOptimizer({self.table!r})"

    def compact(
        self,
        partition_filters: Filters | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | dt.timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Make few files of many small ones, and return metrics.

        Args:
            partition_filters: Which partitions.
            target_size: Bytes of a file; files below it are put together.
            max_concurrent_tasks: Has no effect: files are written one after the other.
            max_spill_size: Has no effect.
            max_temp_directory_size: Has no effect.
            min_commit_interval: Has no effect: all files are one commit, at the end.
            writer_properties: See `WriterProperties`.
            *args: The arguments that follow, by position, as older callers give them.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        del max_concurrent_tasks, max_spill_size, max_temp_directory_size, min_commit_interval
        call = call_of(
            "compact",
            args,
            HOOKS_FIRST,
            writer=writer_properties,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return self._run(call, partition_filters, target_size, ())

    def z_order(
        self,
        columns: Iterable[str],
        partition_filters: Filters | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | dt.timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Arrange all rows by columns, so that queries skip files, and return metrics.

        Args:
            columns: The columns; at least one.
            partition_filters: As for `compact`.
            target_size: As for `compact`.
            max_concurrent_tasks: Has no effect.
            max_spill_size: Has no effect.
            max_temp_directory_size: Has no effect.
            min_commit_interval: Has no effect.
            writer_properties: See `WriterProperties`.
            *args: As for `compact`.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        del max_concurrent_tasks, max_spill_size, max_temp_directory_size, min_commit_interval
        with errors_translated():
            wanted = tuple((name,) for name in names(columns, "columns"))
        if not wanted:
            raise ValueError("z_order needs at least one column.")
        call = call_of(
            "z_order",
            args,
            HOOKS_FIRST,
            writer=writer_properties,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return self._run(call, partition_filters, target_size, wanted)

    def _run(
        self,
        call: Call,
        filters: Filters | None,
        target_size: int | None,
        columns: tuple[tuple[str, ...], ...],
    ) -> dict[str, Any]:
        call.ensure_no_app_txn("optimize")
        with errors_translated():
            target_size = optional_whole(target_size, "target_size", least=1)
            if target_size is not None and target_size > _LARGEST:
                raise ValueError(f"target_size is {target_size}, and must be at most {_LARGEST}.")
            sizes = {"optimize_min_file_size": target_size, "optimize_max_file_size": target_size}
            log = call.handle(self.table._log, **({} if target_size is None else sizes))
            predicate = predicate_of(filters, log.snapshot().schema)
            done = log.optimize(predicate, z_order_by=columns)
        self.table._catch_up()
        return metrics.optimized(done)
