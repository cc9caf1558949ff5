"""The newest version of a table, loaded from its log (spec 5.3, 5.6).

The newest version comes from the newest commit, or from a checkpoint that follows it: a store may
show the checkpoint first, and a commit may have been lost after its checkpoint was made. But a file
that only looks like a checkpoint by its name, such as `9223372036854775807.checkpoint.parquet`,
must not hide a log whose commits are all present. If it can't be read, the engine ignores it.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from optimist.core.errors import TableError
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import log_path_of
from optimist.core.log.replay import UNREADABLE_CHECKPOINT
from optimist.core.log.segment import LogSegment, list_segment
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import LogStore
from optimist.core.runtime.clock import Clock
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot

__all__ = ["load_newest"]

_LOG = logging.getLogger(__name__)


def load_newest(
    store: LogStore, table_path: str, *, options: EngineOptions, clock: Clock
) -> Snapshot | None:
    """Return the newest version, or None without a table. Its files are read on first use.

    1. List from the checkpoint that the hint names (see `list_segment` for a wrong hint).
    2. Read the version. A checkpoint that can't be read gives way to the next best.
    3. If no checkpoint gives that version, and no commit has it either, fall back to the version of
       the newest commit, with a warning that names the file.

    Raises:
        TableError, ProtocolError, StorageError: See `list_segment` and `Snapshot.load`.
    """
    log_path = log_path_of(table_path)
    last = read_last_checkpoint(store, log_path, clock=clock)
    hint = last.version if last else None
    segment = list_segment(store, log_path, hint=hint)
    if segment is None:
        return None
    try:
        return Snapshot.load(store, table_path, segment, options=options, clock=clock)
    except TableError as error:
        is_ahead = segment.newest_commit < segment.version
        if not is_ahead or error.kind not in UNREADABLE_CHECKPOINT:
            raise
        to_commit = _to_newest_commit(store, segment, hint, error)
    return Snapshot.load(store, table_path, to_commit, options=options, clock=clock)


def _to_newest_commit(
    store: LogStore, segment: LogSegment, hint: int | None, reason: TableError
) -> LogSegment:
    newest = segment.newest_commit
    found = None
    with suppress(TableError):
        found = list_segment(store, segment.log_path, version=newest, hint=hint)
    if found is None:
        raise reason from None  # some commits are missing, so the table needs the checkpoint
    _LOG.warning(
        "The log %s has a checkpoint for version %d that can't be read, and no commit of that "
        "version. The checkpoint is ignored. The newest commit is version %d. Remove the "
        "checkpoint. %s",
        without_secrets(segment.log_path),
        segment.version,
        newest,
        reason,
    )
    return found
