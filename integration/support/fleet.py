"""Processes that append to one table at once, through the engine, without data files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from optimist.core import DeltaLog
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.testing.logstore_races import commit_path, run_in_processes
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["append_to", "create_table", "file_of", "files_in", "race_of_processes"]

_SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
_PROCESSES = 16
_QUIET = {
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.optimist.commit.retry.baseSeconds": "0.1",
}


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
    return sorted(log.snapshot().files["path"].to_pylist())


def race_of_processes(path: str, options: Mapping[str, str], *, commits: int = 6) -> None:
    """Sixteen processes commit so often each to a new table, all beginning at once.

    Versions must come out dense, and each commit be there once, under the version that its writer
    was told.
    """
    # What is raced is the commit; checksums are files of their own.
    given = {**_QUIET, **options}
    log = DeltaLog.for_path(path, given)
    log.store.ensure_directory(log.log_path)
    create_table(log)
    jobs = [{"writer": writer, "commits": commits} for writer in range(_PROCESSES)]
    won = run_in_processes(partial(_opened, path, given), _append, jobs)
    told = {version: name for versions in won for version, name in versions.items()}
    assert sorted(told) == list(range(1, _PROCESSES * commits + 1))
    assert files_in(log) == sorted(told.values())
    for version in (1, max(told)):
        assert told[version].encode() in log.store.read_bytes(commit_path(log.log_path, version))


def _opened(path: str, options: dict[str, str]) -> DeltaLog:
    log = DeltaLog.for_path(path, options)
    log.snapshot()
    return log


def _append(log: DeltaLog, *, writer: int, commits: int) -> dict[int, str]:
    names = [file_of(writer, number) for number in range(commits)]
    return {append_to(log, name): name for name in names}
