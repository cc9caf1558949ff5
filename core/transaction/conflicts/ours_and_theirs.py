"""The two sides of a conflict: `Ours`, which wants to commit, and `Theirs`, one winner (spec 2).

They are two types, so that no check can mix them up. Both are values. A rebase returns a new
`Ours`: the transaction as if it had started after that winner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.data.statistics.stats_text import num_live_rows_in
from optimist.core.log.file_table import canonical_path
from optimist.core.log.known_log import KnownLog
from optimist.core.log.many_files import ManyFiles
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from optimist.core.protocol.group_tags import transactions_of
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.schema.types import StructType
from optimist.core.transaction.conflicts.reads import Reads
from optimist.core.transaction.identity_marks import IDENTITY_ONLY

__all__ = ["MovedRows", "Ours", "SharedFile", "Theirs"]

_ActionType = TypeVar("_ActionType")


@dataclass(frozen=True, slots=True)
class Ours:
    """The transaction that wants to commit, as it stands after the winners checked so far.

    Attributes:
        table_path: For messages.
        read_version: The version it started from; -1 for a new table.
        attempt_version: The version it tries to create.
        actions: What it will write, without commitInfo.
        commit_info: What it will say about itself, its `txn_id` included.
        reads: What it has read.
        isolation_level: The level of this commit; never recomputed (spec 1.12).
        is_blind_append: Whether it only adds files and read nothing.
        metadata: The table's metadata as this transaction sees it, a winner's adopted change
            included.
        protocol: The table's protocol as this transaction sees it, likewise.
        read_schema: The schema of that version, which gives read predicates their types; with
            those generation expressions that its protocol made writers keep to.
        read_partition_columns: The partition columns of that version.
        row_id_high_water_mark: The largest row id handed out so far; -1 for none.
        options: The engine's options.
        known_log: The log that it read.
        last_seen: The newest commit of that log that a listing has shown, at most the one before
            `attempt_version`, or at first that version, if the one before is gone; None where there
            is nothing to compare with.
        files: All files of a commit that can't be rebased, or all that another commit removes, if
            it brings them as columns; then there are none of them among `actions`.
    """

    table_path: str
    read_version: int
    attempt_version: int
    actions: tuple[Action, ...]
    commit_info: CommitInfo
    reads: Reads
    isolation_level: IsolationLevel
    is_blind_append: bool
    metadata: Metadata
    protocol: Protocol
    read_schema: StructType
    read_partition_columns: tuple[str, ...]
    row_id_high_water_mark: int
    options: EngineOptions
    known_log: KnownLog = field(compare=False)
    last_seen: FileStatus | None = None
    files: ManyFiles | None = None

    @property
    def operation(self) -> str:
        """The name of the operation."""
        return self.commit_info.operation or ""

    def of_type(self, kind: type[_ActionType]) -> tuple[_ActionType, ...]:
        """Return the pending actions of one type, in order."""
        return tuple(action for action in self.actions if isinstance(action, kind))

    def without_columns(self) -> Ours:
        """Return this transaction with the files that it removes as actions, for a rebase."""
        if self.files is None:
            return self
        return replace(self, actions=self.files.among(self.actions), files=None)

    def with_tag(self, name: str, value: str) -> Ours:
        """Return this transaction with one more tag in its commitInfo."""
        tags = {**(self.commit_info.tags or {}), name: value}
        return replace(self, commit_info=replace(self.commit_info, tags=tags))


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that we need rows of, and of which the winner deleted rows by a vector (spec 2.12).

    Attributes:
        after: The file as the winner left it.
        lost: Rows that we need and that the winner deleted; empty if both commits fit together.
        num_deleted: How many rows the winner's vector deletes.
        united: The rows that are deleted once both commits are made.
        is_emptied: Whether these are all rows of the file, by its footer.
    """

    after: AddFile
    lost: BitMap64
    num_deleted: int
    united: BitMap64
    is_emptied: bool = False


