"""The hooks of every commit: checksum, log compaction, checkpoint with cleanup, symlink manifest.

Spec 1.15. All but the last can run in the background: a table is whole without what they write.
"""

from __future__ import annotations

from optimist.core.log.checksum import write_checksum
from optimist.core.maintenance.checkpoint import write_checkpoint
from optimist.core.maintenance.cleanup import clean_up_expired_logs
from optimist.core.maintenance.compaction import is_compaction_due, write_compaction
from optimist.core.options import EngineOptions
from optimist.core.transaction.conflicts.isolation import FILE_ACTIONS
from optimist.core.transaction.hooks.hooks import CommittedTransaction, PostCommitHook
from optimist.core.transaction.hooks.symlink_manifest import GenerateSymlinkManifest

__all__ = [
    "CheckpointHook",
    "ChecksumHook",
    "LogCompactionHook",
    "default_hooks",
    "is_checkpoint_due",
    "raises_on_failure",
]


class ChecksumHook:
    """Writes `N.crc` where it can be derived from that of the version before (spec 5.9)."""

    name = "Write Version Checksum"
    may_run_later = True

    def run(self, committed: CommittedTransaction) -> None:
        """Write it; one that is there already is left alone."""
        checksum = committed.snapshot.checksum
        if checksum is not None:
            log = committed.log
            write_checksum(log.store, log.log_path, committed.version, checksum)


class LogCompactionHook:
    """Writes the newest commits once more as one file; see the option `log.compactionInterval`."""

    name = "Log Compaction"
    may_run_later = True

    def run(self, committed: CommittedTransaction) -> None:
        """Compact the interval that the committed version fills."""
        log, last = committed.log, committed.version
        first = last + 1 - log.options.log_compaction_interval
        write_compaction(log.store, log.log_path, first, last)


class CheckpointHook:
    """Writes a checkpoint every `delta.checkpointInterval` commits, then removes expired logs."""

    name = "Post Commit Checkpoint Trigger"
    may_run_later = True

    def run(self, committed: CommittedTransaction) -> None:
        """Checkpoint exactly the committed version."""
        log = committed.log
        write_checkpoint(log.store, committed.snapshot, options=log.options, clock=log.clock)
        clean_up_expired_logs(log.store, committed.snapshot, options=log.options, clock=log.clock)


def is_checkpoint_due(version: int, interval: int) -> bool:
    """Versions 10, 20, ... for an interval of 10; never version 0."""
    return version > 0 and version % interval == 0


def default_hooks(committed: CommittedTransaction) -> tuple[PostCommitHook, ...]:
    """Those of the standard hooks that have something to do after this commit."""
    options, properties = committed.log.options, committed.snapshot.properties
    hooks: list[PostCommitHook] = []
    if options.write_checksum_enabled:
        hooks.append(ChecksumHook())
    if is_compaction_due(committed.version, options.log_compaction_interval):
        hooks.append(LogCompactionHook())
    if is_checkpoint_due(committed.version, properties.checkpoint_interval):
        hooks.append(CheckpointHook())
    has_files = any(isinstance(action, FILE_ACTIONS) for action in committed.actions)
    if has_files and properties.symlink_format_manifest_enabled:
        hooks.append(GenerateSymlinkManifest())
    return tuple(hooks)


def raises_on_failure(hook_name: str, options: EngineOptions) -> bool:
    """Whether it is an error if this hook fails, and not a line in the log (spec 1.15).

    Who reads by a manifest would otherwise not learn that it is of an older version.
    """
    if hook_name == CheckpointHook.name and options.checkpoint_exception_throwing_enabled:
        return True
    return options.post_commit_hook_throw_on_error or hook_name == GenerateSymlinkManifest.name
