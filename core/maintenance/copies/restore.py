"""RESTORE: set a table back to an older version, in one commit (spec 10.13).

1. The files of the two versions are compared. A file with another deletion vector counts as another
   file.
2. Files that only the older version has are added again, and must still exist. Files that only the
   newest version has are removed.
3. The metadata become those of the older version, except for values that must not go back
   (`restored_metadata`). The protocol only gains features.
4. The commit is tried once, since a RESTORE can't be rebased onto another commit.

No version is lost: the history continues, and another RESTORE can undo this one. The files of both
versions stay Arrow columns, from the log that is read to the lines that are written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.errors.html_repr import field_html
from optimist.core.errors.kinds import TIMESTAMP_TOO_EARLY
from optimist.core.errors.short_repr import short_repr
from optimist.core.log.file_table import table_keys, with_column
from optimist.core.log.many_files import FilesOrigin, ManyFiles
from optimist.core.maintenance.copies.files_there import ensure_files_there
from optimist.core.maintenance.copies.restored_metadata import restored_domains, restored_metadata
from optimist.core.maintenance.copies.restored_row_ids import restored_mark, with_restored_ids
from optimist.core.runtime.progress import ProgressReport
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import earliest_recreatable_version, version_at_timestamp
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.values.exact_sums import exact_sum

__all__ = ["RestoreTo", "RestoredTable", "restore"]

_WITHOUT_FILES = (
    "Restore a newer version; to restore what is left of this one, set "
    "spark.sql.files.ignoreMissingFiles to true."
)
_KINDS = {
    TIMESTAMP_TOO_EARLY: "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
}
"""Delta's kinds for a RESTORE to a time outside the history."""


@dataclass(frozen=True, slots=True)
class RestoredTable:
    """The result of a RESTORE, with the names of Delta's columns.

    Attributes:
        version: The version that it committed.
        table_size_after_restore: The sizes of the table's files, summed.
        num_of_files_after_restore: The number of files in the table.
        num_removed_files: The number of earlier files that are no longer part of the table.
        num_restored_files: The number of files that are part of it again.
        removed_files_size: The sizes of the removed files, summed.
        restored_files_size: The sizes of the restored files, summed.
    """

    version: int
    table_size_after_restore: int
    num_of_files_after_restore: int
    num_removed_files: int
    num_restored_files: int
    removed_files_size: int
    restored_files_size: int

    __repr__ = short_repr
    _repr_html_ = field_html


@dataclass(frozen=True, slots=True)
class RestoreTo:
    """The version to go back to, by one of the first two fields.

    Attributes:
        version: The version number.
        timestamp_ms: A time in epoch milliseconds, for the newest version that is not younger.
        timestamp: The time as the caller wrote it, for the history.
    """

    version: int | None = None
    timestamp_ms: int | None = None
    timestamp: str | None = None


def restore(
    txn: OptimisticTransaction,
    to: RestoreTo,
    load: Callable[[int], Snapshot],
    report: ProgressReport | None = None,
) -> RestoredTable | None:
    """Set the table back to a version.

    Args:
        txn: A transaction that has just begun.
        to: The version to go back to.
        load: Loads a version by its number.
        report: Is told of the files that were looked for; see `ensure_files_there`.

    Returns:
        The result; None if the table is already at that version.

    Raises:
        TableError: The version does not exist or no longer exists (kinds
            `DELTA_CANNOT_RESTORE_TABLE_VERSION`, `DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER` and
            `..._GREATER`). Or files of it are gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`, fields
            `paths` and `num_missing`), and `spark.sql.files.ignoreMissingFiles` is not set.
        ConcurrentWriteException: Another commit came first.
        ProtocolError: The table has, or had, a feature that this engine can't write.

    If one of these is raised, nothing is written.
    """
    txn.ensure_writable()
    version = _version_to_restore(txn, to)
    if version == txn.read_version:
        return None
    target, current = load(version), txn.snapshot
    to_add, to_remove = _compare_files(target, current)
    to_add = with_restored_ids(to_add, to_remove, target, current)
    ensure_files_there(txn.table, target.version, to_add, _WITHOUT_FILES, report)
    metadata = restored_metadata(target.metadata, current.metadata)
    txn.update_metadata_for_table_restore(metadata, target.protocol)
    domains = restored_domains(target.domain_metadata, current.domain_metadata)
    done = RestoredTable(
        version=current.version + 1,
        table_size_after_restore=target.size_in_bytes,
        num_of_files_after_restore=target.num_files,
        num_removed_files=to_remove.num_rows,
        num_restored_files=to_add.num_rows,
        removed_files_size=exact_sum(to_remove["size"]),
        restored_files_size=exact_sum(to_add["size"]),
    )
    origin = None
    if target.segment is not None and to_add.num_rows == target.num_files:
        origin = FilesOrigin(txn.table.store, target.segment)
    files = ManyFiles(to_add, to_remove, txn.table.clock.now_ms(), origin)
    txn.commit_large(
        (*domains, *restored_mark(target, current)), _restore_operation(done, to), files=files
    )
    return done


