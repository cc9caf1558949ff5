"""What writers have left beside a table's files: stale intents, and entries of an arbiter."""

from __future__ import annotations

from collections.abc import Iterator

from optimist.core.data.intents.intents import intents_directory
from optimist.core.data.storage.stored_files import files_below
from optimist.core.data.table_ref import TableRef
from optimist.core.errors.foreign_text import shown
from optimist.core.log.names import LogFileKind, parse_log_file_name
from optimist.core.maintenance.fsck.findings import Finding
from optimist.core.maintenance.fsck.second_look import is_there, is_young
from optimist.core.maintenance.vacuum.heeded_intents import HeededIntents
from optimist.core.paths import join, name_of

__all__ = ["lost_claims", "stale_intents"]


def stale_intents(table: TableRef) -> Iterator[Finding]:
    """Find intents of writers that are certainly dead.

    A writer makes the file before it takes the lock, and others may remove a stale intent
    meanwhile. So only those count that are still there, and are not young.
    """
    reasons = dict(
        text.split(": ", 1) for text in HeededIntents.find(table, removes_stale=False).stale
    )
    if not reasons:
        return
    now_ms = table.clock.now_ms()
    for status in files_below(intents_directory(table), table.data_access()):
        reason = reasons.get(name_of(status.path))
        if reason is not None and not is_young(status, now_ms):
            yield Finding("stale-intent", status.path, reason)


def lost_claims(table: TableRef, newest: int) -> Iterator[Finding]:
    """Find a commit that an arbiter says is complete, although the log ends before it.

    Args:
        table: The table.
        newest: The newest version in the log, or -1.
    """
    claimed = table.store.newest_claimed(table.log_path)
    name = None if claimed is None else parse_log_file_name(claimed)
    if claimed is None or name is None or name.kind is not LogFileKind.COMMIT:
        return
    path = join(table.log_path, claimed)
    if name.version > newest and not is_there(table.store, path):
        proof = (
            f"the arbiter has {shown(claimed)} as complete, and no such file is there: the log "
            f"ends with version {newest}"
        )
        yield Finding("stale-entry", path, proof, name.version)
