"""CLONE: make a table with the rows, metadata and protocol of another table (spec 10.13).

The source is a version of a Delta table, or files of Parquet or Iceberg (`clone_source`).

1. The path is checked as for CREATE TABLE. A table that exists there must have no files.
2. The metadata are the source's, with another id and the properties that the caller asks for.
3. The files are the source's. A shallow clone names them by absolute paths and copies nothing. A
   deep clone copies them first (`copied_files`).
4. The commit is tried once.

A clone begins with the newest version or an older version of its source. Afterwards, neither table
sees the other's changes. A shallow clone needs the files of its source for as long as it names
them, and VACUUM of the source does not know about the clone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.create.create import nothing_to_replace, table_exists
from optimist.core.commands.create.vacant_place import ensure_vacant
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.errors import (
    ConcurrentWriteException,
    SchemaError,
    UsageError,
)
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.html_repr import field_html
from optimist.core.errors.short_repr import short_repr
from optimist.core.log.file_table import with_column
from optimist.core.log.many_files import ManyFiles
from optimist.core.maintenance.copies.clone_source import CloneContent, CloneSource
from optimist.core.maintenance.copies.cloned_files import with_absolute_paths
from optimist.core.maintenance.copies.cloned_metadata import (
    cloned_domains,
    cloned_metadata,
    ensure_possible,
    shared_metadata,
)
from optimist.core.maintenance.copies.copied_files import CopyFiles, copied_files, copy_here
from optimist.core.maintenance.vector_files import vector_paths
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.requests.table_definition import CreateMode
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.row_ids import is_row_tracking_on
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.values.exact_sums import exact_sum

__all__ = ["CloneRequest", "ClonedTable", "clone"]


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """The source of a CLONE and how it is cloned.

    Attributes:
        source: The table to clone.
        is_shallow: Whether the clone only names the files and copies none.
        mode: What to do if a table exists at the path.
        properties: Properties that replace the source's or are added to them.
        copy: Makes the copies of a deep clone.
        before_commit: Is called once the files are there. If it raises, nothing is committed.
    """

    source: CloneSource
    is_shallow: bool = False
    mode: CreateMode = CreateMode.CREATE
    properties: Mapping[str, str] = field(default_factory=dict)
    copy: CopyFiles = copy_here
    before_commit: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class ClonedTable:
    """The result of a CLONE, with the names of Delta's columns.

    Attributes:
        version: The version that the clone committed.
        source_table_size: The sizes of the source's files, summed.
        source_num_of_files: How many files the source has.
        num_removed_files: Always 0, since a table with files is not replaced.
        num_copied_files: The number of copied files; 0 for a shallow clone.
        removed_files_size: Always 0.
        copied_files_size: The sizes of the copied files, summed.
    """

    version: int
    source_table_size: int
    source_num_of_files: int
    num_removed_files: int = 0
    num_copied_files: int = 0
    removed_files_size: int = 0
    copied_files_size: int = 0

    __repr__ = short_repr
    _repr_html_ = field_html


def clone(txn: OptimisticTransaction, request: CloneRequest) -> ClonedTable | None:
    """Make a table from a version of another table.

    Args:
        txn: A transaction that has just begun, at the path of the clone.
        request: The source and how it is cloned.

    Returns:
        The result; None if a table exists and the mode says to keep it.

    Raises:
        UsageError: A table exists already (kind `DELTA_TABLE_ALREADY_EXISTS`), it has files
            (`DELTA_UNSUPPORTED_NON_EMPTY_CLONE`), it is the source
            (`DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE`), or the directory has other files
            (`DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
        TableNotFoundError: The table to replace does not exist.
        SchemaError: The modes of column mapping differ (kind
            `DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE`); or the rows are to be tracked and a
            file has no row count (`DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS`).
        TableError: Files of the source are gone, or the clone may not read them at their paths.
        OptimistError: Files of another format can't be a Delta table; see `files_found`.
        ConcurrentWriteException: Another commit came first.

    If one of these is raised, nothing is committed. Copies that a deep clone has made stay, and the
    next call continues from them.
    """
    if not _is_to_be_made(txn, request):
        return None
    txn.ensure_writable()
    ensure_possible(request.properties, txn.table.options)
    source = request.source.read(txn.table, is_copied=not request.is_shallow)
    origin = request.source.origin if request.is_shallow else {}
    metadata = cloned_metadata(txn, source.metadata, request.properties, origin)
    shared = shared_metadata(source.metadata)
    txn.update_metadata_for_table_clone(metadata, shared, source.protocol)
    _ensure_rows_can_be_numbered(txn, request.source, source)
    try:
        return _commit_clone(txn, request, source)
    except ConcurrentWriteException:
        if request.mode is CreateMode.CREATE_IF_NOT_EXISTS:
            return None
        raise


def _commit_clone(
    txn: OptimisticTransaction, request: CloneRequest, source: CloneContent
) -> ClonedTable:
    domains = cloned_domains(source.domains, txn.snapshot.domain_metadata)
    with UncommittedFiles(txn) as written:
        files = _files_of_clone(txn, request, source, written)
        source.ensure_unchanged()
        if request.before_commit is not None:
            request.before_commit()
        done = _clone_result(txn, request, source)
        now_ms = txn.table.clock.now_ms()
        added = ManyFiles(_as_new_files(files), files.slice(0, 0), now_ms, source.origin)
        written.commit_large(txn, domains, _clone_operation(done, request, source), added)
    return done


def _is_to_be_made(txn: OptimisticTransaction, request: CloneRequest) -> bool:
    """Tell whether to make the clone, or keep the table that exists."""
    if txn.read_version < 0:
        if request.mode is CreateMode.REPLACE:
            raise nothing_to_replace(txn)
        copies = () if request.is_shallow else (request.source.copies,)
        ensure_vacant(txn.table, but_for=copies)
        return True
    if request.mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return False
    if not request.mode.replaces:
        raise table_exists(txn)
    if txn.table.table_path == request.source.table.table_path:
        raise _cannot_replace(
            txn,
            "it is the source itself. Clone it to another path; to bring back an older version, "
            "use RESTORE",
            "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
        )
    if txn.filter_files().num_rows:
        raise _cannot_replace(
            txn,
            "it has rows. Delete them first (TRUNCATE TABLE), or clone to another path",
            "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
        )
    return True


def _ensure_rows_can_be_numbered(
    txn: OptimisticTransaction, origin: CloneSource, source: CloneContent
) -> None:
    if not is_row_tracking_on(txn.protocol, txn.metadata):
        return
    schema = TableMetadata.of(source.metadata).schema
    is_unknown = pc.is_null(FileStatistics(source.files, schema).num_records)
    for path in source.files.filter(is_unknown).slice(0, 1)["path"].to_pylist():
        raise SchemaError(
            f"The rows of a clone of {shown(origin.table.table_path)} can't be numbered, as its "
            f"feature rowTracking demands: the file {shown(path)} has no row count (numRecords in "
            "its statistics). Nothing was written. Write these rows again, or have the statistics "
            "computed.",
            kind="DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS",
            path=path,
        )


def _files_of_clone(
    txn: OptimisticTransaction,
    request: CloneRequest,
    source: CloneContent,
    written: UncommittedFiles,
) -> pa.Table:
    """Return the clone's files: copies, or the source's files if the clone may read them."""
    origin, table = request.source, txn.table
    if not request.is_shallow:
        return copied_files(
            origin.table, source.files, table, origin.copies, written.register_path, request.copy
        )
    files = with_absolute_paths(source.files, origin.table.data_paths)
    for chunk in files["path"].chunks:
        table.data_paths.full_paths(chunk)
    vector_paths(files, table.data_paths)
    return files


def _as_new_files(files: pa.Table) -> pa.Table:
    """Clear the row ids of the source, so that the clone's commit assigns its own."""
    files = with_column(files, "dataChange", pa.repeat(pa.scalar(True), files.num_rows))
    for name in ("baseRowId", "defaultRowCommitVersion"):
        files = with_column(files, name, pa.nulls(files.num_rows, pa.int64()))
    return files


def _clone_result(
    txn: OptimisticTransaction, request: CloneRequest, source: CloneContent
) -> ClonedTable:
    size, count = exact_sum(source.files["size"]), source.files.num_rows
    copied = (0, 0) if request.is_shallow else (count, size)
    return ClonedTable(
        version=txn.read_version + 1,
        source_table_size=size,
        source_num_of_files=count,
        num_copied_files=copied[0],
        copied_files_size=copied[1],
    )


def _clone_operation(done: ClonedTable, request: CloneRequest, source: CloneContent) -> Operation:
    metrics = {
        "sourceTableSize": done.source_table_size,
        "sourceNumOfFiles": done.source_num_of_files,
        "numRemovedFiles": done.num_removed_files,
        "numCopiedFiles": done.num_copied_files,
        "removedFilesSize": done.removed_files_size,
        "copiedFilesSize": done.copied_files_size,
    }
    parameters = {"source": request.source.name, "sourceVersion": source.version}
    return Operation("CLONE", parameters).with_metrics(metrics)


def _cannot_replace(txn: OptimisticTransaction, problem: str, kind: str) -> UsageError:
    path = txn.table.table_path
    return UsageError(
        f"A clone can't replace the table {shown(path)}: {problem}. Nothing was written.",
        kind=kind,
        path=path,
    )
