"""VACUUM: delete the files that no version within the retention period needs (spec 10.12).

1. The retention is checked. It gives the time before which removed files are dead.
2. Candidates are found, page by page: from a listing of the table's directory (FULL), from the log
   (LITE), or from a list that the caller gives. Of listed files, only old ones count.
3. Files that the newest version keeps are filtered out. The others are stored on the local disk.
   Then the writers' intents are listed, and files that they may protect are filtered out.
4. VACUUM START is committed with the number of files.
5. The newest version is read once more, since a writer may have committed older files meanwhile.
   Files that this version does not keep either are deleted, and on a disk then empty directories.
6. VACUUM END is committed.

If a run is killed, the next run finds the rest. Step 5 makes that safe: it deletes only files that
existed before the version that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.listed_files import listed_pages
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import StorageError, UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.errors.html_repr import field_html
from optimist.core.errors.kinds import NO_SPACE
from optimist.core.maintenance.vacuum.dead_files import DeadFiles
from optimist.core.maintenance.vacuum.file_deletion import DeleteFiles, Deletion, delete_here
from optimist.core.maintenance.vacuum.heeded_intents import HeededIntents, RecordedRemovals
from optimist.core.maintenance.vacuum.hidden_names import HiddenNames
from optimist.core.maintenance.vacuum.inventory import inventory_pages
from optimist.core.maintenance.vacuum.kept_paths import KeptPaths
from optimist.core.maintenance.vacuum.removed_in_log import (
    CommitsToVacuum,
    record_vacuumed,
    removed_pages,
)
from optimist.core.maintenance.vacuum.retention import Retention
from optimist.core.maintenance.vacuum.tables_below import TablesBelow
from optimist.core.paths import join, scheme_of
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["VacuumProgress", "VacuumRequest", "Vacuumed", "vacuum"]

_LOGGED_SCHEMES = ("", "file", "wasbs", "wasbss", "abfs", "abfss", "adl", "gs", "hdfs")
"""The schemes of tables whose VACUUMs are committed by default."""


@dataclass(frozen=True, slots=True)
class VacuumProgress:
    """The progress of a VACUUM.

    Attributes:
        num_listed: The number of files that were looked at.
        num_dead: The number of files to delete.
        num_deleted: The number of files that are deleted.
    """

    num_listed: int
    num_dead: int
    num_deleted: int


@dataclass(frozen=True, slots=True)
class VacuumRequest:
    """The request for a VACUUM.

    Attributes:
        retention_hours: The hours for which removed files are kept; None for the table's property.
        dry_run: Whether nothing is deleted.
        mode: `FULL`, `LITE`, or None for the mode of the options.
        inventory: Batches with the files to look at instead of a listing; see `inventory_pages`.
        progress: Called after each page, and after each batch of deletions.
        delete: Deletes the files.
        kept_versions: Older versions whose files are kept, too.
    """

    retention_hours: float | None = None
    dry_run: bool = False
    mode: str | None = None
    inventory: Iterable[pa.RecordBatch] | None = None
    progress: Callable[[VacuumProgress], None] | None = None
    delete: DeleteFiles = delete_here
    kept_versions: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of a VACUUM, or of its dry run.

    Attributes:
        num_files: The number of files.
        size_bytes: Their known sizes, summed.
        paths: Their full paths for a dry run, otherwise empty.
        num_live_intents: The number of writers' intents that it respected.
        stale_intents: The intents that protect nothing any more, each with its name and the
            evidence.
    """

    num_files: int
    size_bytes: int
    paths: pa.Array = field(repr=False)
    num_live_intents: int = 0
    stale_intents: tuple[str, ...] = ()

    _repr_html_ = field_html


def vacuum(start: Callable[[], OptimisticTransaction], request: VacuumRequest) -> Vacuumed:
    """Delete the files that no version within the retention period needs.

    Args:
        start: Begins a transaction on the newest version.
        request: The mode, the retention and the callbacks.

    Raises:
        UsageError: The retention or the mode is wrong; see `Retention`. Nothing was deleted.
        ProtocolError: The table has a feature that this engine can't write. Nothing was deleted.
        TableError: The log is damaged, or LITE can't find out what to delete (kind
            `DELTA_CANNOT_VACUUM_LITE`). Nothing was deleted.
        StorageError: The store failed. Some files may be deleted; run it again to continue.
    """
    return _Vacuum(start, request).run()


