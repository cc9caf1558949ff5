"""Action reconciliation (spec 5.6): from a log segment to the state of the table at its version.

Two halves that cost differently. The *table state* (protocol, metadata, transactions, domains) is
small and read at once. The *files* are as many as the table has: they stay Arrow from the
checkpoint on, are read at first use, and later commits wait beside them until somebody looks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from optimist.core.errors import LogFileNotFoundError, OptimistError, TableError
from optimist.core.log.commit_lines import FileBody, parse_commit_lines
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.compacted import is_compacted
from optimist.core.log.file_set import Change, FileSet
from optimist.core.log.file_table import FILES_SCHEMA, TOMBSTONES_SCHEMA, file_actions_batch
from optimist.core.log.segment import LogSegment, older_segment
from optimist.core.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    malformed_commit,
)

__all__ = ["LogState", "TableState", "replay", "with_actions", "with_commits"]

_Part = TypeVar("_Part")
_logger = logging.getLogger(__name__)
_BATCH_ACTIONS = 50_000
_UNREADABLE_CHECKPOINT = frozenset({"OPTIMIST_MALFORMED_CHECKPOINT", "DELTA_MISSING_PART_FILES"})


@dataclass(frozen=True, slots=True)
class TableState:
    """What a version says beside its files.

    Attributes:
        protocol: The last protocol, None if there is none.
        metadata: The last metadata, None if there is none.
        set_transactions: The last one per application id, expired ones included.
        domain_metadata: The last one per domain; removed ones are gone.
        commit_info: That of the last commit that was replayed, None if it had none or none was.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    set_transactions: Mapping[str, SetTransaction] = field(default_factory=dict)
    domain_metadata: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None

    def after(self, actions: Iterable[Action]) -> TableState:
        """The state after one commit; file actions, cdc and unknown actions are passed over."""
        changes: dict[str, Any] = {"commit_info": None}
        transactions: dict[str, SetTransaction] = {}
        domains: dict[str, DomainMetadata] = {}
        for action in actions:
            if isinstance(action, Protocol):
                changes["protocol"] = action
            elif isinstance(action, Metadata):
                changes["metadata"] = action
            elif isinstance(action, SetTransaction):
                transactions[action.app_id] = action
            elif isinstance(action, DomainMetadata):
                domains[action.domain] = action
            elif isinstance(action, CommitInfo):
                changes["commit_info"] = action
        if transactions:
            changes["set_transactions"] = {**self.set_transactions, **transactions}
        if domains:
            merged = {**self.domain_metadata, **domains}
            changes["domain_metadata"] = {
                name: domain for name, domain in merged.items() if not domain.removed
            }
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of a version: table state, live files, and tombstones (expired ones included)."""

    table: TableState
    files: FileSet
    tombstones: FileSet

    @classmethod
    def empty(cls) -> LogState:
        """The state before the first commit."""
        return cls(
            TableState(),
            FileSet(FILES_SCHEMA, of_adds=True),
            FileSet(TOMBSTONES_SCHEMA, of_adds=False),
        )


def replay(
    store: LogStore, segment: LogSegment, *, max_retries: int, use_compacted: bool = True
) -> LogState:
    """The state of the segment's version.

    A checkpoint that can't be read is passed over for the next best, up to `max_retries` times
    (`snapshotLoading.maxRetries`), also when that comes out only as the files are looked at.
    Compacted commits that can't be read are passed over for the commits themselves.

    Args:
        store: Where the log is.
        segment: The files of the version.
        max_retries: How many more checkpoints may be tried.
        use_compacted: Whether compacted commits are read in place of commits.

    Raises:
        TableError: A commit is damaged (kind `OPTIMIST_MALFORMED_COMMIT`), or no checkpoint can be
            read (kind `OPTIMIST_MALFORMED_CHECKPOINT`, or `DELTA_MISSING_PART_FILES` for a missing
            sidecar).
    """
    if segment.checkpoint is None:
        base = LogState.empty()
    else:
        base = _CheckpointState(store, segment, max_retries).state()
    if use_compacted and segment.compacted:
        try:
            return with_commits(base, store, segment.deltas)
        except (TableError, LogFileNotFoundError) as error:
            # If it was a commit that is damaged, reading the commits says so.
            _logger.warning("Commits are read one by one instead of compacted: %s", error)
    return with_commits(base, store, segment.commits)


def with_commits(state: LogState, store: LogStore, commits: tuple[FileStatus, ...]) -> LogState:
    """The state after further commits of the log, in order; compacted ones may be among them.

    Raises:
        TableError: A commit is damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
    """
    waiting: list[FileBody] = []
    first = 0
    newest = len(commits) - 1
    for index, data in enumerate(read_commits_bytes(store, commits)):
        # The commitInfo of compacted commits is of one of them, maybe not of the last.
        with_info = index == newest and not is_compacted(commits[index])
        lines = parse_commit_lines(data, commits[index].path, with_info=with_info)
        if lines.actions or index == newest:
            table = state.table.after(lines.actions)
            state = replace(state, table=table if with_info else replace(table, commit_info=None))
        waiting.extend(lines.file_actions)
        if len(waiting) >= _BATCH_ACTIONS or index == newest:
            state = _with_parsed(state, waiting, commits[first : index + 1])
            waiting, first = [], index + 1
    return state


def with_actions(state: LogState, actions: Iterable[Action]) -> LogState:
    """The state after a commit of ours, whose actions are known without reading them back."""
    actions = tuple(actions)
    changed = replace(state, table=state.table.after(actions))
    return _with_batch(
        changed, [item for item in actions if isinstance(item, AddFile | RemoveFile)]
    )


def _with_parsed(
    state: LogState, bodies: list[FileBody], commits: tuple[FileStatus, ...]
) -> LogState:
    try:
        return _with_batch(state, bodies)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        where = commits[0].path if len(commits) == 1 else f"{commits[0].path} or one after it"
        raise malformed_commit(where, f"a field is not of its type ({error})") from None


def _with_batch(state: LogState, actions: Sequence[FileBody]) -> LogState:
    if not actions:
        return state
    batch = file_actions_batch(actions)
    return replace(
        state,
        files=state.files.with_actions(batch),
        tombstones=state.tombstones.with_actions(batch),
    )


class _CheckpointState:
    """What a checkpoint says, or an older one if it is damaged; read part by part, as asked for.

    The fallback is a whole state of the same version, built from an older checkpoint and the
    commits between, so that it does not matter which part turned out to be unreadable, or when.
    """

    def __init__(self, store: LogStore, segment: LogSegment, max_retries: int) -> None:
        assert segment.checkpoint is not None
        self._store = store
        self._segment = replace(
            segment,
            version=segment.checkpoint.version,
            commits=(),
            checksum_file=None,
            compacted=(),
        )
        self._checkpoint = segment.checkpoint
        self._reader = segment.checkpoint.open(store)
        self._max_retries = max_retries
        self._mutex = threading.Lock()
        self._fallback: LogState | None = None

    def state(self) -> LogState:
        """The state at the checkpoint's version; only the small part is read now."""
        table = self._read(
            lambda: TableState().after(self._reader.state_actions()),
            lambda older: older.table,
        )
        return LogState(
            replace(table, commit_info=None),
            FileSet(
                FILES_SCHEMA,
                of_adds=True,
                load=self._load_files,
                stream=self._reader.live_files,
            ),
            FileSet(
                TOMBSTONES_SCHEMA,
                of_adds=False,
                load=self._load_tombstones,
                stream=self._reader.tombstones,
            ),
        )

    def _load_files(self, change: Change) -> tuple[pa.RecordBatch, ...]:
        return self._read(
            lambda: tuple(map(change, self._reader.live_files())),
            lambda older: tuple(map(change, older.files.batches())),
        )

    def _load_tombstones(self, change: Change) -> tuple[pa.RecordBatch, ...]:
        return self._read(
            lambda: tuple(map(change, self._reader.tombstones())),
            lambda older: tuple(map(change, older.tombstones.batches())),
        )

    def _read(self, read: Callable[[], _Part], from_older: Callable[[LogState], _Part]) -> _Part:
        with self._mutex:
            if self._fallback is None:
                try:
                    return read()
                except LogFileNotFoundError as error:
                    self._fallback = self._replayed_from_older(error)
                except TableError as error:
                    if error.kind not in _UNREADABLE_CHECKPOINT:
                        raise
                    self._fallback = self._replayed_from_older(error)
        return from_older(self._fallback)

    def _replayed_from_older(self, error: OptimistError) -> LogState:
        older = older_segment(self._store, self._segment) if self._max_retries > 0 else None
        if older is None:
            raise error
        _logger.warning(
            "The checkpoint of version %d can't be used; version %d is rebuilt from %s instead: %s",
            self._checkpoint.version,
            self._checkpoint.version,
            f"the checkpoint of version {older.checkpoint_version}"
            if older.checkpoint
            else "its commits",
            error,
        )
        return replay(self._store, older, max_retries=self._max_retries - 1)
