"""`OptimisticTransaction`: read, decide, and commit all or nothing (spec 1 and 2).

What users call is here. Each step of a commit is a module of its own that can be read by itself:

1. `pending_metadata` holds the new metadata and the protocol that it needs, which
   `metadata_update` derives.
2. A `Committer` takes the request to commit: `log_committer` for the log, `step` for one of several
   operations.
3. `prepare` checks that the actions may be written, and `prepared_commit` makes the commit as it is
   first tried, with its isolation level and commitInfo.
4. `commit_loop` puts it, with `outcome` for an unclear answer of the store, `conflicts` for the
   winners and `commit_lock` for the stores that need one; `groups` puts several as one version.
5. `after_commit` tells the `listener` of it, which runs the `hooks`.

The steps are named after those of Delta's `OptimisticTransactionImpl`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.data.table_ref import TableRef
from optimist.core.errors.argument_types import ensure_kind
from optimist.core.errors.short_repr import path_in_repr
from optimist.core.expressions.moments import Moment
from optimist.core.log.many_files import ManyFiles
from optimist.core.options.engine import EngineOptions
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Action, AddFile, Metadata, Protocol
from optimist.core.protocol.field_keys import metadata_that_counts
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.budget import one_operation
from optimist.core.runtime.clock import Clock
from optimist.core.snapshot import Snapshot
from optimist.core.transaction import prepare
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_lock import is_commit_lock_enabled, lock_commit_if_enabled
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.committer import (
    CommitRequest,
    Committer,
    ended_transaction,
    forked_transaction,
)
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.reads import Reads, ReadTracker
from optimist.core.transaction.hooks.hooks import PostCommitHook
from optimist.core.transaction.pending_metadata import PendingMetadata
from optimist.core.transaction.result import CommitResult

__all__ = ["OptimisticTransaction"]


class OptimisticTransaction:
    """One transaction on one table. Single use, and for one thread of the process that began it.

    Get one from `DeltaLog.start_transaction`. It sees the version it started from and nothing
    later. Conflicts of its commit are judged by what was read through its own methods; a read by
    any other way does not count.

    Args:
        table: The table.
        snapshot: The version that it starts from.
        committer: Where its commit goes.
        reads: What counts as read from the start; None for nothing.
        pending: The metadata and the protocol that it changes from the start; None for none.

    Attributes:
        table: The table.
        snapshot: The version that it started from.
        num_reruns: How often its command has run before and met a conflict; None where it does not
            run again.
        begun_ms: When its command began, the first time; `current_timestamp()` in the command is
            that time.
    """

    def __init__(
        self,
        table: TableRef,
        snapshot: Snapshot,
        committer: Committer,
        *,
        reads: ReadTracker | None = None,
        pending: PendingMetadata | None = None,
    ) -> None:
        self.table = table
        self.snapshot = snapshot
        self.num_reruns: int | None = None
        self.begun_ms = table.clock.now_ms()
        self._committer = committer
        self._reads = reads or ReadTracker()
        self._pending = pending or PendingMetadata(table, snapshot)
        self._hooks: list[PostCommitHook] = []
        self._commit_once = threading.Lock()  # taken by the one commit, never given back
        self._process = os.getpid()

    @property
    def zone(self) -> str:
        """The time zone of the session, by the engine's options."""
        return self.table.options.zone

    @property
    def moment(self) -> Moment:
        """When the command began, for functions such as `current_timestamp()`."""
        return Moment(self.begun_ms, self.table.options.session_time_zone)

    def __repr__(self) -> str:
        path = path_in_repr(self.table.table_path)
        return f"{type(self).__name__}({path}, read_version={self.read_version})"

    @property
    def clock(self) -> Clock:
        """The clock that it goes by."""
        return self.table.clock

    @property
    def options(self) -> EngineOptions:
        """The engine's options."""
        return self.table.options

    @property
    def txn_id(self) -> str:
        """The id that its commitInfo has."""
        return self._committer.txn_id

    @property
    def result(self) -> CommitResult | None:
        """Its commit once it has landed, even if a hook's failure was raised, or None."""
        return self._committer.result

    @property
    def outcome(self) -> CommitOutcome:
        """What is known of its commit now.

        It tells what may be removed after an error or an interrupt, whatever that was.
        """
        return self._committer.outcome

    @property
    def may_be_in_table(self) -> bool:
        """Whether its commit is in the table, or may still get there, as far as is known now."""
        return self.outcome is not CommitOutcome.NOT_COMMITTED

    @property
    def has_landed(self) -> bool:
        """Whether its commit is known to be in the table."""
        return self.outcome is CommitOutcome.COMMITTED

    @property
    def reads(self) -> Reads:
        """What counts as read so far."""
        return self._reads.freeze()

    # What the transaction sees

    @property
    def read_version(self) -> int:
        """The version it started from, or -1 when there is no table yet."""
        return self.snapshot.version

    @property
    def metadata(self) -> Metadata:
        """The table's metadata, with this transaction's change."""
        return self._pending.metadata

    @property
    def protocol(self) -> Protocol:
        """The table's protocol, with this transaction's change."""
        return self._pending.protocol

    @property
    def table_metadata(self) -> TableMetadata:
        """`metadata` parsed, without the keys of columns that do not count for the table."""
        return TableMetadata.of(metadata_that_counts(self.metadata, self.protocol))

    def ensure_writable(self, *, to_alter: bool = False) -> None:
        """Refuse now what the commit would refuse later. Call it before data files are written.

        Args:
            to_alter: Whether only metadata are written; these are judged as they will be.

        Raises:
            ProtocolError: The table needs a writer feature that this engine does not have.
            TableError: A property that binds writers does not parse (kind
                `OPTIMIST_MALFORMED_TABLE_PROPERTY`).
        """
        if self.read_version >= 0:
            path = self.table.table_path
            prepare.ensure_table_writable(path, self.snapshot, to_alter=to_alter)

    # Reading

    def filter_files(self, predicate: str | Predicate | None = None) -> pa.Table:
        """Return the files that may hold rows matching the predicate, or all files without one.

        Partition values decide exactly, statistics as far as they go. Every file returned counts as
        read, and so does the predicate: a file that another commit adds is a conflict if it may
        match, and if it counts at the isolation level (spec 2.8).

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
            TableError: The files do not agree with the version checksum (kind
                `DELTA_TXN_LOG_FAILED_INTEGRITY`).
        """
        scan = self.snapshot.scan(predicate)
        self.snapshot.ensure_intact()
        self._reads.record_files(scan.split, scan.files)
        return scan.files

    def need_only(self, files: pa.Table, rows: Sequence[BitMap64] | None = None) -> None:
        """Say what of the files that the last `filter_files` returned the transaction depends on.

        These are the rows that match its predicate, if they were looked for. Where
        `conflict.granularity` is `row`, only a commit that touches them is a conflict then, or one
        that adds a row that matches (spec 2.12). Without this call all rows of the files count.

        Args:
            files: Those of the files that hold such rows.
            rows: The positions of the rows in each file; None for all rows of the files. Of a file
                that the commit removes for good all rows are needed, whatever is said here.
        """
        self._reads.record_need(files, rows)

    def depend_on(self, files: pa.Table) -> None:
        """Depend on these files of the snapshot, and on none that another commit adds."""
        self._reads.record_only(files)

    def read_whole_table(self) -> None:
        """Depend on the whole table: any file that another commit adds or removes is a conflict.

        Added files are one as far as they count at the isolation level (spec 2.8).
        """
        self._reads.record_whole_table()

    def txn_version(self, app_id: str) -> int:
        """Return the last version that the application recorded of itself, or -1 without any.

        From then on, another commit that advances the application is a conflict.
        """
        self._reads.record_app_id(app_id)
        found = self.snapshot.set_transactions.get(app_id)
        return -1 if found is None else found.version

    # Changing metadata

    def update_metadata(self, metadata: Metadata, *, features: Collection[str] = ()) -> None:
        """Set the table's metadata, at most once per transaction. This also creates a new table.

        Args:
            metadata: The metadata.
            features: Table features that the table needs and the metadata can't tell of.

        Raises:
            UsageError: The metadata was set before in this transaction.
            SchemaError, ConfigError, ProtocolError: The metadata is not valid.
        """
        self._ensure_open()
        self._pending.update(metadata, features)

    def update_metadata_for_new_table(
        self, metadata: Metadata, *, features: Collection[str] = ()
    ) -> None:
        """Set the metadata of a table that is created or replaced, with the session's defaults.

        A table that is replaced loses all its files in the same commit, which the caller sees to.

        Args:
            metadata: The metadata; an empty `id` becomes a new one.
            features: Table features that the table needs and the metadata can't tell of.
        """
        self._ensure_open()
        self._pending.begin_table(metadata, features)

    def update_metadata_for_table_overwrite(self, metadata: Metadata) -> None:
        """Replace the schema, partitioning and properties of an existing table, and keep its id."""
        self._ensure_open()
        self._pending.overwrite(metadata)

    def update_metadata_for_table_restore(self, metadata: Metadata, protocol: Protocol) -> None:
        """Go back to the metadata of an older version. The protocol only gains features.

        The commit restores the version's files as well, which the caller sees to.

        Args:
            metadata: What the table had, but for what must not go back.
            protocol: The older version's.
        """
        self._ensure_open()
        self._pending.restore(metadata, protocol)

    def update_metadata_for_table_clone(
        self, metadata: Metadata, source: Metadata, protocol: Protocol
    ) -> None:
        """Take over the metadata of another table, without the session's defaults.

        The commit adds the files of that table as well, which the caller sees to.

        Args:
            metadata: What the table is to have: the source's, with what a caller asks for.
            source: The source's metadata; what its files rely on, such as the mode of column
                mapping, must stay as it is.
            protocol: The source's; the table keeps the features that it has itself, too.
        """
        self._ensure_open()
        self._pending.clone(metadata, source, protocol)

    def advance_identity_columns(self, names: Collection[str], adds: Sequence[AddFile]) -> None:
        """Note that files hold numbers of identity columns that this transaction has given out.

        The commit moves the columns' high-water marks, and so conflicts with any other that gives
        out numbers of the same version (spec 1.6).

        Args:
            names: The columns.
            adds: All files with such numbers; they have statistics of the columns.
        """
        self._pending.note_identity_numbers(names, adds)

    # Committing

    def register_post_commit_hook(self, hook: PostCommitHook) -> None:
        """Run the hook after the commit. Of several with one name only the first is kept."""
        if all(known.name != hook.name for known in self._hooks):
            self._hooks.append(hook)

    @one_operation
    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        *,
        files: ManyFiles | None = None,
        written: CommitFiles | None = None,
    ) -> CommitResult:
        """Commit the actions as the next version, even if there are none.

        Args:
            actions: What it writes.
            operation: What it is recorded as.
            tags: For commitInfo.
            files: Files that it removes whole, as columns; no others are removed by the actions.
            written: The new files that the actions name, where the caller looks after them.

        Returns:
            The version, and how it was committed. Hooks that failed are in the result. A step of
            several operations is not committed yet: after 0 attempts, this is the version that they
            will try first.

        Raises:
            DeltaConcurrentModificationException: Another commit landed first and conflicts with
                this one. Nothing was committed.
            CommitOutcomeUnknownError: The store gave no answer; ask `DeltaLog.resolve_commit`
                whether the commit landed.
            MaxCommitAttemptsExceededError: Other writers kept winning. Nothing was committed.
            UsageError, SchemaError, ProtocolError: The commit is not valid. Nothing was committed.
        """
        ensure_kind(actions, "actions", Iterable, "a list of actions")
        ensure_kind(operation, "operation", Operation, "an Operation")
        self._close()
        request = self._request(actions, operation, tags, files=files, written=written)
        return self._committer.commit(request)

    @one_operation
    def commit_if_needed(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        *,
        files: ManyFiles | None = None,
        written: CommitFiles | None = None,
    ) -> CommitResult | None:
        """Commit as `commit` does, but skip an empty commit where the level allows it (spec 1.5).

        Returns:
            The result, or None when nothing was written.
        """
        self._close()
        request = self._request(actions, operation, tags, files=files, written=written)
        return self._committer.commit_if_needed(request)

    @one_operation
    def commit_large(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        *,
        files: ManyFiles | None = None,
        written: CommitFiles | None = None,
    ) -> CommitResult:
        """Commit as the next version or not at all, without conflict checks (spec 1.16).

        For CONVERT, CLONE and RESTORE, whose actions can't be rebased.

        Args:
            actions: What it writes.
            operation: What it is recorded as.
            tags: For commitInfo.
            files: The files as columns, where no other are among the actions.
            written: As for `commit`.

        Raises:
            ConcurrentWriteException: Another commit took the version. Nothing was committed.
            UsageError: The transaction is one of several operations. Nothing was committed.
        """
        self._close()
        request = self._request(actions, operation, tags, files=files, written=written)
        return self._committer.commit_large(request)

    def is_commit_lock_enabled(self) -> bool:
        """Return whether commits take the lock: by the option, else if partial writes are visible.

        See spec 1.12.
        """
        return is_commit_lock_enabled(self.table.options, self.table.store, self.table.log_path)

    def lock_commit_if_enabled(self) -> AbstractContextManager[object]:
        """Hold the table's commit lock, where it is enabled, over several commits of this thread.

        A single commit takes the lock by itself. A commit that this thread makes while it holds the
        lock does not wait for it again.

        Raises:
            StorageError: Others held it for all of the retry budget.
        """
        return lock_commit_if_enabled(self.table)

    def _request(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        *,
        files: ManyFiles | None = None,
        written: CommitFiles | None = None,
    ) -> CommitRequest:
        """Put together what the committer gets: the actions, with the metadata that was set."""
        self._committer.ensure_accepts(actions, operation)
        rest = self._pending.take_from(prepare.dedupe_set_transactions(actions))
        tags = self._pending.move_identity_marks(tags)
        draft = prepare.Draft(
            table=self.table,
            snapshot=self.snapshot,
            actions=(*self._pending.actions, *rest),
            operation=operation,
            metadata=self._pending.metadata_to_commit,
            protocol=self.protocol,
            files=files or None,
        )
        reads = self._reads.freeze(wrote_others=written is not None)
        return CommitRequest(draft, reads, tags, self._hooks, written)

    def _ensure_open(self) -> None:
        if self._process != os.getpid():
            raise forked_transaction()
        if self._commit_once.locked():
            raise ended_transaction(self._committer)

    def _close(self) -> None:
        """Close the transaction, which is used only once, whether or not its commit succeeds."""
        self._ensure_open()
        if not self._commit_once.acquire(blocking=False):  # of two threads only one gets it
            raise ended_transaction(self._committer)
