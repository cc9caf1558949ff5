"""Carry a table from one store to another, commit by commit, going on where it stopped.

Each commit of the source becomes one commit of the target that also says how far it has got: an
application id made of the source's table id, with the source's version as its count (`txn`). So a
run that was killed anywhere, or is started twice, copies no commit twice and leaves none out:

1. Ask the target how far this source has got.
2. Of each commit after that, copy the data files that it adds. A file that is there already, of
   the same size, was copied by a run that was cut short.
3. Commit the same actions, with `txn` beside them. Another carrier that was quicker is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from optimist.core import DeltaLog, Operation
from optimist.core.data.filesystem import filesystem_for, make_directories
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
)

__all__ = ["Carried", "carry"]


@dataclass(frozen=True, slots=True)
class Carried:
    """One commit on its way: its version at the source and at the target, and the bytes copied."""

    source_version: int
    target_version: int
    operation: str
    num_files: int
    size_bytes: int


def carry(source: DeltaLog, target: DeltaLog) -> Iterator[Carried]:
    """Bring the target up to the source's newest version; one item per commit, once it landed.

    The target must be empty, or a copy that an earlier run of this function made.

    Raises:
        NotImplementedError: A commit has deletion vectors, whose files are not copied here.
        ConcurrentTransactionException: Another carrier is at work; run it again.
        LogFileNotFoundError: The source's log no longer has the next commit.
    """
    newest = source.update()
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


def _same_actions(actions: Sequence[Action]) -> list[Action]:
    return [item for item in actions if not isinstance(item, CommitInfo | Metadata | Protocol)]


def _name(info: CommitInfo | None) -> str:
    return (info.operation if info is not None else None) or "?"


def _copy_files(source: DeltaLog, target: DeltaLog, paths: Sequence[str]) -> None:
    theirs, their_root = _filesystem(source)
    ours, our_root = _filesystem(target)
    for path in paths:
        found, there = theirs.get_file_info(f"{their_root}/{path}"), f"{our_root}/{path}"
        known = ours.get_file_info(there)
        if known.type is fs.FileType.File and known.size == found.size:
            continue
        make_directories(ours, [there])
        with (
            theirs.open_input_stream(found.path) as reader,
            ours.open_output_stream(there) as writer,
        ):
            while chunk := reader.read(8 * 1024 * 1024):
                writer.write(pa.py_buffer(chunk))


def _filesystem(log: DeltaLog) -> tuple[fs.FileSystem, str]:
    return filesystem_for(log.table_path, log.store.data_access(log.table_path))
