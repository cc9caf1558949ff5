"""One row per kind of checkpoint: which is preferred, and how it is read (spec 5.1, 5.3).

To support another kind: write its reader and name it in its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from optimist.core.log.checkpoint_reader import CheckpointReader, ClassicCheckpointReader
from optimist.core.log.names import LogFileKind, LogFileName, parse_log_file_name
from optimist.core.logstore import FileStatus, LogStore

__all__ = ["CHECKPOINT_KINDS", "Checkpoint", "CheckpointKind", "complete_checkpoints"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its version, kind, and files in the order of their names."""

    version: int
    kind: LogFileKind
    files: tuple[FileStatus, ...]

    @property
    def is_readable(self) -> bool:
        """Whether this engine can read this kind."""
        return CHECKPOINT_KINDS[self.kind].reader is not None

    def open(self, store: LogStore) -> CheckpointReader:
        """A reader of its content; only for a kind that is readable."""
        reader = CHECKPOINT_KINDS[self.kind].reader
        assert reader is not None
        return reader(store, self.files)


@dataclass(frozen=True, slots=True)
class CheckpointKind:
    """A row of the table.

    Attributes:
        rank: Of several checkpoints of one version the kind with the highest rank is taken.
        reader: How to read it, from a store and its files; None where this engine can't.
    """

    rank: int
    reader: Callable[[LogStore, tuple[FileStatus, ...]], CheckpointReader] | None


CHECKPOINT_KINDS: Mapping[LogFileKind, CheckpointKind] = {
    LogFileKind.CLASSIC_CHECKPOINT: CheckpointKind(0, ClassicCheckpointReader),
    LogFileKind.MULTI_PART_CHECKPOINT: CheckpointKind(1, None),
    LogFileKind.V2_CHECKPOINT: CheckpointKind(2, None),
}


def complete_checkpoints(files: Iterable[FileStatus]) -> tuple[Checkpoint, ...]:
    """The complete checkpoints among files of a log, least preferred first (spec 5.3 step 4).

    Files of zero length and multi-part checkpoints that lack a part don't count.
    """
    parts: dict[tuple[int, int], dict[int, FileStatus]] = {}
    found: list[tuple[tuple[int, int, int, str], Checkpoint]] = []
    for status in files:
        name = parse_log_file_name(status.name)
        if name is None or not name.kind.is_checkpoint or status.size_bytes == 0:
            continue
        if name.part is not None and name.num_parts is not None:
            parts.setdefault((name.version, name.num_parts), {})[name.part] = status
        else:
            found.append(_ranked(name, (status,)))
    for (version, num_parts), by_part in parts.items():
        wanted = range(1, num_parts + 1)
        if all(part in by_part for part in wanted):
            name = LogFileName(LogFileKind.MULTI_PART_CHECKPOINT, version)
            found.append(_ranked(name, tuple(by_part[part] for part in wanted)))
    return tuple(checkpoint for _, checkpoint in sorted(found, key=lambda entry: entry[0]))


def _ranked(
    name: LogFileName, files: tuple[FileStatus, ...]
) -> tuple[tuple[int, int, int, str], Checkpoint]:
    rank = (name.version, CHECKPOINT_KINDS[name.kind].rank, len(files), files[-1].name)
    return rank, Checkpoint(name.version, name.kind, files)
