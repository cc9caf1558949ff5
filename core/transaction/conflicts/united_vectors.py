"""Our vectors, united with those that a winner put on the same files (spec 2.12).

Both commits delete rows of a file, but no row twice. So ours removes the file as the winner left
it, and adds it with a vector of the rows of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimist.core.data.statistics.loose_bounds import loosen_bounds
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import Action, AddFile, RemoveFile
from optimist.core.transaction.conflicts.file_metrics import with_actions
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, SharedFile, Theirs

__all__ = ["unite_vectors"]


def unite_vectors(ours: Ours, theirs: Theirs) -> Ours:
    """Put our deleted rows beside the winner's, in the files of which both delete rows.

    The new vectors are inline, however large they are. `CloserLook.settled` puts large ones into
    files.
    """
    if not theirs.shared:
        return ours
    actions = tuple(
        moved
        for action in ours.actions
        if (moved := _moved_action(action, theirs.shared)) is not None
    )
    return with_actions(ours, actions)


def _moved_action(action: Action, shared: Mapping[str, SharedFile]) -> Action | None:
    if not isinstance(action, AddFile | RemoveFile):
        return action
    item = shared.get(canonical_path(action.path))
    if item is None:
        return action
    if isinstance(action, AddFile):
        return _with_united_vector(action, item)
    removed = item.after.remove(action.deletion_timestamp or 0, data_change=action.data_change)
    return replace(removed, deletion_timestamp=action.deletion_timestamp)


def _with_united_vector(ours: AddFile, item: SharedFile) -> AddFile | None:
    """Return the file with the rows of both deleted, or None if no row is left."""
    if item.is_emptied:
        return None
    total = num_rows(ours.stats)
    stats = item.after.stats
    if total is not None:
        stats = loosen_bounds(stats, num_rows=total, num_live=total - item.num_deleted)
    return replace(
        item.after,
        deletion_vector=inline_vector(item.united),
        stats=stats,
        data_change=ours.data_change,
    )
