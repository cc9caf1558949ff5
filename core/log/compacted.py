"""Compacted commits: files that hold the net effect of several commits (spec 5.3 step 11).

They only save requests. The commits they stand for remain in the log, and serve in their place.
"""

from __future__ import annotations

from collections.abc import Iterable

from optimist.core.log.names import LogFileKind, LogFileName, parse_log_file_name
from optimist.core.logstore import FileStatus

__all__ = ["choose_compacted", "compacted_range", "is_compacted"]


def is_compacted(status: FileStatus) -> bool:
    """Whether the file holds several commits, by its name."""
    return _compacted_name(status) is not None


def compacted_range(status: FileStatus) -> tuple[int, int]:
    """The first and the last version that a compacted file stands for."""
    name = _compacted_name(status)
    assert name is not None and name.end_version is not None
    return name.version, name.end_version


def choose_compacted(files: Iterable[FileStatus], after: int, upto: int) -> tuple[FileStatus, ...]:
    """Which compacted files to read between two versions: ascending, without overlap.

    Of those that start alike the longest is taken; empty files don't count.

    Args:
        files: The compacted files of a listing.
        after: The last version that is known without them.
        upto: The last version wanted.
    """
    ranges = [
        (*compacted_range(status), status)
        for status in files
        if is_compacted(status) and status.size_bytes
    ]
    chosen: list[FileStatus] = []
    covered = after
    for start, end, status in sorted(ranges, key=lambda item: (item[0], -item[1])):
        if covered < start < end <= upto:
            chosen.append(status)
            covered = end
    return tuple(chosen)


def _compacted_name(status: FileStatus) -> LogFileName | None:
    name = parse_log_file_name(status.name)
    return name if name is not None and name.kind is LogFileKind.COMPACTED else None
