"""The two commits by which a VACUUM records itself in the history (spec 8.1, 8.3, 10.12)."""

from __future__ import annotations

from collections.abc import Callable

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import StorageError
from optimist.core.errors.kinds import NO_SPACE
from optimist.core.maintenance.vacuum.dead_files import DeadFiles
from optimist.core.maintenance.vacuum.retention import Retention
from optimist.core.paths import scheme_of
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["VacuumLog"]

_SCHEMES = ("", "file", "wasbs", "wasbss", "abfs", "abfss", "adl", "gs", "hdfs")


class VacuumLog:
    """Commits the start and the end of a VACUUM, if vacuum logging is on.

    Args:
        table: The table.
        start: Begins a transaction on its newest version.
    """

    def __init__(self, table: TableRef, start: Callable[[], OptimisticTransaction]) -> None:
        is_asked_for = table.options.vacuum_logging_enabled
        self._is_on = (
            scheme_of(table.table_path) in _SCHEMES if is_asked_for is None else is_asked_for
        )
        self._start = start
        self._delayed: Operation | None = None

    def begin(self, retention: Retention, dead: DeadFiles) -> None:
        """Record what will be deleted, or delay the record on a full disk."""
        parameters: dict[str, object] = {
            "retentionCheckEnabled": retention.is_checked,
            "defaultRetentionMillis": retention.default_ms,
        }
        if retention.specified_ms is not None:
            parameters["specifiedRetentionMillis"] = retention.specified_ms
        metrics = {"numFilesToDelete": dead.num_files, "sizeOfDataToDelete": dead.size_bytes}
        operation = Operation("VACUUM START", parameters).with_metrics(metrics)
        try:
            self._commit_empty(operation)
        except StorageError as error:
            if error.kind != NO_SPACE:
                raise
            self._delayed = operation  # the deletion will make room

    def end(self, *, is_completed: bool, num_files: int, num_directories: int) -> None:
        """Record the number of deleted files, and whether the VACUUM completed."""
        if self._delayed is not None:
            self._commit_empty(self._delayed)
        status = "COMPLETED" if is_completed else "FAILED"
        metrics = {"numDeletedFiles": num_files, "numVacuumedDirectories": num_directories}
        self._commit_empty(Operation("VACUUM END", {"status": status}).with_metrics(metrics))

    def _commit_empty(self, operation: Operation) -> None:
        if self._is_on:
            self._start().commit((), operation)