@dataclass(frozen=True, slots=True)
class MovedRows:
    """What became of rows that we need, after a winner that only rearranged rows (spec 2.12).

    Attributes:
        left: The canonical paths of the files that it removed, and whose rows can be followed.
        replaced: Those of its new files that hold nothing but rows that we remove.
        read: The canonical paths of its new files with rows that we need and do not remove; all of
            their rows count as needed.
        rows: By canonical path of other new files, the rows of them that we need.
        deleted: Likewise, the rows of them that we delete.
        reason: Why rows of still other files can't be followed; None if there are none.
    """

    left: frozenset[str] = frozenset()
    replaced: tuple[AddFile, ...] = ()
    read: frozenset[str] = frozenset()
    rows: Mapping[str, BitMap64] = field(default_factory=dict)
    deleted: Mapping[str, BitMap64] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Theirs:
    """One commit that landed after the transaction started (spec 2.1).

    Attributes:
        version: The version it created.
        modified_ms: The modification time of its file, epoch milliseconds.
        actions: Everything it wrote.
        shared: What a closer look has found of the files whose vectors it replaced and that we need
            rows of, by canonical path. A file that is not here was not looked at.
        harmless: The canonical paths of added files that hold no new row which we would have read,
            as a closer look has found.
        moved: Where rows that we need stand now, if it only rearranged rows, as a closer look has
            found.
        status: Its file, as a listing has shown it; None if it was not listed.
    """

    version: int
    modified_ms: int
    actions: tuple[Action, ...]
    shared: Mapping[str, SharedFile] = field(default_factory=dict)
    harmless: frozenset[str] = frozenset()
    moved: MovedRows = MovedRows()
    status: FileStatus | None = None

    def of_type(self, kind: type[_ActionType]) -> tuple[_ActionType, ...]:
        """Return its actions of one type, in order."""
        return tuple(action for action in self.actions if isinstance(action, kind))

    @property
    def commit_info(self) -> CommitInfo | None:
        """Its commitInfo, if it wrote one."""
        return next(iter(self.of_type(CommitInfo)), None)

    @property
    def txn_id(self) -> str | None:
        """The id of the transaction that wrote it, if it said so."""
        return self.commit_info.txn_id if self.commit_info else None

    def holds(self, txn_id: str | None) -> bool:
        """Return whether it is the commit of a transaction, or of a group with the transaction."""
        return self.commit_info is not None and txn_id in transactions_of(self.commit_info)

    @property
    def operation(self) -> str | None:
        """The name of its operation, if it said so."""
        return self.commit_info.operation if self.commit_info else None

    @property
    def is_blind_append(self) -> bool:
        """Whether it declared itself a blind append. A commit that does not say so is none."""
        return bool(self.commit_info and self.commit_info.is_blind_append)

    @property
    def is_identity_only(self) -> bool:
        """Whether its metadata only moves the high-water marks of identity columns."""
        tags: Mapping[str, str | None] = (self.commit_info and self.commit_info.tags) or {}
        return tags.get(IDENTITY_ONLY) == "true"

    @property
    def metadata(self) -> Metadata | None:
        """The metadata it set, if any."""
        return next(iter(self.of_type(Metadata)), None)

    @property
    def protocol(self) -> Protocol | None:
        """The protocol it set, if any."""
        return next(iter(self.of_type(Protocol)), None)

    @property
    def adds(self) -> tuple[AddFile, ...]:
        """The files it added, rearranged ones (`dataChange` false) included."""
        return self.of_type(AddFile)

    @property
    def removes(self) -> tuple[RemoveFile, ...]:
        """The files it removed."""
        return self.of_type(RemoveFile)

    @property
    def files(self) -> tuple[AddFile | RemoveFile, ...]:
        """The files it added, and those it removed."""
        return (*self.adds, *self.removes)

    @property
    def only_rearranges(self) -> bool:
        """Whether it put rows of some files into others, and did no more.

        The numbers of rows must agree, because a commit may wrongly call itself a rearrangement.
        """
        if not self.removes or any(item.data_change for item in self.files):
            return False
        num_before = num_live_rows_in(self.removes)
        return num_before is not None and num_before == num_live_rows_in(self.adds)

    @property
    def set_transactions(self) -> tuple[SetTransaction, ...]:
        """The applications it advanced."""
        return self.of_type(SetTransaction)

    @property
    def domain_metadata(self) -> tuple[DomainMetadata, ...]:
        """The metadata domains it set or removed."""
        return self.of_type(DomainMetadata)

    @property
    def in_commit_timestamp(self) -> int | None:
        """Its in-commit timestamp in epoch milliseconds, if it has one."""
        return self.commit_info.in_commit_timestamp if self.commit_info else None

    def removed_paths(self) -> pa.Array:
        """Return the canonical paths of the files it removed."""
        return pa.array([canonical_path(item.path) for item in self.removes], pa.string())
