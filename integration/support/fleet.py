"""Processes that append to one table at once, through the engine, without data files."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

from optimist.core import DeltaLog
from optimist.core.actions import AddFile, Metadata
from optimist.core.transaction.operations import Operation

__all__ = ["append_from_processes", "append_to", "create_table", "file_of", "files_in"]

_LIMIT_S = 240
_SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
_PRELOADED = (
    "boto3",
    "optimist.core",
    "optimist.locks.dynamodb_arbiter",
    "optimist.logstores.azure",
    "optimist.logstores.gcs",
    "optimist.logstores.s3_dynamodb",
)

_barrier: Barrier | None = None


def create_table(log: DeltaLog) -> None:
    """Commit version 0: a table with one column."""
    txn = log.start_transaction()
    txn.update_metadata(
        Metadata(id=log.clock.new_uuid(), schema_string=_SCHEMA, partition_columns=())
    )
    txn.commit([], Operation("CREATE TABLE"))


def append_to(log: DeltaLog, name: str) -> int:
    """Commit a blind append of one file that nobody will read; its version."""
    add = AddFile(name, {}, size=1, modification_time=1, data_change=True)
    return log.start_transaction().commit([add], Operation.write("Append")).version


def file_of(writer: int, number: int) -> str:
    """The file that a writer's how-manieth commit adds."""
    return f"{writer}-{number}.parquet"


def files_in(log: DeltaLog) -> list[str]:
    """The live files, sorted; each as often as it is there."""
    return sorted(log.update().files["path"].to_pylist())


def append_from_processes(
    path: str, options: Mapping[str, str], *, processes: int, commits: int
) -> list[list[int]]:
    """So many processes commit so often, all beginning at once; the versions that each won."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    with ProcessPoolExecutor(
        max_workers=processes,
        mp_context=context,
        initializer=_keep,
        initargs=(context.Barrier(processes),),
    ) as pool:
        futures = [
            pool.submit(_append, path, dict(options), writer, commits)
            for writer in range(processes)
        ]
        return [future.result(_LIMIT_S) for future in futures]


def _append(path: str, options: dict[str, str], writer: int, commits: int) -> list[int]:
    log = DeltaLog.for_path(path, options)
    log.update()
    assert _barrier is not None
    _barrier.wait(_LIMIT_S)
    return [append_to(log, file_of(writer, number)) for number in range(commits)]


def _keep(barrier: Barrier) -> None:
    global _barrier  # a pool hands a barrier to its processes no other way
    _barrier = barrier
