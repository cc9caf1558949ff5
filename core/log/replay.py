"""Action reconciliation (spec 5.6): from a log segment to the table's state at its version.

The state has two halves that cost differently. The *table state* (protocol, metadata, transactions,
domains) is small and read at once. The *files* may be millions: they stay Arrow from the checkpoint
on and are read at first use. Until then, later commits wait beside them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from optimist.core.errors import LogFileNotFoundError, OptimistError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import MALFORMED_CHECKPOINT, MISSING_PART_FILES
from optimist.core.forking import ForkSafeLock
from optimist.core.log.checkpoint_kinds import Checkpoint
from optimist.core.log.commit_lines import FileBody, parse_commit_lines
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.compacted import NotReconciledError, ensure_reconciled, is_compacted
from optimist.core.log.file_choice import FileChoice, Use
from optimist.core.log.file_set import LARGE_BATCH_ROWS, Change, FileSet
from optimist.core.log.file_table import (
    ACTIONS_SCHEMA,
    FILES_SCHEMA,
    TOMBSTONES_SCHEMA,
    file_actions_batch,
    last_per_key,
)
from optimist.core.log.limits import DEFAULT_LIMITS, LogLimits, ensure_readable_size
from optimist.core.log.segment import LogSegment, older_segment
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import (
    Action,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    malformed_commit,
)
from optimist.core.runtime.opening_progress import told_while_opening

__all__ = [
    "UNREADABLE_CHECKPOINT",
    "LogState",
    "TableState",
    "commit_batch",
    "on_checkpoint",
    "replay",
    "with_commits",
    "with_files",
]

_Part = TypeVar("_Part")
_LOG = logging.getLogger(__name__)
_BATCH_ACTIONS = 50_000

UNREADABLE_CHECKPOINT = frozenset({MALFORMED_CHECKPOINT, MISSING_PART_FILES})
"""The kinds of error that mean that a checkpoint can't be used."""


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a version without its files.

    Attributes:
        protocol: The last protocol, or None.
        metadata: The last metadata, or None.
        set_transactions: The last one per application id, expired ones included.
        domain_metadata: The last one per domain, without removed ones.
        commit_info: The commitInfo of the last replayed commit. None if it has none, or without a
            replayed commit.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    set_transactions: Mapping[str, SetTransaction] = field(default_factory=dict)
    domain_metadata: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None

    def after(self, actions: Iterable[Action]) -> TableState:
        """Return the state after one commit, and ignore file, cdc and unknown actions."""
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
        """Return the state before the first commit."""
        return cls(
            TableState(),
            FileSet(FILES_SCHEMA, of_adds=True),
            FileSet(TOMBSTONES_SCHEMA, of_adds=False),
        )


def replay(
    store: LogStore,
    segment: LogSegment,
    *,
    max_retries: int,
    use_compacted: bool = True,
    limits: LogLimits = DEFAULT_LIMITS,
) -> LogState:
    """Return the state of the segment's version.

    If a checkpoint can't be read, the next best replaces it, up to `max_retries` times
    (`snapshotLoading.maxRetries`), even if the damage shows only when the files are read. If
    compacted commits can't be read, or are not reconciled, the commits themselves are read.

    Args:
        store: The store of the log.
        segment: The files of the version.
        max_retries: How many more checkpoints may be tried.
        use_compacted: Whether compacted commits are read in place of commits.
        limits: The most that is read of the log.

    Raises:
        TableError: A commit is damaged (kind `OPTIMIST_MALFORMED_COMMIT`), or no checkpoint can be
            read (kind `OPTIMIST_MALFORMED_CHECKPOINT`, or `DELTA_MISSING_PART_FILES` for a missing
            sidecar).
    """
    if segment.checkpoint is None:
        base = LogState.empty()
    else:
        base = _CheckpointState(
            store, segment, segment.checkpoint, max_retries=max_retries, limits=limits
        ).state()
    if use_compacted and segment.compacted:
        try:
            return with_commits(base, store, segment.deltas, limits)
        except (NotReconciledError, TableError, LogFileNotFoundError) as error:
            # If a plain commit is damaged, the read below raises.
            _LOG.warning(
                "The compacted commits can't be used, so the commits are read one by one: %s", error
            )
    return with_commits(base, store, segment.commits, limits)


