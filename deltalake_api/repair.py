"""`repair`: files that are gone are taken out of the table."""

from __future__ import annotations

from optimist.core import DeltaLog
from optimist.core.maintenance.fsck.missing_files_commit import drop_files, files_gone
from optimist.core.runtime.budget import one_operation

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
    gone = files_gone(txn)
    if gone.num_rows and not dry_run:
        drop_files(txn, gone)
    paths: list[str] = gone["path"].to_pylist()
    return paths
