"""The complete checkpoints of a listing, and the preferred one among them (spec 5.1, 5.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.last_checkpoint import LastCheckpoint
from optimist.core.log.limits import DEFAULT_LIMITS, LogLimits
from optimist.core.log.names import (
    LogFileKind,
    LogFileName,
    classic_checkpoint_name,
    parse_log_file_name,
)
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore

__all__ = [
    "CHECKPOINT_KINDS",
    "Checkpoint",
    "CheckpointRank",
    "complete_checkpoints",
    "written_checkpoint",
]

CheckpointRank: TypeAlias = tuple[int, int, int, str]

CHECKPOINT_KINDS: Mapping[LogFileKind, int] = {
    LogFileKind.CLASSIC_CHECKPOINT: 0,
    LogFileKind.MULTI_PART_CHECKPOINT: 1,
    LogFileKind.V2_CHECKPOINT: 2,
}
"""The rank of each kind: of several checkpoints of one version, the highest rank wins."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its version, kind, and top-level files in the order of their names."""

    version: int
    kind: LogFileKind
    files: tuple[FileStatus, ...]

    @property
    def rank(self) -> CheckpointRank:
        """The sort key: newer checkpoints are greater, and within a version the preferred one."""
        return self.version, CHECKPOINT_KINDS[self.kind], len(self.files), self.files[-1].name

    def is_same_as(self, other: Checkpoint) -> bool:
        """Return whether two listings show the same top-level files, and not replaced ones."""
        pairs = zip(self.files, other.files, strict=False)
        return len(self.files) == len(other.files) and all(
            one.is_same_file(another) for one, another in pairs
        )

    def open(self, store: LogStore, limits: LogLimits = DEFAULT_LIMITS) -> CheckpointReader:
        """Return a reader of its content, which reads no more of it than `limits` allows."""
        return CheckpointReader(store, self.version, self.files, limits)


def complete_checkpoints(files: Iterable[FileStatus]) -> tuple[Checkpoint, ...]:
    """Return the complete checkpoints among log files, least preferred first (spec 5.3 step 4).

    Files of zero length and multi-part checkpoints that lack a part don't count.
    """
    parts: dict[tuple[int, int], dict[int, FileStatus]] = {}
    found: list[Checkpoint] = []
    for status in files:
        name = parse_log_file_name(status.name)
        if name is None or not name.kind.is_checkpoint or status.size_bytes == 0:
            continue
        if name.part is not None and name.num_parts is not None:
            parts.setdefault((name.version, name.num_parts), {})[name.part] = status
        else:
            found.append(_checkpoint(name, (status,)))
    for (version, num_parts), by_part in parts.items():
        wanted = tuple(by_part[part] for part in sorted(by_part) if 1 <= part <= num_parts)
        if wanted and len(wanted) == num_parts:
            name = LogFileName(LogFileKind.MULTI_PART_CHECKPOINT, version)
            found.append(_checkpoint(name, wanted))
    return tuple(sorted(found, key=lambda checkpoint: checkpoint.rank))


def written_checkpoint(log_path: str, last: LastCheckpoint, now_ms: int) -> Checkpoint:
    """Return the checkpoint that this process has just written, without a listing.

    Args:
        log_path: The log directory.
        last: The written content of `_last_checkpoint`.
        now_ms: The time, in epoch milliseconds.
    """
    name, size_bytes = classic_checkpoint_name(last.version), last.size_in_bytes
    named = last.extra.get("v2Checkpoint")
    if isinstance(named, dict):  # the sum counts its sidecars, too
        name, size_bytes = str(named["path"]), named["sizeInBytes"]
    status = FileStatus(join(log_path, name), size_bytes or 1, now_ms)
    (found,) = complete_checkpoints([status])
    return found


def _checkpoint(name: LogFileName, files: tuple[FileStatus, ...]) -> Checkpoint:
    return Checkpoint(name.version, name.kind, files)
