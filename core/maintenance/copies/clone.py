"""CLONE: a table with the rows, the metadata and the protocol that another has (spec 10.13).

The other may be a version of a Delta table, or files of Parquet or Iceberg (`clone_source`).

1. The place decides as for CREATE TABLE; a table that is there must have no files.
2. The metadata are the source's, under another id, with the properties that the caller asks for.
3. The files are the source's. A shallow clone names them by absolute paths and copies nothing; a
   deep clone copies them first (`copied_files`).
4. One attempt is made to commit that.

A clone begins with the newest version or an older one of its source, and then goes its own way:
neither table sees what the other does later. A shallow clone needs the files of its source for as
long as it names them, and VACUUM of the source does not know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """What is to be cloned, and how.

    Attributes:
        source: What is cloned.
        is_shallow: Whether the files stay where they are.
        mode: What is done if there is a table at the place.
        properties: Properties that the clone has instead of the source's, or besides them.
        copy: Makes the copies of a deep clone.
    """

    source: CloneSource
    is_shallow: bool = False
    mode: CreateMode = CreateMode.CREATE
    properties: Mapping[str, str] = field(default_factory=dict)
    copy: CopyFiles = copy_here


@dataclass(frozen=True, slots=True)
class ClonedTable:
    """What a CLONE did; the names are those of Delta's columns.

    Attributes:
        version: The version that it made.
        source_table_size: The sizes of the source's files, summed.
        source_num_of_files: How many files the source has.
        num_removed_files: Always 0, as a table with files is not replaced.
        num_copied_files: How many files were copied; 0 for a shallow clone.
        removed_files_size: Always 0.
        copied_files_size: The sizes of the files that were copied, summed.
    """

    version: int
    source_table_size: int
    source_num_of_files: int
    num_removed_files: int = 0
    num_copied_files: int = 0
    removed_files_size: int = 0
    copied_files_size: int = 0


def clone(txn: OptimisticTransaction, request: CloneRequest) -> ClonedTable | None:
    """Make a table of another's version.

    Args:
        txn: A transaction that has just begun, at the place of the clone.
        request: What is to be cloned, and how.

    Returns:
        What was done; None if there is a table already, and the mode says to keep it.

    Raises:
        UsageError: There is a table already (kind `DELTA_TABLE_ALREADY_EXISTS`), it has files
            (`DELTA_UNSUPPORTED_NON_EMPTY_CLONE`), it is the source
            (`DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE`), or other files are at the place
            (`DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
        TableNotFoundError: There is no table to replace.
        SchemaError: The modes of column mapping differ (kind
            `DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE`), or the rows are to be tracked and a
            file does not tell how many it has (`DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS`).
        TableError: Files of the source are gone, or may not be read from the clone's place.
        OptimistError: Files that are no Delta table can't be one either; see `files_found`.
        ConcurrentWriteException: Another commit came first.

    Nothing is committed if any of these is raised. What a deep clone has copied stays, and the next
    call goes on from there.
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
        return _commit(txn, request, source)
    except ConcurrentWriteException:
        if request.mode is CreateMode.CREATE_IF_NOT_EXISTS:
            return None
        raise


def _commit(txn: OptimisticTransaction, request: CloneRequest, source: CloneContent) -> ClonedTable:
    domains = cloned_domains(source.domains, txn.snapshot.domain_metadata)
    with UncommittedFiles(txn) as written:
        files = _files(txn, request, source, written)
        source.ensure_unchanged()
        done = _done(txn, request, source)
        added = ManyFiles(_as_new(files), files.slice(0, 0), txn.table.clock.now_ms())
        written.commit_large(txn, domains, _operation(done, request, source), added)
    return done


def _is_to_be_made(txn: OptimisticTransaction, request: CloneRequest) -> bool:
    """Whether the place and the mode ask for a clone; False if the table there is kept."""
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
        raise _refused(
            txn,
            "it is the source itself. Clone it to another place; to bring back an older version, "
            "use RESTORE",
            "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
        )
    if txn.filter_files().num_rows:
        raise _refused(
            txn,
            "it has rows. Delete them first (TRUNCATE TABLE), or clone to another place",
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


def _files(
    txn: OptimisticTransaction,
    request: CloneRequest,
    source: CloneContent,
    written: UncommittedFiles,
) -> pa.Table:
    """The clone's files: copies, or the source's where the clone may read them."""
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


def _as_new(files: pa.Table) -> pa.Table:
    """Files as the clone adds them: their rows are new there, with ids that are the clone's own."""
    for name in ("baseRowId", "defaultRowCommitVersion"):
        files = with_column(files, name, pa.nulls(files.num_rows, pa.int64()))
    return files


def _done(txn: OptimisticTransaction, request: CloneRequest, source: CloneContent) -> ClonedTable:
    size, count = exact_sum(source.files["size"]), source.files.num_rows
    copied = (0, 0) if request.is_shallow else (count, size)
    return ClonedTable(
        version=txn.read_version + 1,
        source_table_size=size,
        source_num_of_files=count,
        num_copied_files=copied[0],
        copied_files_size=copied[1],
    )


def _operation(done: ClonedTable, request: CloneRequest, source: CloneContent) -> Operation:
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


def _refused(txn: OptimisticTransaction, problem: str, kind: str) -> UsageError:
    path = txn.table.table_path
    return UsageError(
        f"A clone can't replace the table {shown(path)}: {problem}. Nothing was written.",
        kind=kind,
        path=path,
    )
