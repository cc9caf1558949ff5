"""The commit that takes files which are gone out of the table: their rows are lost.

1. The newest version's files are looked for once more. Files that are there again stay.
2. If not one file of the table is there, nothing is done: the store is more likely away than empty.
3. One commit removes the others. It is an operation `FSCK`, as with other engines, and RESTORE can
   undo it if the files come back before VACUUM.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.storage.missing_files import missing_files
from optimist.core.errors import TableError
from optimist.core.log.file_table import add_files
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["drop_missing_files"]


def drop_missing_files(txn: OptimisticTransaction) -> CommitResult | None:
    """Take the files that are gone out of the table; None if all are there.

    Args:
        txn: A transaction that has just begun.

    Raises:
        TableError: Not one file of the table is there (kind `DELTA_FILE_NOT_FOUND_DETAILED`).
        ProtocolError: The table only allows appends.
        DeltaConcurrentModificationException: Another commit removed one of the files meanwhile.
    """
    table, files = txn.table, txn.snapshot.files
    references = files.column("path")
    full = pa.chunked_array(map(table.data_paths.full_paths, references.chunks), pa.string())
    gone = missing_files(full, table.table_path, table.data_access())
    if not len(gone):
        return None
    if len(gone) == files.num_rows:
        raise TableError(
            f"Not one of the {files.num_rows} files of {table.table_path} is there. Nothing was "
            "committed. Look whether the store or the disk is complete; if the rows are lost, run "
            "DELETE or TRUNCATE.",
            kind="DELTA_FILE_NOT_FOUND_DETAILED",
            path=table.table_path,
            num_files=files.num_rows,
        )
    missing = files.filter(pc.is_in(full, value_set=gone))

    def work(_: UncommittedFiles) -> Changes:
        txn.depend_on(missing)
        now_ms = table.clock.now_ms()
        operation = Operation("FSCK").with_metrics({"numRemovedFiles": missing.num_rows})
        removes = tuple(add.remove(now_ms) for add in add_files(missing))
        return Changes(removes, operation, is_progress=False)

    return run_command(txn, work).commit
