"""What a write of rows commits, with Spark and without it (spec 8.1, 8.3, 10.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optimist.core.commands.removed_files import NOT_REMOVED, RemovedFiles
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.log.many_files import ManyFiles
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Action
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = [
    "WriteOutcome",
    "ensure_may_replace",
    "ensure_mode_fits",
    "operation_mode",
    "shown_flags",
]


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """The files that a write adds and removes.

    Attributes:
        written: The files with the new rows.
        removed: The files that are removed whole.
        deletion: The deletion of the rows that a condition replaces; None without a condition.
    """

    written: WrittenFiles
    removed: RemovedFiles = NOT_REMOVED
    deletion: Rewrite | None = None

    @property
    def _kept(self) -> WrittenFiles:
        return self.deletion.written if self.deletion else WrittenFiles()

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """Return the actions to commit."""
        if self.deletion is not None:
            return (*self.deletion.actions(now_ms), *self.written.actions)
        return (*self.removed.actions(now_ms), *self.written.adds)

    def changes(self, now_ms: int) -> tuple[tuple[Action, ...], ManyFiles | None]:
        """Return `actions`, but with the removed files as columns if there are many."""
        if self.deletion is not None:
            actions, files = self.deletion.changes(now_ms)
            return (*actions, *self.written.actions), files
        removes, files = self.removed.removes(now_ms)
        return (*removes, *self.written.adds), files

    def metrics(self, *, is_overwrite: bool) -> dict[str, object]:
        """Return the metrics for the history."""
        kept = self._kept
        metrics: dict[str, object] = {
            "numFiles": len(self.written.adds) + len(kept.adds),
            "numOutputRows": self.written.num_rows + kept.num_rows,
            "numOutputBytes": self.written.size_bytes + kept.size_bytes,
        }
        if is_overwrite:
            metrics["numRemovedFiles"] = len(self.removed)
            metrics["numRemovedBytes"] = self.removed.size_bytes
        num_deleted = self.deletion.num_matching_rows if self.deletion else None
        if num_deleted is not None:
            metrics["numDeletedRows"] = num_deleted
            metrics["numCopiedRows"] = kept.num_rows
            metrics["numAddedChangeFiles"] = len(kept.changes) + len(self.written.changes)
        return metrics


def operation_mode(mode: str) -> str:
    """Return the mode of a write as commitInfo spells it."""
    return {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}.get(
        mode, "ErrorIfExists"
    )


def shown_flags(
    *, is_dynamic: bool, overwrite_schema: bool, merge_schema: bool
) -> Mapping[str, object]:
    """Return the parameters of the history for options that are true.

    Args:
        is_dynamic: Whether only the written partitions are replaced.
        overwrite_schema: Whether the schema may be replaced.
        merge_schema: Whether columns may be added.
    """
    flags = {
        "isDynamicPartitionOverwrite": is_dynamic,
        "canOverwriteSchema": overwrite_schema,
        "canMergeSchema": merge_schema,
    }
    return {name: True for name, value in flags.items() if value}


def ensure_mode_fits(txn: OptimisticTransaction, mode: str) -> None:
    """Refuse the mode `error` if the table exists.

    Raises:
        UsageError: It does (kind `DELTA_PATH_EXISTS`).
    """
    if txn.read_version >= 0 and mode == "error":
        raise UsageError(
            f"The table {txn.table.table_path} exists already. Nothing was written. Use mode "
            "append or overwrite to write to it.",
            kind="DELTA_PATH_EXISTS",
            path=txn.table.table_path,
        )


def ensure_may_replace(
    text: str, *, is_partition_only: bool, argument: str, options: EngineOptions
) -> None:
    """Refuse a condition on data columns, if the options forbid to replace rows by such.

    Args:
        text: The condition.
        is_partition_only: Whether it names partition columns only.
        argument: What the caller calls it, for the error.
        options: The engine's options.

    Raises:
        UsageError: They do (kind `DELTA_REPLACE_WHERE_ON_DATA_COLUMNS_DISABLED`).
    """
    if is_partition_only or options.replace_where_data_columns_enabled:
        return
    raise UsageError(
        f"{argument} {quoted(text)} names columns that are not partition columns, and "
        "spark.databricks.delta.replaceWhere.dataColumns.enabled is false. Nothing was written. "
        "Name only partition columns, or set that key to true.",
        kind="DELTA_REPLACE_WHERE_ON_DATA_COLUMNS_DISABLED",
        predicate=text,
    )
