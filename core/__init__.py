"""The engine: actions, log, snapshot, predicates, transaction, conflicts. No Spark, no JVM.

The public names are imported on first use, so that a store, which needs only the contract of
stores, does not load Arrow. docs/api.md has them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimist.core.imports import names_by_need, own_version

if TYPE_CHECKING:
    __version__: str
    from optimist.core.changes.change_scan import ChangeScan
    from optimist.core.commands.alter.table_changes import TableChanges
    from optimist.core.errors import OptimistError
    from optimist.core.local.commands import RowsChanged
    from optimist.core.local.merge.builder import LocalMerge
    from optimist.core.local.recomputed_statistics import Recomputed
    from optimist.core.log.last_checkpoint import LastCheckpoint
    from optimist.core.maintenance.copies.clone import ClonedTable
    from optimist.core.maintenance.copies.restore import RestoredTable
    from optimist.core.maintenance.fsck.findings import CheckedTable, UndoneRepair
    from optimist.core.maintenance.optimize.optimize_metrics import FileSizes, Optimized
    from optimist.core.maintenance.vacuum.vacuum import Vacuumed, VacuumProgress
    from optimist.core.options.engine import EngineOptions
    from optimist.core.predicates import Predicate, col
    from optimist.core.protocol.actions import AddFile, Metadata, Protocol, RemoveFile
    from optimist.core.requests.columns import ColumnChange, NewColumn
    from optimist.core.requests.table_definition import Column, Identity
    from optimist.core.runtime.progress import FileProgress
    from optimist.core.runtime.progress_bars import progress_bar
    from optimist.core.snapshot import Snapshot
    from optimist.core.snapshot.row_scan import RowScan
    from optimist.core.snapshot.table_detail import TableDetail
    from optimist.core.snapshot.time_travel import CommitRecord
    from optimist.core.statements.run import StatementResult
    from optimist.core.streams.follow import FollowedCommit
    from optimist.core.table.commit_resolution import CommitResolution, CommitState
    from optimist.core.table.delta_log import DeltaLog
    from optimist.core.table.run_sql import run_sql
    from optimist.core.table.table_transaction import TableTransaction
    from optimist.core.transaction.conflicts.operations import Operation
    from optimist.core.transaction.optimistic import OptimisticTransaction
    from optimist.core.transaction.result import CommitResult

__all__ = [
    "AddFile",
    "ChangeScan",
    "CheckedTable",
    "ClonedTable",
    "Column",
    "ColumnChange",
    "CommitRecord",
    "CommitResolution",
    "CommitResult",
    "CommitState",
    "DeltaLog",
    "EngineOptions",
    "FileProgress",
    "FileSizes",
    "FollowedCommit",
    "Identity",
    "LastCheckpoint",
    "LocalMerge",
    "Metadata",
    "NewColumn",
    "Operation",
    "OptimistError",
    "OptimisticTransaction",
    "Optimized",
    "Predicate",
    "Protocol",
    "Recomputed",
    "RemoveFile",
    "RestoredTable",
    "RowScan",
    "RowsChanged",
    "Snapshot",
    "StatementResult",
    "TableChanges",
    "TableDetail",
    "TableTransaction",
    "UndoneRepair",
    "VacuumProgress",
    "Vacuumed",
    "col",
    "progress_bar",
    "run_sql",
]

_MODULES = {
    "AddFile": "optimist.core.protocol.actions",
    "ChangeScan": "optimist.core.changes.change_scan",
    "CheckedTable": "optimist.core.maintenance.fsck.findings",
    "ClonedTable": "optimist.core.maintenance.copies.clone",
    "Column": "optimist.core.requests.table_definition",
    "ColumnChange": "optimist.core.requests.columns",
    "CommitRecord": "optimist.core.snapshot.time_travel",
    "CommitResolution": "optimist.core.table.commit_resolution",
    "CommitResult": "optimist.core.transaction.result",
    "CommitState": "optimist.core.table.commit_resolution",
    "DeltaLog": "optimist.core.table.delta_log",
    "EngineOptions": "optimist.core.options.engine",
    "FileProgress": "optimist.core.runtime.progress",
    "FileSizes": "optimist.core.maintenance.optimize.optimize_metrics",
    "FollowedCommit": "optimist.core.streams.follow",
    "Identity": "optimist.core.requests.table_definition",
    "LastCheckpoint": "optimist.core.log.last_checkpoint",
    "LocalMerge": "optimist.core.local.merge.builder",
    "Metadata": "optimist.core.protocol.actions",
    "NewColumn": "optimist.core.requests.columns",
    "Operation": "optimist.core.transaction.conflicts.operations",
    "OptimistError": "optimist.core.errors",
    "OptimisticTransaction": "optimist.core.transaction.optimistic",
    "Optimized": "optimist.core.maintenance.optimize.optimize_metrics",
    "Predicate": "optimist.core.predicates",
    "Protocol": "optimist.core.protocol.actions",
    "RemoveFile": "optimist.core.protocol.actions",
    "Recomputed": "optimist.core.local.recomputed_statistics",
    "RestoredTable": "optimist.core.maintenance.copies.restore",
    "RowScan": "optimist.core.snapshot.row_scan",
    "RowsChanged": "optimist.core.local.commands",
    "Snapshot": "optimist.core.snapshot",
    "StatementResult": "optimist.core.statements.run",
    "TableChanges": "optimist.core.commands.alter.table_changes",
    "TableDetail": "optimist.core.snapshot.table_detail",
    "TableTransaction": "optimist.core.table.table_transaction",
    "UndoneRepair": "optimist.core.maintenance.fsck.findings",
    "VacuumProgress": "optimist.core.maintenance.vacuum.vacuum",
    "Vacuumed": "optimist.core.maintenance.vacuum.vacuum",
    "col": "optimist.core.predicates",
    "progress_bar": "optimist.core.runtime.progress_bars",
    "run_sql": "optimist.core.table.run_sql",
}
_find = names_by_need(__name__, _MODULES)


def __getattr__(name: str) -> Any:
    return own_version() if name == "__version__" else _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