def _version_to_restore(txn: OptimisticTransaction, to: RestoreTo) -> int:
    table, latest = txn.table, txn.snapshot
    if to.timestamp_ms is not None:
        return _version_at(table, to.timestamp_ms, latest)
    version = latest.version if to.version is None else to.version
    if version == latest.version:
        return version
    earliest = earliest_recreatable_version(table.store, table.log_path)
    if not earliest <= version < latest.version:
        raise TableError(
            f"The table can't be restored to version {version}: its log holds the versions "
            f"{earliest} to {latest.version}. Nothing was written. Name one of these.",
            kind="DELTA_CANNOT_RESTORE_TABLE_VERSION",
            version=version,
            earliest=earliest,
            latest=latest.version,
        )
    return version


def _version_at(table: TableRef, timestamp_ms: int, latest: Snapshot) -> int:
    try:
        return version_at_timestamp(table.store, table.log_path, timestamp_ms, latest=latest)
    except TableError as error:
        kind = _KINDS.get(error.kind)
        if kind is None:
            raise
        raise TableError(f"{error.args[0]} Nothing was written.", kind=kind) from error


def _restore_operation(done: RestoredTable, to: RestoreTo) -> Operation:
    metrics = {
        "tableSizeAfterRestore": done.table_size_after_restore,
        "numOfFilesAfterRestore": done.num_of_files_after_restore,
        "numRemovedFiles": done.num_removed_files,
        "numRestoredFiles": done.num_restored_files,
        "removedFilesSize": done.removed_files_size,
        "restoredFilesSize": done.restored_files_size,
    }
    parameters = {"version": to.version, "timestamp": to.timestamp}
    return Operation("RESTORE", parameters).with_metrics(metrics)


def _compare_files(target: Snapshot, current: Snapshot) -> tuple[pa.Table, pa.Table]:
    """Return the files to add, and those to remove, which only the newest version has.

    Files that only the older version has change data. Files that stay, and get their row ids back,
    do not: no reader of changes may take their rows for new ones.
    """
    older, newest = target.files, current.files
    indices = pc.index_in(table_keys(older), value_set=table_keys(newest))
    of_newest = pa.array(range(newest.num_rows), indices.type)
    is_new = pc.invert(pc.is_in(of_newest, value_set=indices.drop_null()))
    to_remove = _chosen(newest, is_new)
    is_gone = is_added = indices.is_null()
    if target.has_active("rowTracking"):
        # A file that has lost its row ids, or has others now, is added again with the old ones.
        is_added = pc.or_(is_gone, _are_numbered_otherwise(older, newest, indices))
    return _chosen(with_column(older, "dataChange", is_gone), is_added), to_remove


def _chosen(files: pa.Table, is_chosen: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return some files, uncopied if these are all, as after TRUNCATE."""
    return files if pc.all(is_chosen, min_count=0).as_py() else files.filter(is_chosen)


def _are_numbered_otherwise(older: pa.Table, newest: pa.Table, indices: pa.Array) -> pa.Array:
    """Tell which older files have row ids or versions that they lack in the newest version.

    Args:
        older: Rows of `Snapshot.files` of the older version.
        newest: Rows of `Snapshot.files` of the newest version.
        indices: For each older file, its index among the newest files; null if it has none.
    """
    found = pa.array([False] * older.num_rows, pa.bool_())
    for name in ("baseRowId", "defaultRowCommitVersion"):
        were, are = older[name].combine_chunks(), newest[name].combine_chunks().take(indices)
        is_other = pc.fill_null(pc.not_equal(were, are), True)
        found = pc.or_(found, pc.and_(were.is_valid(), is_other))
    return found
