"""VACUUM LITE: find the files to delete in the log alone (spec 10.12).

The commits since the last VACUUM and before the retention period name the files that they removed
and the change files that they wrote. No directory is listed, so files that no commit has named
stay. `_last_vacuum_info` in the log says how far the last VACUUM came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from optimist.core.data.storage.listed_files import LISTED_SCHEMA
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.log.commits import read_commit
from optimist.core.log.file_table import file_actions_batch
from optimist.core.maintenance.vacuum.kept_paths import relative_paths, relative_vector_paths
from optimist.core.paths import join
from optimist.core.protocol.actions import Action, AddCDCFile, RemoveFile
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import list_commit_files
from optimist.core.values.foreign_json import parse_json

__all__ = ["CommitsToVacuum", "record_vacuumed", "removed_pages"]

LAST_VACUUM = "_last_vacuum_info"
_KEY = "latestCommitVersionOutsideOfRetentionWindow"


@dataclass(frozen=True, slots=True)
class CommitsToVacuum:
    """A range of commits that are older than the retention period.

    Attributes:
        first: The first version that no VACUUM has handled.
        last: The last version; below `first` if there are none.
    """

    first: int
    last: int

    @classmethod
    def of(
        cls, table: TableRef, snapshot: Snapshot, delete_before_ms: int, *, is_lite: bool
    ) -> CommitsToVacuum:
        """Find the commits in the log.

        Raises:
            TableError: For LITE, some of these commits were cleaned up (kind
                `DELTA_CANNOT_VACUUM_LITE`).
        """
        first = _last_vacuumed(table, snapshot.version) + 1
        commits = list_commit_files(table.store, table.log_path, 0, snapshot.version)
        if is_lite and (not commits or commits[0][0] > first):
            raise TableError(
                "VACUUM LITE can't find out from the log what to delete: it no longer has the "
                f"commits from version {first} on. Nothing was deleted. Run VACUUM FULL. LITE "
                "continues from it, if the log's first commit was older than the retention then.",
                kind="DELTA_CANNOT_VACUUM_LITE",
                first_needed=first,
                first_there=commits[0][0] if commits else None,
            )
        if not is_lite and commits and commits[0][1].modified_ms < delete_before_ms:
            # A listing finds the files that earlier commits removed; they are even older.
            first = max(first, commits[0][0])
        last = first - 1
        for version, status in commits:
            if version == last + 1 and status.modified_ms < delete_before_ms:
                last = version
        return cls(first, last)


def removed_pages(table: TableRef, commits: CommitsToVacuum) -> Iterator[pa.RecordBatch]:
    """Yield a batch of `LISTED_SCHEMA` per commit, with its removed files and change files."""
    listed = list_commit_files(table.store, table.log_path, commits.first, commits.last)
    for _, status in listed:
        page = _removed_files(read_commit(table.store, status.path), table)
        if page.num_rows:
            yield page


def record_vacuumed(table: TableRef, commits: CommitsToVacuum) -> None:
    """Record for the next VACUUM LITE that these commits were handled."""
    body = json.dumps({_KEY: commits.last}, separators=(",", ":"))
    table.store.put_overwrite(join(table.log_path, LAST_VACUUM), body.encode())


def _last_vacuumed(table: TableRef, newest: int) -> int:
    try:
        text = table.store.read_bytes(join(table.log_path, LAST_VACUUM)).decode("utf-8")
        version = parse_json(text)[_KEY]
    except LogFileNotFoundError:
        return -1
    except (ValueError, LookupError, TypeError):
        return -1  # it is a hint: without it, more commits are read
    # A version in the future belongs to another log that was at this path before.
    return version if type(version) is int and -1 <= version <= newest else -1


def _removed_files(actions: tuple[Action, ...], table: TableRef) -> pa.RecordBatch:
    removes = [action for action in actions if isinstance(action, RemoveFile)]
    known: list[RemoveFile | AddCDCFile] = [*removes]
    known += (action for action in actions if isinstance(action, AddCDCFile))
    data = relative_paths(pa.array([a.path for a in known], pa.string()), table.data_paths)
    removed = pa.Table.from_batches([file_actions_batch(removes)])
    vectors = relative_vector_paths(removed, table.data_paths)
    sizes = pa.array([a.size or 0 for a in known] + [0] * len(vectors), pa.int64())
    paths = pa.concat_arrays([data, vectors])
    count = len(paths)
    columns = [paths, sizes, pa.array([0] * count, pa.int64()), pa.array([False] * count)]
    return pa.RecordBatch.from_arrays(columns, schema=LISTED_SCHEMA).filter(paths.is_valid())