class _Vacuum:
    """One VACUUM, for one run and one thread."""

    def __init__(self, start: Callable[[], OptimisticTransaction], request: VacuumRequest) -> None:
        txn = start()
        txn.ensure_writable()
        self._start = start
        self._request = request
        self._snapshot = txn.snapshot
        self._table: TableRef = txn.table
        self._is_lite = _is_lite(request, txn.table.options.vacuum_lite_enabled)
        options = txn.table.options
        self._retention = Retention.of(txn.snapshot, request.retention_hours, options)
        self._before_ms = txn.table.clock.now_ms() - self._retention.kept_ms
        self._names = HiddenNames.of(txn.snapshot)
        self._num_listed = self._num_directories = 0

    def run(self) -> Vacuumed:
        commits = CommitsToVacuum.of(
            self._table, self._snapshot, self._before_ms, is_lite=self._is_lite
        )
        with DeadFiles() as found, DeadFiles() as ours, DeadFiles() as unguarded:
            self._collect_dead(self._find_candidates(commits), found)
            # Only now; see `heeded_intents`.
            is_dry = self._request.dry_run
            intents = HeededIntents.find(self._table, removes_stale=not is_dry)
            dead = self._without_guarded(self._without_those_apart(found, ours), unguarded, intents)
            result = partial(
                Vacuumed, num_live_intents=intents.num_live, stale_intents=intents.stale
            )
            if is_dry:
                return result(dead.num_files, dead.size_bytes, self._full_paths(dead))
            log = _VacuumLog(self._table, self._start)
            log.begin(self._retention, dead)
            num_deleted, size_bytes = self._delete_files(dead, log)
        # What a LITE is not to look at again must be gone, and an older version may have kept it.
        if self._request.inventory is None and not self._request.kept_versions:
            record_vacuumed(self._table, commits)
        return result(num_deleted, size_bytes, pa.array([], pa.string()))

    def _find_candidates(self, commits: CommitsToVacuum) -> Iterator[pa.RecordBatch]:
        """Yield the files that may be dead, by their age or by the log."""
        if self._is_lite:
            yield from removed_pages(self._table, commits)
            return
        given = self._request.inventory
        table = self._table
        pages = (
            listed_pages(
                table.table_path, table.data_access(), self._names.enters, self._names.apart.add
            )
            if given is None
            else inventory_pages(given, table.data_paths)
        )
        for page in pages:
            modified_ms = page.column("modified_ms")
            self._count_page(page)
            # A time of 0 means unknown; such a file is not known to be old.
            is_old = pc.and_(pc.greater(modified_ms, 0), pc.less(modified_ms, self._before_ms))
            yield page.filter(is_old)

    def _count_page(self, page: pa.RecordBatch) -> None:
        num_directories = pc.sum(page.column("is_directory"), min_count=0).as_py()
        self._num_directories += num_directories
        self._num_listed += page.num_rows - num_directories

    def _collect_dead(self, candidates: Iterator[pa.RecordBatch], dead: DeadFiles) -> None:
        kept = KeptPaths(self._snapshot, self._before_ms, self._request.kept_versions)
        is_listed = not self._is_lite and self._request.inventory is None
        below = None if is_listed else TablesBelow(self._table, self._names)
        for page in candidates:
            found = self._dead_of(page, kept)
            if below is not None:
                below.look_above(found.column("path"))
            dead.add(found)
            self._report_progress(dead, 0)

    def _dead_of(self, page: pa.RecordBatch, kept: KeptPaths) -> pa.RecordBatch:
        page = page.filter(pc.invert(kept.are_kept(page.column("path"))))
        paths, is_named = page.column("path").to_pylist(), self._is_lite
        shows = [self._names.shows(path, is_named=is_named) for path in paths]
        return page.filter(pa.array(shows, pa.bool_()))

    def _delete_files(self, dead: DeadFiles, log: _VacuumLog) -> tuple[int, int]:
        result = partial(self._report_progress, dead)
        deletion = Deletion(self._table, result, self._request.delete)
        size_bytes, is_completed = 0, False
        try:
            directories: list[str] = []
            for page in self._still_dead(dead):
                is_directory = page.column("is_directory")
                files = page.filter(pc.invert(is_directory))
                deletion.delete(files.column("path"))
                size_bytes += pc.sum(files.column("size"), min_count=0).as_py()
                directories += page.filter(is_directory).column("path").to_pylist()
            deletion.delete_empty_directories(directories)
            is_completed = True
        finally:
            log.end(
                is_completed=is_completed,
                num_files=deletion.num_files,
                num_directories=self._num_directories + 1,
            )
        return deletion.num_files, size_bytes

    def _without_those_apart(self, found: DeadFiles, ours: DeadFiles) -> DeadFiles:
        """Filter out files in directories that are other tables or targets of links."""
        if not self._names.apart:
            return found
        for page in found.batches():
            are_ours = [
                not self._names.lies_apart(path) for path in page.column("path").to_pylist()
            ]
            ours.add(page.filter(pa.array(are_ours, pa.bool_())))
        return ours

    def _without_guarded(
        self, found: DeadFiles, unguarded: DeadFiles, intents: HeededIntents
    ) -> DeadFiles:
        """Return the files that no writer's intent may protect: old files, and removed files."""
        if intents.since_ms is None or self._is_lite:
            return found
        removed = RecordedRemovals(self._start().snapshot, intents.since_ms)
        for page in found.batches():
            is_old = pc.less(page.column("modified_ms"), intents.since_ms)
            is_free = pc.or_(is_old, removed.are_named(page.column("path")))
            # An empty directory may be the one in which a writer makes its next file.
            is_free = pc.and_(is_free, pc.invert(page.column("is_directory")))
            unguarded.add(page.filter(is_free))
        return unguarded

    def _still_dead(self, dead: DeadFiles) -> Iterator[pa.RecordBatch]:
        """Yield the files that are still dead by a version that is newer than all of them."""
        if not dead.num_files and not dead.num_directories:
            return
        kept = KeptPaths(self._start().snapshot, self._before_ms, self._request.kept_versions)
        for page in dead.batches():
            yield page.filter(pc.invert(kept.are_kept(page.column("path"))))

    def _full_paths(self, dead: DeadFiles) -> pa.Array:
        root = join(self._table.table_path, "")
        found = [pa.array([], pa.string())]
        for page in dead.batches():
            names = page.filter(pc.invert(page.column("is_directory"))).column("path")
            found.append(pc.binary_join_element_wise(root, names, ""))
        return pa.concat_arrays(found)

    def _report_progress(self, dead: DeadFiles, num_deleted: int) -> None:
        if self._request.progress is not None:
            result = VacuumProgress(self._num_listed, dead.num_files, num_deleted)
            self._request.progress(result)


