"""The files that a stream reads from one commit, after the commit passed its rules (spec 11.3)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from optimist.core.changes.feed import ensure_recorded
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.commit_lines import CommitLines, FileBody, parse_commit_lines
from optimist.core.log.file_table import FILES_SCHEMA, file_actions_batch, files_table
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
)
from optimist.core.protocol.gates import ensure_readable
from optimist.core.snapshot.time_travel import list_commit_files
from optimist.core.streams.indexed_files import IndexedFiles
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.schema_rules import StreamSchema

__all__ = ["CommitReader"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitReader:
    """Reads commits for a stream.

    Attributes:
        table: The table.
        schema: The schema that the rows are read by.
        options: The stream's options.
    """

    table: TableRef
    schema: StreamSchema
    options: StreamOptions

    def files(self, version: int, latest: int) -> IndexedFiles:
        """Return a commit's files for the stream, with indexes as in offsets.

        Args:
            version: The version of the commit.
            latest: The newest version of the table.

        Raises:
            TableError: The commit is no longer in the log (kind
                `DELTA_MISSING_FILES_UNEXPECTED_VERSION`), changes earlier rows (kinds
                `DELTA_SOURCE_TABLE_IGNORE_CHANGES`, `DELTA_SOURCE_IGNORE_DELETE`), or replaces the
                table.
            SchemaError: It changes the schema.
            ProtocolError: Its rows need features that this engine can't read.
        """
        path = commit_path(self.table.log_path, version)
        try:
            data = self.table.store.read_bytes(path)
        except LogFileNotFoundError:
            return self.missing(version, latest)
        lines = parse_commit_lines(data, path)
        change = self._new_schema(lines, version)
        return replace(self._files_of_lines(lines, version), change=change)

    def _files_of_lines(self, lines: CommitLines, version: int) -> IndexedFiles:
        if self.options.read_changes:
            return _files_of_changes(lines, self.options.exclude_regex)
        adds = [body for body in _changing_rows(lines.file_actions) if _is_add(body)]
        removed = next(
            (body for body in _changing_rows(lines.file_actions) if not _is_add(body)), None
        )
        if removed is not None:
            self._ensure_allowed(version, _path_of(removed), lines, has_adds=bool(adds))
            if self.options.skip_change_commits:
                return IndexedFiles.none()
        if not adds:
            return IndexedFiles.none()
        batch = file_actions_batch(adds).select(FILES_SCHEMA.names)
        files = pa.Table.from_batches([batch]).cast(FILES_SCHEMA)
        return IndexedFiles.of(files, self.options.exclude_regex)

    def _new_schema(self, lines: CommitLines, version: int) -> StreamSchema | None:
        """Return the stream's new schema from this commit on, if it tracks schemas.

        Otherwise make sure that it can read the commit's files by its schema.
        """
        metadata: Metadata | None = None
        protocol: Protocol | None = None
        for action in lines.actions:
            if isinstance(action, Metadata):
                metadata = action
                if not self.schema.is_tracked:
                    self.schema.ensure_reads(action, version)
                if self.options.read_changes:
                    path = self.table.table_path
                    ensure_recorded(action, path, version, range(version, version + 1))
            elif isinstance(action, Protocol):
                protocol = action
                ensure_readable(
                    action,
                    self.schema.metadata,
                    table_path=self.table.table_path,
                    version=version,
                )
        return self.schema.after(version, metadata, protocol)

    def _ensure_allowed(
        self, version: int, path: str, lines: CommitLines, *, has_adds: bool
    ) -> None:
        if self.options.allows_changes or (not has_adds and self.options.allows_deletes):
            return
        infos = (action for action in lines.actions if isinstance(action, CommitInfo))
        info = next(infos, None)
        operation = "" if info is None or info.operation is None else f", a {info.operation}"
        what = "a data update" if has_adds else "deleted data"
        choices = "skipChangeCommits" if has_adds else "ignoreDeletes or skipChangeCommits"
        raise TableError(
            f"Detected {what} (for example {shown(path)}) in the source table at version {version}"
            f"{operation}. A stream only reads rows that are added. Nothing of this batch was "
            f"read. To pass over such commits, set the option {choices}; to have the changes "
            "themselves downstream, start from the whole table with a new checkpoint and output.",
            kind="DELTA_SOURCE_TABLE_IGNORE_CHANGES" if has_adds else "DELTA_SOURCE_IGNORE_DELETE",
            version=version,
            removedFile=path,
        )

    def missing(self, version: int, latest: int) -> IndexedFiles:
        """Return the files of a commit that is no longer in the log (see `files`).

        With `failOnDataLoss` false there are none, up to the next commit that the log has.
        """
        held = list_commit_files(self.table.store, self.table.log_path, version, latest)
        earliest = held[0][0] if held else latest + 1
        if not self.options.fail_on_data_loss:
            _LOG.warning(
                "The stream over %s continues without the versions %s to %s, which are no longer "
                "in the log.",
                self.table.table_path,
                version,
                earliest - 1,
            )
            return replace(IndexedFiles.none(), lost_until=earliest)
        raise TableError(
            f"The stream from the Delta table {self.table.table_path} was expecting process data "
            f"from version {version}, but the earliest available version in the _delta_log "
            f"directory is {earliest}. Older commits were removed after "
            "delta.logRetentionDuration. Nothing of this batch was read. Start the stream with a "
            "new checkpoint; or set the option failOnDataLoss to false, to continue without "
            "these rows.",
            kind="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            startVersion=version,
            earliestVersion=earliest,
        )


def _files_of_changes(lines: CommitLines, exclude_regex: str | None) -> IndexedFiles:
    """Return the files that record a commit's changes, in the order of its lines.

    As in delta-spark 4.4, no batch splits change files, whose rows belong together in pairs, or a
    commit with deletion vectors, whose file may be removed and added. Any other commit can be split
    between any two of its adds and removes.
    """
    recorded = [item for item in lines.actions if isinstance(item, AddCDCFile)]
    changing = [] if recorded else list(_changing_rows(lines.file_actions))
    sized = [(item.path, item.size) for item in recorded]
    sized += [(_path_of(body), _size_of(body)) for body in changing]
    files = files_table(AddFile(path, {}, size, 0, data_change=True) for path, size in sized)
    if recorded or any(_has_vector(body) for body in changing):
        return IndexedFiles.whole(files, exclude_regex)
    return IndexedFiles.of(files, exclude_regex)


def _changing_rows(bodies: Iterable[FileBody]) -> Iterable[FileBody]:
    """Yield the file actions that change the table's rows."""
    for body in bodies:
        if isinstance(body, AddFile | RemoveFile):
            if body.data_change:
                yield body
        elif body.get("dataChange", True) is not False:
            yield body


def _is_add(body: FileBody) -> bool:
    if isinstance(body, AddFile | RemoveFile):
        return isinstance(body, AddFile)
    return bool(body["isAdd"])


def _has_vector(body: FileBody) -> bool:
    if isinstance(body, AddFile | RemoveFile):
        return body.deletion_vector is not None
    return body.get("deletionVector") is not None


def _size_of(body: FileBody) -> int:
    size = body.size if isinstance(body, AddFile | RemoveFile) else body.get("size")
    return size or 0


def _path_of(body: FileBody) -> str:
    return body.path if isinstance(body, AddFile | RemoveFile) else str(body["path"])
