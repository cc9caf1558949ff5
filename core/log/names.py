"""Names of the files in a log directory, and how they are parsed (spec 5.1).

Versions are written with twenty digits. The parser accepts any number of digits, as long as the
version is a 64-bit number.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.paths import LOG_DIRECTORY, join
from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "LAST_CHECKPOINT",
    "LogFileKind",
    "LogFileName",
    "checksum_name",
    "classic_checkpoint_name",
    "commit_name",
    "commit_path",
    "compacted_name",
    "listing_start",
    "log_path_of",
    "parse_log_file_name",
    "v2_checkpoint_name",
]

LAST_CHECKPOINT = "_last_checkpoint"


class LogFileKind(enum.Enum):
    """The kind of a log file, by its name."""

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
    """The parts of a log file's name.

    Attributes:
        kind: The kind of the file.
        version: The table version, or the first one that compacted commits cover.
        end_version: The last version that compacted commits cover. None for other files.
        part: The number of the part of a multi-part checkpoint, counted from 1. None for other
            files.
        num_parts: The number of parts of the multi-part checkpoint. None for other files.
    """

    kind: LogFileKind
    version: int
    end_version: int | None = None
    part: int | None = None
    num_parts: int | None = None


def log_path_of(table_path: str) -> str:
    """Return the log directory of a table."""
    return join(table_path, LOG_DIRECTORY)


def listing_start(log_path: str, version: int) -> str:
    """Return the path to list from, to see every log file of this version and later ones.

    A name with fewer than twenty digits sorts after a start with twenty, unless it has version 0,
    such as `0.json`. So a listing from version 0 starts at `0.`, which sorts before all of them.
    """
    return join(log_path, f"{version:020d}." if version > 0 else "0.")


def commit_path(log_path: str, version: int) -> str:
    """Return the path of a version's commit file."""
    return join(log_path, commit_name(version))


def commit_name(version: int) -> str:
    """Return the name of a commit file."""
    return f"{version:020d}.json"


def checksum_name(version: int) -> str:
    """Return the name of a version checksum."""
    return f"{version:020d}.crc"


def classic_checkpoint_name(version: int) -> str:
    """Return the name of a checkpoint in one file."""
    return f"{version:020d}.checkpoint.parquet"


def v2_checkpoint_name(version: int, unique: str, extension: str) -> str:
    """Return the name of a V2 checkpoint's top-level file (`extension`: `json` or `parquet`)."""
    return f"{version:020d}.checkpoint.{unique}.{extension}"


def compacted_name(start_version: int, end_version: int) -> str:
    """Return the name of a file that holds several commits, both ends included."""
    return f"{start_version:020d}.{end_version:020d}.compacted.json"


def parse_log_file_name(name: str) -> LogFileName | None:
    """Parse the name of a log file, or return None for other files.

    A number beyond 64 bits is not a version, so a file with such a name is not a log file.
    """
    if len(name) > _MAX_LENGTH:
        return None
    for pattern, build in _PATTERNS:
        match = pattern.fullmatch(name)
        if match:
            parsed = build(*match.groups())
            return parsed if max(parsed.version, parsed.end_version or 0) <= LARGEST_LONG else None
    return None


# File systems allow no longer names, and `int` raises for a text of thousands of digits.
_MAX_LENGTH = 255


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
