"""`TableRef`: one table by reference, with everything to read and write it (spec 1.1)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.errors.short_repr import short_repr
from optimist.core.log.names import log_path_of
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.lease import Lease
from optimist.core.plugins.logstore import LogStore
from optimist.core.plugins.table_path import resolve_table_path
from optimist.core.runtime.clock import Clock

__all__ = ["TableRef"]


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table's path, its store and its options. Nothing in it ever changes.

    `DeltaLog` makes one, and itself keeps the changing parts: the newest snapshot, the attempts
    under way. Transactions, hooks, commands and the change feed take this value and know no handle.

    Attributes:
        table_path: The table's directory: a local one as its absolute real path (see
            `resolve_table_path`), any other as the user gave it.
        log_path: Its `_delta_log`.
        store: The LogStore that serves the path.
        options: The engine's options.
        clock: The source of time.
        data_paths: The rules for the paths in the table's log, and which of them may be opened.
        lease: Serialises commit loops across processes when the commit lock is taken. With None the
            lock works only within this process.
    """

    table_path: str
    log_path: str
    store: LogStore
    options: EngineOptions
    clock: Clock
    data_paths: DataPaths
    lease: Lease | None = None

    __repr__ = short_repr

    @classmethod
    def of(
        cls,
        path: str,
        store: LogStore,
        options: EngineOptions,
        clock: Clock,
        *,
        lease: Lease | None = None,
    ) -> TableRef:
        """Return the table at a path as a user wrote it. It need not exist.

        Raises:
            UsageError: The path is empty, or can't be a table's.
            ConfigError: The store does not serve the path.
        """
        table_path = resolve_table_path(path, store)
        origin = store.data_origin(table_path)
        return cls(
            table_path,
            log_path_of(table_path),
            store,
            options,
            clock,
            DataPaths(table_path, origin, options.paths_outside_table),
            lease,
        )

    def data_access(self) -> DataAccess | None:
        """Return the access to data files, or None if their paths are enough."""
        return self.store.data_access(self.table_path)

    def ensure_log_directory(self) -> None:
        """Make `_delta_log` for a new table (spec 1.7.6)."""
        self.store.ensure_directory(self.log_path)
