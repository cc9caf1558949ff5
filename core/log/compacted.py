"""Compacted commits: files that hold the net effect of several commits (spec 5.3 step 11).

They only save requests: the commits that they stand for remain in the log. The engine reads those
instead if a writer has merely put all actions of the commits in one file, so that a file occurs as
added and as removed: nobody knows the order in which such a writer puts its lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors.foreign_text import quoted
from optimist.core.log.file_table import file_keys
from optimist.core.log.names import LogFileKind, parse_log_file_name
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import (
    Action,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)

__all__ = [
    "NotReconciledError",
    "choose_compacted",
    "compacted_range",
    "ensure_reconciled",
    "is_compacted",
    "state_key",
]

_SUFFIX = ".compacted.json"


class NotReconciledError(Exception):
    """A compacted file has something more than once, so its commits must be read instead."""


def is_compacted(status: FileStatus) -> bool:
    """Return whether the file holds several commits, by its name."""
    return _version_range(status) is not None


def compacted_range(status: FileStatus) -> tuple[int, int]:
    """Return the first and the last version that a compacted file stands for.

    Raises:
        ValueError: The file has another kind of name.
    """
    found = _version_range(status)
    if found is None:
        raise ValueError(f"{status.name} is not the name of compacted commits")
    return found


def choose_compacted(files: Iterable[FileStatus], after: int, upto: int) -> tuple[FileStatus, ...]:
    """Choose the compacted files to read between two versions: ascending, without overlap.

    Of files with the same start, the longest wins. Empty files don't count.

    Args:
        files: The compacted files of a listing.
        after: The last version that is known without them.
        upto: The last wanted version.
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


def state_key(action: Action) -> tuple[str, ...] | None:
    """Return the key for which only the last action counts (spec 5.6), or None."""
    if isinstance(action, SetTransaction):
        return (action.KEY, action.app_id)
    if isinstance(action, DomainMetadata):
        return (action.KEY, action.domain)
    return (action.KEY,) if isinstance(action, Protocol | Metadata) else None


def ensure_reconciled(actions: Iterable[Action], files: pa.RecordBatch, path: str) -> None:
    """Refuse a compacted file with anything more than once, because its order would matter.

    Args:
        actions: Its actions other than adds and removes.
        files: Its adds and removes, columns of `ACTIONS_SCHEMA`.
        path: The file, for the error.

    Raises:
        NotReconciledError: A logical file, an application id of transactions, a domain, the
            protocol or the metadata occurs more than once.
    """
    keys = file_keys(files)
    if pc.count_distinct(keys).as_py() < len(keys):
        repeated = Counter(keys.to_pylist())
    else:
        repeated = Counter(map(state_key, actions))
        del repeated[None]
    for key, count in repeated.most_common(1):
        if count > 1:
            what = key if isinstance(key, str) else " ".join(key)
            raise NotReconciledError(f"{path} has more than one action for {quoted(what)}")


def _version_range(status: FileStatus) -> tuple[int, int] | None:
    if not status.name.endswith(_SUFFIX):  # as of all files of a long log
        return None
    name = parse_log_file_name(status.name)
    if name is None or name.kind is not LogFileKind.COMPACTED or name.end_version is None:
        return None
    return name.version, name.end_version
