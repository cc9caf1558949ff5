"""`OptimisticTransaction`: read, decide, and commit all or nothing (spec 1 and 2).

What users call is here. Each step of a commit is a module of its own that can be read by itself:

1. `metadata_update` derives the new metadata, and the protocol that it needs.
2. `prepare` checks that the actions may be written, and `prepared_commit` makes the commit as it is
   first tried, with its isolation level and commitInfo.
3. `commit_loop` puts it, with `outcome` for an unclear answer of the store, `conflicts` for the
   winners and `commit_lock` for the stores that need one; `groups` puts several as one version.
4. `after_commit` tells the `listener` of it, which runs the `hooks`.

The steps are named after those of Delta's `OptimisticTransactionImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import NOTHING_COMMITTED, UsageError
from optimist.core.log.many_files import ManyFiles
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Action, AddFile, Metadata, Protocol
from optimist.core.protocol.binding_properties import ensure_properties_parse
from optimist.core.protocol.field_keys import metadata_that_counts
from optimist.core.protocol.gates import ensure_writable, merge, with_features
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.protocol.schema_checks import verify_new_metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.budget import within_budget
from optimist.core.snapshot import Snapshot
from optimist.core.transaction import metadata_update, prepare
from optimist.core.transaction.after_commit import finish_commit, raise_loud
from optimist.core.transaction.commit_lock import is_commit_lock_enabled, lock_commit_if_enabled
from optimist.core.transaction.commit_loop import CommitLoop, Landed
from optimist.core.transaction.conflicts.closer_look import CloserLook
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.conflicts.reads import ReadTracker
from optimist.core.transaction.conflicts.row_ids import ensure_rows_are_numbered
from optimist.core.transaction.groups.queue import CommitQueue
from optimist.core.transaction.hooks.hooks import PostCommitHook
from optimist.core.transaction.identity_marks import IDENTITY_ONLY, farthest_numbers, with_marks
from optimist.core.transaction.large_commit import LargeCommitLoop, as_large
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.metadata_update import MetadataChange
from optimist.core.transaction.prepared_commit import prepared_commit
from optimist.core.transaction.rebase_files import RebaseFiles
from optimist.core.transaction.result import CommitResult

__all__ = ["OptimisticTransaction"]


class OptimisticTransaction:
    """One transaction on one table; single use, and for one thread.

    Get one from `DeltaLog.start_transaction`. It sees the version it started from and nothing
    later. Conflicts of its commit are judged by what was read through its own methods; a read by
    any other way does not count.

    Attributes:
        num_reruns: How often its command has run before and met a conflict; None where it does not
            run again.
    """

    def __init__(
        self,
        table: TableRef,
        snapshot: Snapshot,
        listener: CommitListener,
        queue: CommitQueue | None = None,
    ) -> None:
        self.table = table
        self.snapshot = snapshot
        self.txn_id = table.clock.new_uuid()
        self.num_reruns: int | None = None
        self._listener = listener
        self._queue = queue
        self._reads = ReadTracker()
        self._hooks: list[PostCommitHook] = []
        table_id = snapshot.metadata.id if snapshot.version >= 0 else None
        self._rebase_files = RebaseFiles(table, table_id)
        self._register_file: Callable[[str], None] = self._rebase_files.register
        self._undo: Callable[[], None] = lambda: None
        self._release: Callable[[], None] = lambda: None
        self._new_metadata: Metadata | None = None
        self._new_protocol: Protocol | None = None
        self._numbers_given: dict[str, int] = {}
        self._is_closed = False
        self._may_be_in_table = False
        self._committed_version: int | None = None
        self._result: CommitResult | None = None

    @property
    def result(self) -> CommitResult | None:
        """Its commit, once it has landed, even if a hook's failure was raised; else None."""
        return self._result

    @property
    def may_be_in_table(self) -> bool:
        """Whether its commit is in the table, or may still get there, as far as is known now.

        It tells what may be removed after an error or an interrupt, whatever that was.
        """
        return self._may_be_in_table

    @property
    def is_staged(self) -> bool:
        """Whether a later commit decides what becomes of the files; see `Step`."""
        return False

    @property
    def has_landed(self) -> bool:
        """Whether its commit is known to be in the table."""
        return self._committed_version is not None

    # What the transaction sees

    @property
    def read_version(self) -> int:
        """The version it started from; -1 when there is no table yet."""
        return self.snapshot.version

    @property
    def metadata(self) -> Metadata:
        """The table's metadata, with this transaction's change."""
        return self._new_metadata or self.snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """The table's protocol, with this transaction's change."""
        return self._new_protocol or self.snapshot.protocol

    @property
    def table_metadata(self) -> TableMetadata:
        """`metadata` parsed, without the keys of columns that do not count for the table."""
        return TableMetadata.of(metadata_that_counts(self.metadata, self.protocol))

    def ensure_writable(self, *, to_alter: bool = False) -> None:
        """Refuse now what the commit would refuse later; call it before writing data files.

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
        """The files that may hold rows matching the predicate; all files where there is none.

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
        """The last version that the application recorded of itself; -1 if it never wrote.

        From then on, another commit that advances the application is a conflict.
        """
        self._reads.record_app_id(app_id)
        found = self.snapshot.set_transactions.get(app_id)
        return -1 if found is None else found.version

    # Changing metadata

    def update_metadata(self, metadata: Metadata, *, features: Collection[str] = ()) -> None:
        """Set the table's metadata, at most once per transaction; this also creates a new table.

        Args:
            metadata: The metadata.
            features: Table features that the table needs and the metadata can't tell of.

        Raises:
            UsageError: The metadata was set before in this transaction.
            SchemaError, ConfigError, ProtocolError: The metadata is not valid.
        """
        if self.read_version < 0:
            self._begin_table(metadata, features)
        else:
            self._set_metadata(metadata, features=features)

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
        self._begin_table(metadata, features)

    def update_metadata_for_table_overwrite(self, metadata: Metadata) -> None:
        """Replace the schema, partitioning and properties of an existing table, and keep its id."""
        kept = replace(metadata, id=self.snapshot.metadata.id)
        self._set_metadata(kept, how=MetadataChange.OVERWRITE)

    def update_metadata_for_table_restore(self, metadata: Metadata, protocol: Protocol) -> None:
        """Go back to the metadata of an older version; the protocol only gains features.

        The commit restores the version's files as well, which the caller sees to.

        Args:
            metadata: What the table had, but for what must not go back.
            protocol: The older version's.
        """
        self._ensure_open()
        merged = merge(self.snapshot.protocol, protocol)
        self._new_protocol = None if merged == self.snapshot.protocol else merged
        if metadata != self.snapshot.metadata:
            counting = metadata_that_counts(metadata, protocol)
            self._set_metadata(counting, how=MetadataChange.RESTORE)

    def update_metadata_for_table_clone(
        self, metadata: Metadata, source: Metadata, protocol: Protocol
    ) -> None:
        """Take over the metadata of another table; the session's defaults have no say in it.

        The commit adds the files of that table as well, which the caller sees to.

        Args:
            metadata: What the table is to have: the source's, with what a caller asks for.
            source: The source's metadata; what its files rely on, such as the mode of column
                mapping, must stay as it is.
            protocol: The source's; the table keeps the features that it has itself, too.
        """
        self._ensure_open()
        exists = self.read_version >= 0
        given = merge(self.snapshot.protocol, protocol) if exists else protocol
        derived, more = metadata_update.derive_metadata_and_protocol(
            metadata_that_counts(metadata, protocol),
            current=source,
            protocol=given,
            options=self.table.options,
            clock=self.table.clock,
        )
        reached = more or given
        self._new_protocol = reached if not exists or reached != self.snapshot.protocol else None
        self._new_metadata = derived
        verify_new_metadata(derived, self.protocol, self.table.options, previous=source)
        self._ensure_may_be_written(derived)

    def advance_identity_columns(self, names: Collection[str], adds: Sequence[AddFile]) -> None:
        """Note that files hold numbers of identity columns that this transaction has given out.

        The commit moves the columns' high-water marks, and so conflicts with any other that gives
        out numbers of the same version (spec 1.6).

        Args:
            names: The columns.
            adds: All files with such numbers; they have statistics of the columns.
        """
        self._numbers_given |= farthest_numbers(self.table_metadata.schema, names, adds)

    # Committing

    def tell_of_files(
        self,
        register: Callable[[str], None],
        undo: Callable[[], None],
        release: Callable[[], None],
    ) -> None:
        """Say who looks after the files of the commit, before it is made.

        Args:
            register: Called with the full path of each file that the commit writes, before it is
                begun: of vectors that it unites with another commit's (spec 2.12).
            undo: Removes all files; called if the commit is given up later than here.
            release: Ends the intent that guards them; called where `is_staged`, once they are
                committed or gone.
        """
        self._register_file, self._undo, self._release = register, undo, release

    def register_post_commit_hook(self, hook: PostCommitHook) -> None:
        """Have the hook run after the commit; of several with one name only the first is kept."""
        if all(known.name != hook.name for known in self._hooks):
            self._hooks.append(hook)

    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Commit the actions as the next version, even if there are none.

        Returns:
            The version, and how it was committed. Hooks that failed are in the result.

        Raises:
            DeltaConcurrentModificationException: Another commit landed first and conflicts with
                this one. Nothing was committed.
            CommitOutcomeUnknownError: The store gave no answer; ask `DeltaLog.resolve_commit`
                whether the commit landed.
            MaxCommitAttemptsExceededError: Other writers kept winning. Nothing was committed.
            UsageError, SchemaError, ProtocolError: The commit is not valid. Nothing was committed.
        """
        with self._closing():
            return self._land(self._draft(actions, operation, tags))

    def commit_if_needed(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult | None:
        """As `commit`, but skip a commit without actions where the level allows it (spec 1.5).

        Returns:
            The result, or None when nothing was written.
        """
        with self._closing():
            ours = self._draft(actions, operation, tags)
            return None if self._is_skippable(ours) else self._land(ours)

    def commit_large(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        *,
        files: ManyFiles | None = None,
    ) -> CommitResult:
        """Commit as the next version or not at all, without conflict checks (spec 1.16).

        For CONVERT, CLONE and RESTORE, whose actions can't be rebased.

        Args:
            actions: What it writes.
            operation: What it is recorded as.
            tags: For commitInfo.
            files: The files as columns, where no other are among the actions.

        Raises:
            ConcurrentWriteException: Another commit took the version. Nothing was committed.
        """
        with self._closing():
            ours = as_large(self._draft(actions, operation, tags, files))
            with self._attempts(LargeCommitLoop) as loop:
                landed = loop.do_commit_retry_iteratively(ours)
            return self._post_commit(landed, is_large=True)

    def is_commit_lock_enabled(self) -> bool:
        """Whether commits take the lock: as the option says, else if partial writes are visible.

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

    # Parts of commit

    def _draft(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
        files: ManyFiles | None = None,
    ) -> Ours:
        rest = self._adopt_metadata(prepare.dedupe_set_transactions(actions))
        tags = self._with_identity_marks(tags)
        draft = replace(self._in_preparation(rest, operation), files=files or None)
        return prepared_commit(draft, self._reads.freeze(), txn_id=self.txn_id, tags=tags)

    def _in_preparation(self, rest: Sequence[Action], operation: Operation) -> prepare.Draft:
        """The commit in preparation, with the metadata and protocol that were set."""
        pending = tuple(a for a in (self._new_metadata, self._new_protocol) if a is not None)
        is_new = self.read_version < 0
        return prepare.Draft(
            table=self.table,
            snapshot=self.snapshot,
            actions=(*pending, *rest),
            operation=operation,
            metadata=self._new_metadata or (None if is_new else self.snapshot.metadata),
            protocol=self.protocol,
        )

    def _land(self, ours: Ours) -> CommitResult:
        if self._queue is not None and not self._hooks and self._queue.accepts(ours):
            return self._land_in_group(ours, self._queue)
        with self._attempts() as loop:
            landed = loop.do_commit_retry_iteratively(ours)
        return self._post_commit(landed)

    def _land_in_group(self, ours: Ours, queue: CommitQueue) -> CommitResult:
        # Another thread may be at work on it, so an interrupt of this one settles nothing.
        self._may_be_in_table = True
        try:
            return self._told(queue.commit(ours, self.snapshot))
        except NOTHING_COMMITTED:
            self._may_be_in_table = False
            raise

    def _loop(self, kind: type[CommitLoop] = CommitLoop) -> CommitLoop:
        look = CloserLook(self.table, self.snapshot, self._register_file)
        return kind(self.table, self.txn_id, self._listener.note_attempt, look)

    @contextmanager
    def _attempts(self, kind: type[CommitLoop] = CommitLoop) -> Iterator[CommitLoop]:
        """Make the attempts; afterwards it is known what may be in the table, whatever came up."""
        loop = self._loop(kind)
        try:
            self._may_be_in_table = True
            yield loop
        except NOTHING_COMMITTED:
            self._may_be_in_table = loop.landed is not None
            raise
        except BaseException:
            self._may_be_in_table = loop.may_be_in_table
            raise
        finally:
            if loop.landed is not None:
                self._committed_version = loop.landed.ours.attempt_version
            if self.has_landed or not self._may_be_in_table:
                self._rebase_files.end(removes=not self.has_landed)

    def _post_commit(self, landed: Landed, *, is_large: bool = False) -> CommitResult:
        """Bring the table's handle up to date and run the hooks; the commit is in the table."""
        return self._told(
            finish_commit(
                self.table,
                self._listener,
                self.snapshot,
                landed,
                hooks=self._hooks,
                is_large=is_large,
            )
        )

    def _told(self, result: CommitResult) -> CommitResult:
        self._committed_version, self._result = result.version, result
        return raise_loud(result, self.table.options)

    def _is_skippable(self, ours: Ours) -> bool:
        # Delta's rule (spec 1.5): an empty commit keeps the level WriteSerializable only where its
        # operation says that it changes data, and such a commit is recorded.
        skippable = (IsolationLevel.SNAPSHOT_ISOLATION, IsolationLevel.SERIALIZABLE)
        enabled = self.table.options.skip_recording_empty_commits
        return not ours.actions and enabled and ours.isolation_level in skippable

    def _adopt_metadata(self, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Set the metadata and protocol found among the actions, and return the other actions."""
        protocols = [a for a in actions if isinstance(a, Protocol)]
        if len(protocols) + (self._new_protocol is not None and bool(protocols)) > 1:
            raise UsageError(
                "Cannot change the protocol more than once in a transaction. Nothing was "
                "committed. Set it once.",
                kind="OPTIMIST_PROTOCOL_CHANGED_TWICE",
            )
        self._new_protocol = protocols[0] if protocols else self._new_protocol
        for action in actions:
            if isinstance(action, Metadata):
                self.update_metadata(action)
        return tuple(a for a in actions if not isinstance(a, Metadata | Protocol))

    def _with_identity_marks(self, tags: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Move the marks of identity columns; the tags say if no other metadata changes."""
        marked = self.metadata
        if self._numbers_given:
            marked = with_marks(marked, self._numbers_given)
        if marked == self.metadata:
            return tags
        is_only = self._new_metadata is None
        self._new_metadata = marked
        return {IDENTITY_ONLY: "true", **(tags or {})} if is_only else tags

    def _begin_table(self, metadata: Metadata, features: Collection[str]) -> None:
        new = metadata_update.new_table_metadata(metadata, self.table.options, self.table.clock)
        self._set_metadata(new, how=MetadataChange.REPLACE, features=features)

    def _set_metadata(
        self,
        metadata: Metadata,
        *,
        how: MetadataChange = MetadataChange.ALTER,
        features: Collection[str] = (),
    ) -> None:
        if self._new_metadata is not None:
            raise UsageError(
                "Cannot change the metadata more than once in a transaction. Nothing was "
                "committed. Set it once.",
                kind="OPTIMIST_METADATA_CHANGED_TWICE",
            )
        exists = self.read_version >= 0
        previous = self.snapshot.metadata if exists else None
        judged_by = None if how is MetadataChange.REPLACE else previous
        derived, protocol = metadata_update.derive_metadata_and_protocol(
            metadata,
            current=previous,
            protocol=self._new_protocol or (self.snapshot.protocol if exists else None),
            options=self.table.options,
            clock=self.table.clock,
            how=how,
        )
        self._new_protocol = protocol or self._new_protocol
        if not exists or with_features(self.protocol, features) != self.snapshot.protocol:
            self._new_protocol = with_features(self.protocol, features)
        self._new_metadata = derived
        if how is not MetadataChange.RESTORE:
            # `self.protocol` by now is the one that the new metadata needs, and judges it.
            verify_new_metadata(derived, self.protocol, self.table.options, previous=judged_by)
        self._ensure_may_be_written(derived)
        if exists and how in (MetadataChange.ALTER, MetadataChange.OVERWRITE):
            ensure_rows_are_numbered(derived, self.snapshot)

    def _ensure_may_be_written(self, metadata: Metadata) -> None:
        """Refuse what the commit would refuse, but only after all rows have been written."""
        path, version = self.table.table_path, self.read_version
        ensure_writable(self.protocol, metadata, table_path=path, version=version)
        ensure_properties_parse(metadata, table_path=path, version=version)

    def _ensure_open(self) -> None:
        if self._committed_version is not None:
            raise UsageError(
                f"Transaction already committed. Its commit is version {self._committed_version}. "
                "Start a new transaction.",
                kind="OPTIMIST_TRANSACTION_ALREADY_COMMITTED",
                version=self._committed_version,
            )
        if self._is_closed:
            raise UsageError(
                f"The transaction has ended {self._end()}, and can't be used again. Start a new "
                "transaction.",
                kind="OPTIMIST_TRANSACTION_FAILED",
            )

    def _end(self) -> str:
        if not self._may_be_in_table:
            return "without a commit"
        asked = f"DeltaLog.resolve_commit({self.txn_id!r})"
        return f"without an answer; its commit may be in the table: ask {asked} first"

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Close the transaction, which is used only once, whether or not its commit succeeds.

        The whole commit is one operation, with one budget for a store that does not answer.
        """
        self._ensure_open()
        self._is_closed = True
        with within_budget(self.table.clock, self.table.options.storage_budget_s):
            yield
