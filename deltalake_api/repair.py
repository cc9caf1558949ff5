"""`repair`: files that are gone are taken out of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core import DeltaLog
from optimist.core.data.storage.missing_files import missing_files
from optimist.core.log.file_table import add_files
from optimist.core.runtime.budget import one_operation
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["repair_table"]


@one_operation
def repair_table(log: DeltaLog, *, dry_run: bool) -> list[str]:
    """Remove the files from the table that the store does not have, in one commit.

    Their rows are lost already; afterwards the others can be read again. A store that fails is an
    error, and no file counts as gone because of it.

    Args:
        log: The table.
        dry_run: Whether nothing is committed.

    Returns:
        The paths of the files, as the log has them.
    """
    txn = log.start_transaction(log.snapshot())
    txn.ensure_writable()
    files = txn.snapshot.files
    full = txn.snapshot.data_paths.full_paths(files["path"].combine_chunks())
    gone = missing_files(pa.chunked_array([full]), log.table_path, log.table.data_access())
    lost = files.filter(pc.is_in(full, value_set=gone))
    found: list[str] = lost["path"].to_pylist()
    if not found or dry_run:
        return found
    now_ms = log.clock.now_ms()
    done = Operation("FSCK", {"dryRun": False}, {"numRemovedFiles": str(len(found))})
    # A loop over the lost files: a table with many of these is beyond repair.
    txn.commit([each.remove(now_ms) for each in add_files(lost)], done)
    return found
