"""The commit that takes files which are gone out of the table: their rows are lost.

1. The files of the transaction's version are looked for, in listings and then by name. Files that
   are there stay.
2. A repair by `fsck` stops here if not one file of the table is there, or not one of some place
   outside of its directory, as of the source of a shallow clone: the store is more likely away than
   empty.
3. One commit removes the files that are gone. It is an operation `FSCK`, as with other engines, and
   RESTORE can undo it if the files come back before VACUUM.
"""

from __future__ import annotations

import os
import re
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.storage.missing_files import certainly_missing_files
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.vacuum.kept_paths import relative_paths
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["drop_files", "drop_missing_files", "files_gone"]

_OF_ONE_WRITE = re.compile(r"data-[0-9a-f-]{36}")
"""The name of the directory of a single write."""


def drop_missing_files(txn: OptimisticTransaction) -> CommitResult | None:
    """Take the files that are gone out of the table; None if all are there.

    Args:
        txn: A transaction that has just begun.

    Raises:
        TableError: Not one file of the table is there, or not one of some place outside of its
            directory (kind `DELTA_FILE_NOT_FOUND_DETAILED`).
        OptimistError: See `drop_files`.
    """
    table, num_files, gone = txn.table, txn.snapshot.num_files, files_gone(txn)
    if not gone.num_rows:
        return None
    if gone.num_rows == num_files:
        raise _away(table, f"{num_files} files", "run DELETE or TRUNCATE")
    all_by_place = _num_outside(txn.snapshot.files, table)
    for place, num_outside in _num_outside(gone, table).items():
        if num_outside == all_by_place[place]:
            raise _away(
                table,
                f"{num_outside} files outside of the directory, in {shown(place)},",
                "make the clone anew, or run DeltaTable.repair of optimist.deltalake",
            )
    return drop_files(txn, gone)


def _num_outside(files: pa.Table, table: TableRef) -> Counter[str]:
    """Return how many files are outside of the table's directory, by place.

    A place is a directory without those of partitions and of single writes at its end. Each source
    of a clone may be away by itself. So may be the target of a symbolic link in the directory.
    """
    found: Counter[str] = Counter()
    for chunk in files.column("path").chunks:
        is_outside = pc.is_null(relative_paths(chunk, table.data_paths))
        full = table.data_paths.full_paths(chunk.filter(is_outside))
        folders = pc.replace_substring_regex(full, r"/[^/]*$", "")
        for each in pc.value_counts(folders).to_pylist():
            found[_place_of(each["values"])] += each["counts"]
    return found


def _place_of(folder: str) -> str:
    if scheme_of(folder) in ("", "file"):
        folder = os.path.realpath(strip_file_scheme(folder))
    names = folder.split("/")
    while len(names) > 1 and ("=" in names[-1] or _OF_ONE_WRITE.fullmatch(names[-1])):
        names.pop()
    return "/".join(names)


def _away(table: TableRef, files: str, remedy: str) -> TableError:
    return TableError(
        f"Not one of the {files} of {shown(table.table_path)} is there. Nothing was committed. "
        "Look whether the store or the disk is complete. If the rows are lost, "
        f"{remedy}.",
        kind="DELTA_FILE_NOT_FOUND_DETAILED",
        path=table.table_path,
    )


def files_gone(txn: OptimisticTransaction) -> pa.Table:
    """Return those rows of `Snapshot.files` whose files the store does not have.

    Raises:
        StorageError: The store failed, so no file counts as gone.
        TableError: A file may not be opened.
    """
    table, files = txn.table, txn.snapshot.files
    chunks = files.column("path").chunks
    full = pa.chunked_array(map(table.data_paths.full_paths, chunks), pa.string())
    gone = certainly_missing_files(full, table.table_path, table.data_access())
    return files.filter(pc.is_in(full, value_set=gone))


def drop_files(txn: OptimisticTransaction, gone: pa.Table) -> CommitResult | None:
    """Take files out of the table in one commit, whose operation is `FSCK`.

    Args:
        txn: A transaction that has just begun.
        gone: Rows of `Snapshot.files`; few, since a table that lacks many is beyond repair.

    Raises:
        UsageError: The table only allows appends.
        DeltaConcurrentModificationException: Another commit removed one of the files meanwhile.
    """

    def work(_: UncommittedFiles) -> Changes:
        txn.depend_on(gone)
        now_ms = txn.table.clock.now_ms()
        operation = Operation("FSCK", {"dryRun": False})
        removes = tuple(add.remove(now_ms) for add in add_files(gone))
        described = operation.with_metrics({"numRemovedFiles": gone.num_rows})
        return Changes(removes, described, is_progress=False)

    return run_command(txn, work).commit
