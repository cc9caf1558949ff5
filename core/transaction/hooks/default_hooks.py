"""The hooks of every commit: checksum, log compaction, checkpoint with cleanup, symlink manifest.

Spec 1.15. All but the last can run in the background: a table is whole without what they write. By
default the checkpoint does, since it takes many times as long as the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from optimist.core.errors import TableError
from optimist.core.log.checkpoint_kinds import Checkpoint, written_checkpoint
from optimist.core.log.checksum import write_checksum
from optimist.core.log.known_log import KnownLog
from optimist.core.log.many_files import ManyFiles
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.log_upkeep.cleanup import LogCleaner
from optimist.core.log_upkeep.compaction import is_compaction_due, write_compaction
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Action, Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.transaction.conflicts.isolation import FILE_ACTIONS
from optimist.core.transaction.hooks.hooks import (
    CommittedTransaction,
    HookOutcome,
    PostCommitHook,
)
from optimist.core.transaction.hooks.symlink_manifest import GenerateSymlinkManifest

__all__ = [
    "CheckpointHook",
    "ChecksumHook",
    "LogCompactionHook",
    "default_hooks",
    "is_checkpoint_due",
    "missed_hooks",
    "names_files",
    "raises_on_failure",
    "runs_late",
]


TakeUp: TypeAlias = Callable[[KnownLog, Checkpoint], None]

_LATE_BY_DEFAULT = frozenset({"Post Commit Checkpoint Trigger"})
"""The hooks that run in the background if the options do not say whether hooks do."""


class ChecksumHook:
    """Writes `N.crc` where it can be derived from that of the version before (spec 5.9)."""

    name = "Write Version Checksum"
    may_run_later = True

    def run(self, committed: CommittedTransaction) -> None:
        """Write the checksum, unless the version has one already."""
        checksum = committed.snapshot.checksum
        if checksum is not None:
            table = committed.table
            write_checksum(table.store, table.log_path, committed.version, checksum)


class LogCompactionHook:
    """Writes the newest commits once more as one file (option `log.compactionInterval`)."""

    name = "Log Compaction"
    may_run_later = True

    def run(self, committed: CommittedTransaction) -> None:
        """Compact the interval that the committed version fills."""
        table, last = committed.table, committed.version
        first = last + 1 - table.options.log_compaction_interval
        write_compaction(table.store, table.log_path, first, last)


class CheckpointHook:
    """Writes a checkpoint, then removes expired logs: every `delta.checkpointInterval` commits.

    After a large commit it does so whatever the version is.

    Args:
        cleaner: The table's cleaner, which remembers from one commit to the next when more of the
            log can have expired.
        take_up: Has the table's handle go on from the checkpoint, before what is older may go.
    """

    name = "Post Commit Checkpoint Trigger"
    may_run_later = True
    only_newest_counts = True

    def __init__(self, cleaner: LogCleaner, take_up: TakeUp) -> None:
        self._cleaner = cleaner
        self._take_up = take_up

    def run(self, committed: CommittedTransaction) -> None:
        """Checkpoint exactly the committed version."""
        store, snapshot = committed.table.store, committed.snapshot
        options, clock = committed.table.options, committed.table.clock
        last = write_checkpoint(
            store,
            snapshot,
            options=options,
            clock=clock,
            origin=committed.files.origin if committed.files else None,
        )
        written = written_checkpoint(committed.table.log_path, last, clock.now_ms())
        self._take_up(snapshot.known_log, written)
        self._cleaner.clean_up(store, snapshot, options=options, clock=clock)


def is_checkpoint_due(version: int, interval: int) -> bool:
    """Return whether a version gets a checkpoint: 10, 20, ... for an interval of 10, never 0."""
    return version > 0 and version % interval == 0


def default_hooks(
    committed: CommittedTransaction, cleaner: LogCleaner, take_up: TakeUp
) -> tuple[PostCommitHook, ...]:
    """Return the standard hooks that have something to do after this commit."""
    options, properties = committed.table.options, committed.snapshot.properties
    hooks: list[PostCommitHook] = []
    if options.write_checksum_enabled:
        hooks.append(ChecksumHook())
    if is_compaction_due(committed.version, options.log_compaction_interval):
        hooks.append(LogCompactionHook())
    is_due = is_checkpoint_due(committed.version, properties.checkpoint_interval)
    # A large commit takes as long to read as a checkpoint, which is then read in its place.
    if options.post_commit_checkpoint and (is_due or committed.is_large):
        hooks.append(CheckpointHook(cleaner, take_up))
    has_files = names_files(committed.actions, committed.files)
    if has_files and properties.symlink_format_manifest_enabled:
        hooks.append(GenerateSymlinkManifest())
    return tuple(hooks)


def missed_hooks(
    registered: Sequence[PostCommitHook],
    version: int,
    metadata: Metadata,
    reason: str,
    *,
    has_files: bool,
) -> tuple[HookOutcome, ...]:
    """Report the hooks that did not run, for example because the version can't be read back.

    These are the registered hooks and the symlink manifest. The next commit makes up for all
    others.

    Args:
        registered: The transaction's own hooks.
        version: The version that was committed.
        metadata: The table's metadata since.
        reason: Why they did not run, in words.
        has_files: Whether the commit named files.
    """
    names = [hook.name for hook in registered]
    properties = TableMetadata.of(metadata).properties
    if has_files and properties.symlink_format_manifest_enabled:
        names.insert(0, GenerateSymlinkManifest.name)
    error = TableError(
        f"The commit of version {version} succeeded, but its post-commit hooks did not all run: "
        f"{reason}.",
        kind="DELTA_STATE_RECOVER_ERROR",
        version=version,
    )
    return tuple(HookOutcome(name, error) for name in names)


def names_files(actions: Sequence[Action], files: ManyFiles | None) -> bool:
    """Return whether a commit with these actions, and with these files as columns, names files."""
    return bool(files) or any(isinstance(action, FILE_ACTIONS) for action in actions)


def runs_late(hook: PostCommitHook, committed: CommittedTransaction) -> bool:
    """Return whether a hook runs in the background, after the commit has returned.

    Without an option that decides, the checkpoint does. It does not after a large commit, whose
    version is slow to read until then, and not where the caller wants its failure raised.
    """
    options = committed.table.options
    if options.post_commit_background is not None:
        return options.post_commit_background and getattr(hook, "may_run_later", False)
    is_awaited = committed.is_large or raises_on_failure(hook.name, options)
    return hook.name in _LATE_BY_DEFAULT and not is_awaited


def raises_on_failure(hook_name: str, options: EngineOptions) -> bool:
    """Return whether a failure of this hook is raised instead of only logged (spec 1.15).

    A failure to write the symlink manifest is always raised. Nothing else tells its readers that
    the manifest still lists the files of an older version.
    """
    if hook_name == CheckpointHook.name and options.checkpoint_exception_throwing_enabled:
        return True
    return options.post_commit_hook_throw_on_error or hook_name == GenerateSymlinkManifest.name