def on_checkpoint(
    state: LogState,
    store: LogStore,
    segment: LogSegment,
    *,
    max_retries: int,
    limits: LogLimits = DEFAULT_LIMITS,
) -> LogState:
    """Return the same state, with the parts outside memory taken from the segment's checkpoint.

    Reads the commits after the checkpoint. Reads the checkpoint's content only when somebody needs
    it.

    Args:
        state: The state of the segment's version.
        store: The store of the log.
        segment: The files of the version, a checkpoint among them.
        max_retries: The same as for `replay`.
        limits: The most that is read of the log.
    """
    if segment.checkpoint is None:
        return state
    base = _CheckpointState(
        store, segment, segment.checkpoint, max_retries=max_retries, limits=limits
    ).with_table(state.table)
    newer = with_commits(base, store, segment.commits, limits)
    files = state.files if state.files.stays_in_memory else newer.files
    return LogState(state.table, files, newer.tombstones)


def with_commits(
    state: LogState,
    store: LogStore,
    commits: tuple[FileStatus, ...],
    limits: LogLimits = DEFAULT_LIMITS,
) -> LogState:
    """Return the state after more commits of the log, in order. Some may be compacted.

    Raises:
        TableError: A commit is damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
        NotReconciledError: A compacted file has something more than once.
    """
    for commit in commits:
        ensure_readable_size(commit, limits)
    waiting: list[FileBody] = []
    first = 0
    newest = len(commits) - 1
    for index, data in enumerate(_contents(store, commits)):
        commit = commits[index]
        # The commitInfo of a compacted file may not belong to its last commit.
        with_info = index == newest and not is_compacted(commit)
        lines = parse_commit_lines(data, commit.path, with_info=with_info)
        if is_compacted(commit):
            files = commit_batch(lines.file_actions, (commit,))
            ensure_reconciled(lines.actions, files, commit.path)
        if lines.actions or index == newest:
            table = state.table.after(lines.actions)
            state = replace(state, table=table if with_info else replace(table, commit_info=None))
        waiting.extend(lines.file_actions)
        if len(waiting) >= _BATCH_ACTIONS or index == newest:
            if waiting:
                state = with_files(state, commit_batch(waiting, commits[first : index + 1]))
            waiting, first = [], index + 1
    return state


def _contents(store: LogStore, commits: Sequence[FileStatus]) -> Iterable[bytes]:
    return told_while_opening("commits", read_commits_bytes(store, commits), len(commits))


