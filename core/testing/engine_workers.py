"""The engine itself as workers of the scheduler: transactions and readers of snapshots.

A transaction starts from a snapshot that was loaded before the schedule begins, like one in a
handle's cache. So the table may be ahead of it by everything that the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optimist.core.errors import StorageError
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Action, AddFile, Metadata, Protocol, actions_to_bytes
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.table.delta_log import DeltaLog
from optimist.core.testing.log_scenario import OpenStore, Seen, Wrote, telling
from optimist.core.testing.scheduler import DirectLine, Line, Worker, World
from optimist.core.testing.scheduler import Operation as LogRequest
from optimist.core.testing.simulated_store import SimulatedClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["added_file", "engine_writer", "first_commit", "snapshot_reader"]

Work = Callable[[OptimisticTransaction, str], Sequence[Action]]
"""Does the work of a transaction before its commit: reads through it, and returns the actions."""

_SCHEMA = StructType((StructField("x", PrimitiveType("long")),))
_SETTINGS = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}


def first_commit(table: str, *files: str) -> tuple[str, bytes]:
    """Return version 0 of a table of one column, as a path and its bytes."""
    metadata = Metadata(id="table", schema_string=schema_to_json(_SCHEMA), created_time=1)
    actions: list[Action] = [Protocol(1, 2), metadata, *map(added_file, files)]
    return commit_path(f"{table}/_delta_log", 0), actions_to_bytes(actions)


def added_file(name: str) -> AddFile:
    """Return the action that adds a data file, which is never read."""
    return AddFile(path=name, partition_values={}, size=1, modification_time=1, data_change=True)


def engine_writer(
    name: str,
    table: str,
    open_store: OpenStore,
    work: Work,
    *,
    world: World,
    may_fail: bool = True,
) -> Worker:
    """Make a worker that runs a transaction of the engine, without post-commit hooks.

    Args:
        name: The worker's name; its transaction's id is `<name>-1`.
        table: The table's path.
        open_store: Opens the table's store.
        work: Does the transaction's work.
        world: The world from which its snapshot is loaded, before the schedule begins.
        may_fail: See `Worker`.
    """
    known = _open_handle(table, open_store, DirectLine(world, world.initial), name).snapshot()

    def run(line: Line) -> Wrote:
        log = _open_handle(table, open_store, line, name)
        txn = log.start_transaction(known)
        return telling(txn.txn_id, lambda: _commit_work(txn, work, name))

    return Worker(name, run, may_fail)


def snapshot_reader(name: str, table: str, open_store: OpenStore, *, world: World) -> Worker:
    """Make a reader with an open table, which it updates twice.

    Its version never goes back.

    It stops when the store fails. Its outcome is the last versions that it saw. It does not read
    their files again.
    """

    def run(line: Line) -> Seen:
        warm = _WarmLine(line, DirectLine(world, world.initial))
        log = _open_handle(table, open_store, warm, name)
        seen = log.snapshot().version
        warm.is_warm = True
        for _ in range(2):
            try:
                snapshot = log.snapshot()
            except StorageError:
                break
            assert snapshot.version >= seen, f"went back from {seen} to {snapshot.version}"
            seen = snapshot.version
        return Seen(tuple(range(seen + 1)))

    return Worker(name, run)


class _WarmLine(Line):
    """Asks the initial world until the worker is warm, which takes no step of a schedule.

    A warm worker reads few commits at a time. To read many, the engine would use a thread pool, and
    a worker may have only one thread.
    """

    def __init__(self, line: Line, initial: Line) -> None:
        super().__init__()
        self._line = line
        self._initial = initial
        self.is_warm = False

    def ask(self, operation: LogRequest) -> object:
        """Ask the current world (see `Line.ask`)."""
        return (self._line if self.is_warm else self._initial).ask(operation)


def _open_handle(table: str, open_store: OpenStore, line: Line, name: str) -> DeltaLog:
    clock = SimulatedClock(name)
    options = EngineOptions.from_options(_SETTINGS)
    return DeltaLog(table, open_store(line, clock), options, clock=clock)


def _commit_work(txn: OptimisticTransaction, work: Work, name: str) -> int:
    return txn.commit(work(txn, name), Operation("WRITE")).version