def _is_lite(request: VacuumRequest, default: bool) -> bool:
    mode = request.mode
    if mode is not None and mode.upper() not in ("FULL", "LITE"):
        raise UsageError(
            f"The mode {quoted(mode)} of VACUUM is unknown. Nothing was deleted. Use FULL or LITE.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="mode",
        )
    if request.inventory is not None:
        if mode is not None and mode.upper() == "LITE":
            raise UsageError(
                "VACUUM LITE finds the files to delete in the log, so it can't use an inventory. "
                "Nothing was deleted. Leave out LITE or the inventory.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="inventory",
            )
        return False
    return default if mode is None else mode.upper() == "LITE"


class _VacuumLog:
    """Commits the start and the end of a VACUUM, where that is on (spec 8.1, 8.3).

    Args:
        table: The table.
        start: Begins a transaction on its newest version.
    """

    def __init__(self, table: TableRef, start: Callable[[], OptimisticTransaction]) -> None:
        asked = table.options.vacuum_logging_enabled
        self._is_on = scheme_of(table.table_path) in _LOGGED_SCHEMES if asked is None else asked
        self._start = start
        self._uncommitted: Operation | None = None

    def begin(self, retention: Retention, dead: DeadFiles) -> None:
        """Commit what is about to be deleted, but on a full disk only once there is room."""
        parameters: dict[str, object] = {
            "retentionCheckEnabled": retention.is_checked,
            "defaultRetentionMillis": retention.default_ms,
        }
        if retention.specified_ms is not None:
            parameters["specifiedRetentionMillis"] = retention.specified_ms
        metrics = {"numFilesToDelete": dead.num_files, "sizeOfDataToDelete": dead.size_bytes}
        operation = Operation("VACUUM START", parameters).with_metrics(metrics)
        try:
            self._commit(operation)
        except StorageError as error:
            if error.kind != NO_SPACE:
                raise
            self._uncommitted = operation  # VACUUM is what makes room

    def end(self, *, is_completed: bool, num_files: int, num_directories: int) -> None:
        """Commit what was deleted, and how the VACUUM ended."""
        if self._uncommitted is not None:
            self._commit(self._uncommitted)
        status = "COMPLETED" if is_completed else "FAILED"
        metrics = {"numDeletedFiles": num_files, "numVacuumedDirectories": num_directories}
        self._commit(Operation("VACUUM END", {"status": status}).with_metrics(metrics))

    def _commit(self, operation: Operation) -> None:
        if self._is_on:
            self._start().commit((), operation)