def _told_files(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return told_while_opening("files", batches, count=lambda batch: batch.num_rows)


def with_files(state: LogState, actions: pa.RecordBatch, *, are_distinct: bool = False) -> LogState:
    """Return the state after adds and removes in order, a batch of `ACTIONS_SCHEMA`.

    Args:
        state: The state before.
        actions: The adds and removes.
        are_distinct: Whether no two of them are known to have the same key.
    """
    is_large = actions.num_rows >= LARGE_BATCH_ROWS
    if is_large and not are_distinct:  # once for both sets
        actions = last_per_key(actions)
    return replace(
        state,
        files=state.files.with_actions(actions, are_distinct=is_large),
        tombstones=state.tombstones.with_actions(actions, are_distinct=is_large),
    )


def commit_batch(
    bodies: Sequence[FileBody],
    commits: tuple[FileStatus, ...],
    schema: pa.Schema = ACTIONS_SCHEMA,
) -> pa.RecordBatch:
    """Return the file actions of some commits as one batch, by default of `ACTIONS_SCHEMA`.

    Raises:
        TableError: A field has the wrong type (kind `OPTIMIST_MALFORMED_COMMIT`).
    """
    try:
        return file_actions_batch(bodies, schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        where = commits[0].path if len(commits) == 1 else f"{commits[0].path} or one after it"
        raise malformed_commit(where, f"a field has the wrong type ({shown(error)})") from None


class _CheckpointState:
    """The state at a checkpoint, each part read when needed. A damaged checkpoint is replaced.

    The fallback is a whole state of the same version, built from the next best checkpoint and the
    commits between. So it does not matter which part turned out to be unreadable, or when.
    """

    def __init__(
        self,
        store: LogStore,
        segment: LogSegment,
        checkpoint: Checkpoint,
        *,
        max_retries: int,
        limits: LogLimits,
    ) -> None:
        self._store = store
        self._segment = replace(
            segment,
            version=checkpoint.version,
            commits=(),
            checksum_file=None,
            compacted=(),
        )
        self._checkpoint = checkpoint
        self._reader = checkpoint.open(store, limits)
        self._limits = limits
        self._max_retries = max_retries
        self._lock = ForkSafeLock()
        self._fallback: LogState | None = None

    def state(self) -> LogState:
        """Return the state at the checkpoint's version, and read only the small part now."""
        table = self._read(
            lambda: TableState().after(self._reader.state_actions()),
            lambda older: older.table,
        )
        return self.with_table(replace(table, commit_info=None))

    def with_table(self, table: TableState) -> LogState:
        """Return the state at the checkpoint's version, with a known table state."""
        return LogState(
            table,
            FileSet(
                FILES_SCHEMA,
                of_adds=True,
                load=self._load_files,
                stream=self._stream_files,
                chosen=self,
            ),
            FileSet(
                TOMBSTONES_SCHEMA,
                of_adds=False,
                load=self._load_tombstones,
                stream=self._stream_tombstones,
            ),
        )

    def is_small(self) -> bool:
        """Return whether the live files may stay in memory as a whole."""
        return self._read(self._reader.is_small, lambda older: older.files.fits_in_memory)

    def read(self, choice: FileChoice, use: Use[_Part]) -> _Part:
        """Return what `use` makes of the chosen live files."""
        return self._read(
            lambda: use(self._reader.chosen_files(choice)),
            lambda older: older.files.read(choice, use),
        )

    def _stream_files(self) -> Iterator[pa.RecordBatch]:
        older = self._fallback
        if older is not None:
            return older.files.stream()
        return self._reader.live_files(is_streamed=True)

    def _stream_tombstones(self) -> Iterator[pa.RecordBatch]:
        older = self._fallback
        if older is not None:
            return older.tombstones.stream()
        return self._reader.tombstones(is_streamed=True)

    def _load_files(self, change: Change) -> tuple[pa.RecordBatch, ...]:
        return self._read(
            lambda: tuple(map(change, _told_files(self._reader.live_files()))),
            lambda older: tuple(map(change, older.files.batches())),
        )

    def _load_tombstones(self, change: Change) -> tuple[pa.RecordBatch, ...]:
        return self._read(
            lambda: tuple(map(change, self._reader.tombstones())),
            lambda older: tuple(map(change, older.tombstones.batches())),
        )

    def _read(self, read: Callable[[], _Part], from_older: Callable[[LogState], _Part]) -> _Part:
        older = self._fallback
        if older is None:
            try:
                return read()
            except LogFileNotFoundError as error:
                older = self._fall_back(error)
            except TableError as error:
                if error.kind not in UNREADABLE_CHECKPOINT:
                    raise
                older = self._fall_back(error)
        return from_older(older)

    def _fall_back(self, error: OptimistError) -> LogState:
        with self._lock:
            if self._fallback is None:
                self._fallback = self._replay_from_older(error)
            return self._fallback

    def _replay_from_older(self, error: OptimistError) -> LogState:
        older = older_segment(self._store, self._segment) if self._max_retries > 0 else None
        if older is None:
            raise error
        _LOG.warning(
            "The checkpoint of version %d can't be used. Version %d is rebuilt from %s instead: %s",
            self._checkpoint.version,
            self._checkpoint.version,
            f"the checkpoint of version {older.checkpoint_version}"
            if older.checkpoint
            else "its commits",
            error,
        )
        return replay(self._store, older, max_retries=self._max_retries - 1, limits=self._limits)
