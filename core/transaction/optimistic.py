"""`OptimisticTransaction`: read, decide, and commit all or nothing (spec 1 and 2).

The methods keep the names that Delta's `OptimisticTransactionImpl` made known; each calls a small
module
that can be read alone. In order: `reads` (what was read), `prepare` (what may be written),
`isolation`,
`commit_info`, `commit_loop` with `outcome` (the attempts), `conflict_table` (the winners), `hooks`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from optimist.core.errors import PostCommitHookError, UsageError
from optimist.core.log.names import commit_path
from optimist.core.logstore import PutOutcome
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Action, CommitInfo, Metadata, Protocol, actions_to_bytes
from optimist.core.protocol.properties import IsolationLevel, TableProperties
from optimist.core.protocol.schema_checks import ensure_no_cdc_columns, verify_new_metadata
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.transaction import commit_loop, metadata_update, prepare
from optimist.core.transaction.commit_info import (
    build_commit_info,
    get_operation_metrics,
    get_user_metadata,
)
from optimist.core.transaction.commit_lock import (
    NO_LOCK,
    CommitGuard,
    commit_lock,
    is_commit_lock_enabled,
)
from optimist.core.transaction.conflicts import isolation
from optimist.core.transaction.conflicts.checks import get_pretty_partition_message
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.conflicts.reads import ReadTracker
from optimist.core.transaction.conflicts.row_ids import NO_ROW_IDS, high_water_mark
from optimist.core.transaction.hooks.default_hooks import raises_on_failure
from optimist.core.transaction.hooks.hooks import CommittedTransaction, PostCommitHook, run_hooks
from optimist.core.transaction.large_commit import commit_large
from optimist.core.transaction.outcome import VersionFile, create_version_file
from optimist.core.transaction.pending import complete_actions
from optimist.core.transaction.result import CommitResult

if TYPE_CHECKING:
    from optimist.core.table.delta_log import DeltaLog

__all__ = ["OptimisticTransaction"]

_LOG = logging.getLogger(__name__)


class OptimisticTransaction:
    """One transaction on one table; single use, and for one thread.

    Get one from `DeltaLog.start_transaction`. It sees the version it started from and nothing
    later; what it
    reads through its own methods is what its commit is checked against.
    """

    def __init__(self, log: DeltaLog, snapshot: Snapshot) -> None:
        self._log = log
        self.snapshot = snapshot
        self.txn_id = log.clock.new_uuid()
        self._reads = ReadTracker()
        self._hooks: list[PostCommitHook] = []
        self._new_metadata: Metadata | None = None
        self._new_protocol: Protocol | None = None
        self._guard: CommitGuard = NO_LOCK
        self._is_closed = False
        self._committed_version: int | None = None

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

    def ensure_writable(self) -> None:
        """Refuse now what the commit would refuse later: call it before data files are written.

        Raises:
            ProtocolError: The table needs a writer feature that this engine does not have.
        """
        if self.read_version >= 0:
            prepare.ensure_table_writable(self._log.table_path, self.snapshot)

    # Reading

    def filter_files(self, predicate: str | Predicate | None = None) -> pa.Table:
        """The files that may hold rows matching the predicate; all of them without one.

        Partition values decide exactly, statistics as far as they go. Everything returned counts as
        read,
        and so does the predicate: files added by others that may match it are a conflict.

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
        """
        scan = self.snapshot.scan(predicate)
        self._reads.record_files(scan.split, scan.files)
        return scan.files

    def read_whole_table(self) -> None:
        """Depend on the whole table: any file another commit adds or removes is a conflict."""
        self._reads.record_whole_table()

    def txn_version(self, app_id: str) -> int:
        """How far an application has got, by its own count; -1 if it never wrote.

        Another commit that advances the application is then a conflict.
        """
        self._reads.record_app_id(app_id)
        found = self.snapshot.set_transactions.get(app_id)
        return -1 if found is None else found.version

    # Changing metadata

    def update_metadata(self, metadata: Metadata) -> None:
        """Set the table's metadata; on a new table this creates it. Once per transaction.

        Raises:
            UsageError: It was changed before in this transaction.
            SchemaError, ConfigError, ProtocolError: The metadata is not valid.
        """
        if self.read_version < 0:
            self._set_metadata(
                metadata_update.new_table_metadata(metadata, self._log.options, self._log.clock)
            )
        else:
            self._set_metadata(metadata)

    def update_metadata_for_new_table(self, metadata: Metadata) -> None:
        """Set the metadata of a table that is being created or made anew, with session defaults."""
        self._ensure_open()
        self._set_metadata(
            metadata_update.new_table_metadata(metadata, self._log.options, self._log.clock)
        )

    def update_metadata_for_table_overwrite(self, metadata: Metadata) -> None:
        """Replace schema, partitioning and properties of an existing table; its id is kept."""
        self._set_metadata(replace(metadata, id=self.snapshot.metadata.id))

    def with_global_config_defaults(self, metadata: Metadata) -> Metadata:
        """The metadata with `properties.defaults.*` for every property it does not set itself."""
        return metadata_update.with_global_config_defaults(metadata, self._log.options)

    def verify_new_metadata(self, metadata: Metadata) -> None:
        """Judge schema, partitioning and properties (spec 1.4, step 9)."""
        previous = self.snapshot.metadata if self.read_version >= 0 else None
        verify_new_metadata(metadata, self.protocol, self._log.options, previous=previous)

    def perform_cdc_metadata_check(self) -> None:
        """With the change data feed on, its column names are reserved (spec 1.4, step 10)."""
        if self._new_metadata is not None:
            previous = self.snapshot.metadata if self.read_version >= 0 else None
            ensure_no_cdc_columns(self._new_metadata, previous=previous)

    # Committing

    def register_post_commit_hook(self, hook: PostCommitHook) -> None:
        """Run this after the commit; a hook of the same name is registered only once."""
        if all(known.name != hook.name for known in self._hooks):
            self._hooks.append(hook)

    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Commit the actions as the next version; also writes a commit without any action.

        Returns:
            The version and how it came about. Hooks that failed are in the result.

        Raises:
            DeltaConcurrentModificationException: Another commit landed first and does not go
                together
                with this one. Nothing was committed.
            CommitOutcomeUnknownError: The store gave no answer; settle it with
                `DeltaLog.resolve_commit`.
            MaxCommitAttemptsExceededError: Others kept winning. Nothing was committed.
            UsageError, SchemaError, ProtocolError: The commit is not valid. Nothing was committed.
        """
        result = self._commit(actions, operation, tags, may_skip=False)
        assert result is not None
        return result

    def commit_if_needed(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult | None:
        """As `commit`, but a commit without actions is left out where the level allows (spec 1.5).

        Returns:
            The result, or None when nothing was written.
        """
        return self._commit(actions, operation, tags, may_skip=True)

    def commit_large(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """One attempt at the next version, without conflict checks and hooks (spec 1.16).

        For CONVERT, CLONE and RESTORE, whose actions can't be rebased.

        Raises:
            ConcurrentWriteException: Another commit took the version. Nothing was committed.
        """
        with self._closing():
            ours = self._draft(actions, operation, tags)
            with self.lock_commit_if_enabled():
                landed = commit_large(ours, self.do_commit, self._log)
            return self.post_commit(landed)

    def prepare_commit(self, actions: Sequence[Action], operation: Operation) -> tuple[Action, ...]:
        """The actions as they will be written, after every check of spec 1.7."""
        is_new = self.read_version < 0
        rest = self._adopt_metadata(prepare.dedupe_set_transactions(actions))
        pending = tuple(a for a in (self._new_metadata, self._new_protocol) if a is not None)
        draft = prepare.Draft(
            table_path=self._log.table_path,
            read_version=self.read_version,
            actions=(*pending, *rest),
            operation=operation,
            metadata=self._new_metadata or (None if is_new else self.snapshot.metadata),
            read_metadata=None if is_new else self.snapshot.metadata,
            protocol=self.protocol,
            read_protocol=None if is_new else self.snapshot.protocol,
            options=self._log.options,
        )
        prepared = prepare.prepare(draft)
        prepare.ensure_consistent_files(prepared, self._log.options)
        return prepared

    def get_isolation_level_to_use(
        self, prepared: Sequence[Action], operation: Operation
    ) -> IsolationLevel:
        """The table's level, or snapshot isolation for a commit that changes no data (spec 1.8)."""
        properties = TableProperties.from_configuration(self.metadata.configuration)
        return isolation.isolation_level_for(prepared, operation, properties.isolation_level)

    def is_blind_append(self, prepared: Sequence[Action]) -> bool:
        """Whether the commit only adds files and depends on nothing it read (spec 1.9)."""
        return isolation.is_append_only(prepared) and not self._reads.freeze().has_read_files

    def get_operation_metrics(self, operation: Operation) -> Mapping[str, str] | None:
        """The metrics to record, or None where the conf switches them off."""
        return get_operation_metrics(operation, self._log.options)

    def get_user_metadata(self, operation: Operation) -> str | None:
        """The user metadata to record: the write's own, or that of the conf."""
        return get_user_metadata(operation, self._log.options)

    def get_pretty_partition_message(self, partition_values: Mapping[str, str | None]) -> str:
        """Where in the table a file lies, as conflict messages say it."""
        columns = self.snapshot.partition_columns
        return get_pretty_partition_message(columns, partition_values)

    # The attempts

    def is_commit_lock_enabled(self) -> bool:
        """The option if set, or else whether the store shows partial writes (spec 1.12)."""
        return is_commit_lock_enabled(self._log.options, self._log.store, self._log.log_path)

    @contextmanager
    def lock_commit_if_enabled(self) -> Iterator[None]:
        """Hold the table's commit lock for the whole attempt loop, or nothing.

        Raises:
            StorageError: Others held it for all of the retry budget; nothing was committed.
        """
        if not self.is_commit_lock_enabled():
            yield
            return
        log_path = self._log.store.resolve_path(self._log.log_path)
        lease, options = self._log.lease, self._log.options
        with commit_lock(log_path, lease=lease, options=options, clock=self._log.clock) as guard:
            self._guard = guard
            yield

    def do_commit_retry_iteratively(self, ours: Ours) -> commit_loop.Landed:
        """Try versions until the commit lands or a conflict ends it; see `commit_loop`."""
        if ours.read_version < 0:
            self._log.ensure_log_directory()
        with self.lock_commit_if_enabled():
            return commit_loop.run_attempts(
                ours,
                do_commit=self.do_commit,
                check_and_retry=self.check_and_retry,
                policy=self._log.options.retry_policy,
                clock=self._log.clock,
            )

    def do_commit(self, ours: Ours) -> PutOutcome:
        """One attempt at one version, its outcome settled; see `outcome`."""
        _LOG.debug(
            "Attempting to commit version %d with %d actions with %s isolation level",
            ours.attempt_version,
            len(ours.actions),
            ours.isolation_level.value,
        )
        has_info = self._log.options.commit_info_enabled
        file = VersionFile(
            commit_path(self._log.log_path, ours.attempt_version),
            actions_to_bytes(_lines(ours, has_info)),
            version=ours.attempt_version,
            txn_id=self.txn_id,
            has_commit_info=has_info,
        )
        self._guard.renew()
        self._log.note_attempt(self.txn_id, ours.attempt_version)
        return create_version_file(
            self._log.store,
            file,
            self._log.options.retry_policy,
            self._log.clock,
            ensure_may_write=self._guard.ensure_held,
        )

    def check_and_retry(self, ours: Ours, attempt: int) -> commit_loop.Rebased:
        """After a lost race: wait a little, then check the winners."""
        policy, clock = self._log.options.retry_policy, self._log.clock
        commit_loop.wait_before_retry(attempt, policy, clock)
        return self.check_for_conflicts(ours)

    def check_for_conflicts(self, ours: Ours) -> commit_loop.Rebased:
        """Read the commits that landed since the last check, and move past each of them.

        Raises:
            DeltaConcurrentModificationException: One of them stands in the way.
        """
        last_known = ours.attempt_version - 1
        winners = commit_loop.read_winners(self._log.store, self._log.log_path, last_known)
        rebased = commit_loop.rebase_past(ours, winners, self._log.clock)
        if winners and not rebased.has_landed:
            prepare.ensure_consistent_files(rebased.ours.actions, self._log.options)
        return rebased

    def get_next_attempt_version(self, ours: Ours, winners: tuple[Theirs, ...]) -> int:
        """The attempted version moved up by the winners found (spec 1.13)."""
        return commit_loop.next_attempt_version(ours, winners)

    # Afterwards

    def post_commit(self, landed: commit_loop.Landed) -> CommitResult:
        """Bring the table's handle up to date and run the hooks; the commit is in the table."""
        version = landed.ours.attempt_version
        self._committed_version = version
        _LOG.info("Committed delta #%d to %s", version, self._log.log_path)
        actions = _lines(landed.ours, self._log.options.commit_info_enabled)
        snapshot = self._log.update_after_commit(self.snapshot, landed.winners, version, actions)
        result = CommitResult(
            version=version,
            txn_id=self.txn_id,
            attempts=landed.attempts,
            elapsed_ms=landed.elapsed_ms,
            isolation_level=landed.ours.isolation_level.value,
        )
        if snapshot is None:
            return result
        committed = CommittedTransaction(self._log, version, actions, snapshot, self.txn_id)
        return self.run_post_commit_hooks(committed, result)

    def run_post_commit_hooks(
        self, committed: CommittedTransaction, result: CommitResult
    ) -> CommitResult:
        """Run what was registered; failures go into the result.

        Raises:
            UsageError: Nothing was committed yet.
            PostCommitHookError: A hook failed that `raises_on_failure`. The commit stands. Hooks in
                the background fail too late for this.
        """
        if self._committed_version is None:
            raise UsageError(
                "Can't call post commit hooks before committing", kind="OPTIMIST_NOT_COMMITTED"
            )
        hooks = (*self._log.default_hooks(committed), *self._hooks)
        outcomes = run_hooks(hooks, committed, self._log.background_work)
        result = replace(result, hooks=outcomes)
        for failed in result.failed_hooks:
            if not raises_on_failure(failed.name, self._log.options):
                continue
            raise PostCommitHookError(
                f"The commit of version {result.version} succeeded, but the post-commit hook "
                f"{failed.name} failed: {failed.error}. Do not run the operation again.",
                kind="DELTA_POST_COMMIT_HOOK_FAILED",
                hook=failed.name,
                version=result.version,
            ) from failed.error
        return result

    # Parts of commit

    def _commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        tags: Mapping[str, str] | None,
        *,
        may_skip: bool,
    ) -> CommitResult | None:
        with self._closing():
            ours = self._draft(actions, operation, tags)
            if may_skip and self._is_skippable(ours):
                return None
            return self.post_commit(self.do_commit_retry_iteratively(ours))

    def _draft(
        self, actions: Sequence[Action], operation: Operation, tags: Mapping[str, str] | None
    ) -> Ours:
        prepared = self.prepare_commit(actions, operation)
        self.perform_cdc_metadata_check()
        now_ms = self._log.clock.now_ms()
        level = self.get_isolation_level_to_use(prepared, operation)
        is_blind_append = self.is_blind_append(prepared)
        info = build_commit_info(
            operation,
            prepared,
            txn_id=self.txn_id,
            timestamp_ms=now_ms,
            read_version=self.read_version,
            isolation_level=level,
            is_blind_append=is_blind_append,
            tags=tags,
            options=self._log.options,
        )
        domains = self.snapshot.domain_metadata.values()
        ours = Ours(
            table_path=self._log.table_path,
            read_version=self.read_version,
            attempt_version=self.read_version + 1,
            actions=prepared,
            commit_info=info,
            reads=self._reads.freeze(),
            isolation_level=level,
            is_blind_append=is_blind_append,
            metadata=self.metadata,
            protocol=self.protocol,
            read_protocol=self.snapshot.protocol,
            read_schema=self.snapshot.schema,
            read_partition_columns=self.snapshot.partition_columns,
            row_id_high_water_mark=high_water_mark(domains, default=NO_ROW_IDS),
            options=self._log.options,
        )
        return complete_actions(ours, self.snapshot, now_ms)

    def _is_skippable(self, ours: Ours) -> bool:
        skippable = (IsolationLevel.SNAPSHOT_ISOLATION, IsolationLevel.SERIALIZABLE)
        enabled = self._log.options.skip_recording_empty_commits
        return not ours.actions and enabled and ours.isolation_level in skippable

    def _adopt_metadata(self, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Metadata and protocol among the actions are set like any other; the rest comes back."""
        protocols = [a for a in actions if isinstance(a, Protocol)]
        if len(protocols) + (self._new_protocol is not None and bool(protocols)) > 1:
            raise UsageError(
                "Cannot change the protocol more than once in a transaction.",
                kind="OPTIMIST_PROTOCOL_CHANGED_TWICE",
            )
        self._new_protocol = protocols[0] if protocols else self._new_protocol
        for action in actions:
            if isinstance(action, Metadata):
                self.update_metadata(action)
        return tuple(a for a in actions if not isinstance(a, Metadata | Protocol))

    def _set_metadata(self, metadata: Metadata) -> None:
        if self._new_metadata is not None:
            raise UsageError(
                "Cannot change the metadata more than once in a transaction.",
                kind="OPTIMIST_METADATA_CHANGED_TWICE",
            )
        exists = self.read_version >= 0
        previous = self.snapshot.metadata if exists else None
        derived, protocol = metadata_update.derive_metadata_and_protocol(
            metadata,
            current=previous,
            protocol=self._new_protocol or (self.snapshot.protocol if exists else None),
            options=self._log.options,
            clock=self._log.clock,
        )
        self._new_protocol = protocol or self._new_protocol
        self._new_metadata = derived
        self.verify_new_metadata(derived)

    def _ensure_open(self) -> None:
        if self._committed_version is not None:
            raise UsageError(
                "Transaction already committed.",
                kind="OPTIMIST_TRANSACTION_ALREADY_COMMITTED",
                version=self._committed_version,
            )
        if self._is_closed:
            raise UsageError(
                "The transaction has failed and can't be used again. Start a new one.",
                kind="OPTIMIST_TRANSACTION_FAILED",
            )

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """A transaction is used once: whatever comes of the commit, it is over."""
        self._ensure_open()
        self._is_closed = True
        yield


def _lines(ours: Ours, has_info: bool) -> tuple[Action, ...]:
    info: tuple[CommitInfo, ...] = (ours.commit_info,) if has_info else ()
    return (*info, *ours.actions)
