"""Carry a table from one store to another, commit by commit; go on where the last run stopped.

    python examples/carry.py s3a://bucket/flights gs://bucket/flights
        --source-conf s3.conf --target-conf gcs.conf

The conf files hold Spark conf keys, as `spark-defaults.conf` does; no Spark is needed.

Each commit of the source becomes one commit of the target that also says how far it has got: an
application id made of the source's table id, with the source's version as its count (`txn`). So a
run that was killed anywhere, or is started twice, copies no commit twice and leaves none out:

1. Ask the target how far this source has got.
2. For each commit after that, copy the data files that it adds. A file that is there already, of
   the same size, was copied by a run that was cut short.
3. Commit the same actions, with `txn` beside them. If another carrier was quicker, that is a
   conflict.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from conf_file import read_conf
from optimist.core import DeltaLog, Operation
from optimist.core.data.storage.filesystem import filesystem_for, make_directories
from optimist.core.data.storage.new_file import new_file
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
)

__all__ = ["Carried", "carry", "main"]


@dataclass(frozen=True, slots=True)
class Carried:
    """One commit on its way: its version at the source and at the target, and the bytes copied."""

    source_version: int
    target_version: int
    operation: str
    num_files: int
    size_bytes: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry the table that the command line names, and print a line per commit."""
    parser = argparse.ArgumentParser(description="Carry a table from one store to another.")
    parser.add_argument("source", help="the table, for example s3a://bucket/flights")
    parser.add_argument("target", help="where it goes: nothing yet, or an earlier run's copy")
    parser.add_argument("--source-conf", type=Path, help="a file of Spark conf keys for the source")
    parser.add_argument("--target-conf", type=Path, help="a file of Spark conf keys for the target")
    options = parser.parse_args(arguments)
    source = DeltaLog.for_path(options.source, _conf(options.source_conf))
    target = DeltaLog.for_path(options.target, _conf(options.target_conf))
    for item in carry(source, target):
        print(
            f"version {item.source_version} -> {item.target_version}  {item.operation}  "
            f"{item.num_files} files, {item.size_bytes:,} bytes"
        )
    print(f"{options.target} is at version {target.snapshot().version}, all of {options.source}.")
    return 0


def carry(source: DeltaLog, target: DeltaLog) -> Iterator[Carried]:
    """Bring the target up to the source's newest version; one item per commit, once it landed.

    The target must be empty, or a copy that an earlier run of this function made.

    Raises:
        NotImplementedError: A commit has deletion vectors, whose files are not copied here, or
            files outside the source's directory, which would go outside the target's.
        ConcurrentTransactionException: Another carrier is at work; run it again.
        LogFileNotFoundError: The source's log no longer has the next commit.
    """
    newest = source.snapshot()
    app_id = f"carry:{newest.metadata.id}"
    while True:
        transaction = target.start_transaction()
        version = transaction.txn_version(app_id) + 1
        if version > newest.version:
            return
        actions = read_commit(source.store, commit_path(source.log_path, version))
        added = [action for action in actions if isinstance(action, AddFile)]
        if any(item.deletion_vector is not None for item in added):
            raise NotImplementedError(f"Version {version} of the source has deletion vectors.")
        references = pa.array([item.path for item in added], pa.string())
        if any(newest.data_paths.are_outside(references).to_pylist()):
            raise NotImplementedError(f"Version {version} of the source has files outside of it.")
        _copy_files(source, target, [unquote(item.path) for item in added])
        info = next((item for item in actions if isinstance(item, CommitInfo)), None)
        for action in actions:
            if isinstance(action, Metadata):
                transaction.update_metadata(action)
        done = transaction.commit(
            [*_same_actions(actions), SetTransaction(app_id, version, target.clock.now_ms())],
            Operation(
                info.operation if info is not None and info.operation else "WRITE",
                {"carriedFrom": source.table_path, "sourceVersion": str(version)},
            ),
        )
        size_bytes = sum(item.size for item in added)
        yield Carried(version, done.version, _name(info), len(added), size_bytes)


def _conf(path: Path | None) -> Mapping[str, str]:
    return {} if path is None else read_conf(path, {})


def _same_actions(actions: Sequence[Action]) -> list[Action]:
    return [item for item in actions if not isinstance(item, CommitInfo | Metadata | Protocol)]


def _name(info: CommitInfo | None) -> str:
    return (info.operation if info is not None else None) or "?"


def _copy_files(source: DeltaLog, target: DeltaLog, paths: Sequence[str]) -> None:
    theirs, their_root = filesystem_for(source.table_path, _access(source))
    ours, our_root = filesystem_for(target.table_path, _access(target))
    for path in paths:
        found, there = theirs.get_file_info(f"{their_root}/{path}"), f"{our_root}/{path}"
        known = ours.get_file_info(there)
        if known.type is fs.FileType.File:
            if known.size == found.size:
                continue
            ours.delete_file(there)
        make_directories(ours, [there])
        file = new_file(
            f"{target.table_path}/{path}",
            ours,
            there,
            access=_access(target),
            clock=target.clock,
            policy=target.options.retry_policy,
        )
        try:
            with theirs.open_input_stream(found.path) as reader:
                while chunk := reader.read(8 * 1024 * 1024):
                    file.sink.write(chunk)
            file.publish()
        finally:
            file.discard()


def _access(log: DeltaLog) -> DataAccess | None:
    return log.store.data_access(log.table_path)


if __name__ == "__main__":
    sys.exit(main())
