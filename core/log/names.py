"""Names of the files in a log directory: how they are built and how they are recognised (spec 5.1).

Versions are written with twenty digits; any number of digits is understood when reading.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.paths import join

__all__ = [
    "LAST_CHECKPOINT",
    "LOG_DIRECTORY",
    "LogFileKind",
    "LogFileName",
    "checksum_name",
    "classic_checkpoint_name",
    "commit_name",
    "commit_path",
    "compacted_name",
    "listing_start",
    "log_path_of",
    "multi_part_checkpoint_name",
    "parse_log_file_name",
    "v2_checkpoint_name",
]

LOG_DIRECTORY = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"


class LogFileKind(enum.Enum):
    """What a file of the log is, by its name."""

    COMMIT = "commit"
    CLASSIC_CHECKPOINT = "classic checkpoint"
    MULTI_PART_CHECKPOINT = "multi-part checkpoint"
    V2_CHECKPOINT = "V2 checkpoint"
    COMPACTED = "compacted commits"
    CHECKSUM = "version checksum"

    @property
    def is_checkpoint(self) -> bool:
        """Whether it is a checkpoint of any kind, or a part of one."""
        return self in _CHECKPOINTS


_CHECKPOINTS = frozenset(
    {
        LogFileKind.CLASSIC_CHECKPOINT,
        LogFileKind.MULTI_PART_CHECKPOINT,
        LogFileKind.V2_CHECKPOINT,
    }
)


@dataclass(frozen=True, slots=True)
class LogFileName:
    """What the name of a log file says.

    Attributes:
        kind: What the file is.
        version: Its table version; of compacted commits the first.
        end_version: Of compacted commits the last version; else None.
        part: Of a multi-part checkpoint which part, counted from 1; else None.
        num_parts: Of a multi-part checkpoint how many parts there are; else None.
    """

    kind: LogFileKind
    version: int
    end_version: int | None = None
    part: int | None = None
    num_parts: int | None = None


def log_path_of(table_path: str) -> str:
    """The log directory of a table."""
    return join(table_path, LOG_DIRECTORY)


def listing_start(log_path: str, version: int) -> str:
    """Where to list from, to see every log file of this version and later ones.

    Names with fewer digits sort after it, but for those of version 0, such as `0.json`: the start
    of everything is therefore before the first digit's end.
    """
    return join(log_path, f"{version:020d}." if version > 0 else "0.")


def commit_path(log_path: str, version: int) -> str:
    """The path of a version's commit file."""
    return join(log_path, commit_name(version))


def commit_name(version: int) -> str:
    """The name of a commit file."""
    return f"{version:020d}.json"


def checksum_name(version: int) -> str:
    """The name of a version checksum."""
    return f"{version:020d}.crc"


def classic_checkpoint_name(version: int) -> str:
    """The name of a checkpoint in one file."""
    return f"{version:020d}.checkpoint.parquet"


def multi_part_checkpoint_name(version: int, part: int, num_parts: int) -> str:
    """The name of one part, counted from 1, of a multi-part checkpoint."""
    return f"{version:020d}.checkpoint.{part:010d}.{num_parts:010d}.parquet"


def v2_checkpoint_name(version: int, unique: str, extension: str) -> str:
    """The name of a V2 checkpoint's top-level file; `extension` is `json` or `parquet`."""
    return f"{version:020d}.checkpoint.{unique}.{extension}"


def compacted_name(start_version: int, end_version: int) -> str:
    """The name of a file that holds several commits in one; both ends are included."""
    return f"{start_version:020d}.{end_version:020d}.compacted.json"


def parse_log_file_name(name: str) -> LogFileName | None:
    """What the name says, or None for a file that is none of the log's."""
    for pattern, build in _PATTERNS:
        match = pattern.fullmatch(name)
        if match:
            return build(*match.groups())
    return None


# `[0-9]` and not `\d`, which also matches the digits of other scripts. The order matters:
# `1.checkpoint.2.3.parquet` does not fit the V2 pattern, because its middle may hold no dot.
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[..., LogFileName]], ...] = (
    (
        re.compile(r"([0-9]+)\.json"),
        lambda version: LogFileName(LogFileKind.COMMIT, int(version)),
    ),
    (
        re.compile(r"([0-9]+)\.crc"),
        lambda version: LogFileName(LogFileKind.CHECKSUM, int(version)),
    ),
    (
        re.compile(r"([0-9]+)\.checkpoint\.parquet"),
        lambda version: LogFileName(LogFileKind.CLASSIC_CHECKPOINT, int(version)),
    ),
    (
        re.compile(r"([0-9]+)\.checkpoint\.([0-9]+)\.([0-9]+)\.parquet"),
        lambda version, part, parts: LogFileName(
            LogFileKind.MULTI_PART_CHECKPOINT, int(version), part=int(part), num_parts=int(parts)
        ),
    ),
    (
        re.compile(r"([0-9]+)\.checkpoint\.[^.]+\.(?:json|parquet)"),
        lambda version: LogFileName(LogFileKind.V2_CHECKPOINT, int(version)),
    ),
    (
        re.compile(r"([0-9]+)\.([0-9]+)\.compacted\.json"),
        lambda start, end: LogFileName(LogFileKind.COMPACTED, int(start), end_version=int(end)),
    ),
)
