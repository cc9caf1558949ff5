"""Whoever wants to know which tables this process changes, whichever handle does it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from optimist.core.data.table_ref import TableRef
from optimist.core.forking import renew_in_child
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action, AddFile, RemoveFile
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot

__all__ = ["CommitWatcher", "tell_watchers", "watch_commits"]

CommitWatcher: TypeAlias = Callable[[TableRef, Snapshot | None], None]
"""Is told of a table once other rows are in it, and of the version, unless that could not be made.

What it raises is logged and goes no further.
"""

_LOG = logging.getLogger(__name__)


class _Watchers:
    """By their names. They are clients of servers, so a forked child has none of them."""

    def __init__(self) -> None:
        self.by_name: dict[str, CommitWatcher] = {}
        renew_in_child(self, lambda watchers: watchers.by_name.clear())


_WATCHERS = _Watchers()


def watch_commits(name: str, watcher: CommitWatcher) -> None:
    """Tell a watcher of the commits from now on, and drop the one that had its name."""
    _WATCHERS.by_name[name] = watcher


def tell_watchers(
    table: TableRef,
    actions: Sequence[Action],
    files: ManyFiles | None,
    snapshot: Snapshot | None,
) -> None:
    """Tell the watchers of a commit that has landed, if it changes rows."""
    changed = any(isinstance(each, AddFile | RemoveFile) and each.data_change for each in actions)
    if not (changed or files):
        return
    for name, watcher in tuple(_WATCHERS.by_name.items()):
        try:
            watcher(table, snapshot)
        except Exception:  # noqa: BLE001 - the commit stands whatever happens here
            _LOG.warning(
                "A version of %s was committed, but %s could not be notified.",
                without_secrets(table.table_path),
                name,
                exc_info=True,
            )
