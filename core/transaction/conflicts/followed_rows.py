"""Our commit after a winner that moved the rows that it changes to other files (spec 2.12).

The commit does to the new files what it did to the old ones: it deletes the rows at their new
positions, and removes files that lose all their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyroaring import BitMap64

from optimist.core.data.statistics.loose_bounds import loosen_bounds
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import Action, AddFile, RemoveFile
from optimist.core.transaction.conflicts.file_metrics import with_actions
from optimist.core.transaction.conflicts.ours_and_theirs import MovedRows, Ours, Theirs

__all__ = ["follow_moved_rows"]


def follow_moved_rows(ours: Ours, theirs: Theirs) -> Ours:
    """Change the rows where the winner has put them, and depend on them there.

    The new vectors are inline, however large they are. `CloserLook.settled` puts large ones into
    files.
    """
    moved = theirs.moved
    if not moved.left:
        return ours
    own = [item for item in ours.of_type(RemoveFile) if _is_left(item, moved)]
    kept = tuple(item for item in ours.actions if not _is_left(item, moved))
    added = tuple(_in_new_files(moved, theirs, own[0].deletion_timestamp or 0)) if own else ()
    reads = ours.reads.moved(moved.left, moved.read, moved.rows)
    return with_actions(replace(ours, reads=reads), (*kept, *added))


def _is_left(action: Action, moved: MovedRows) -> bool:
    return isinstance(action, AddFile | RemoveFile) and canonical_path(action.path) in moved.left


def _in_new_files(moved: MovedRows, theirs: Theirs, now_ms: int) -> Iterator[Action]:
    for file in moved.replaced:
        yield file.remove(now_ms)
    for file in theirs.adds:
        deleted = moved.deleted.get(canonical_path(file.path))
        if deleted is None:
            continue
        yield file.remove(now_ms)
        total = num_rows(file.stats)
        if total != len(deleted):
            yield _without_rows(file, deleted, total)


def _without_rows(file: AddFile, deleted: BitMap64, total: int | None) -> AddFile:
    stats = file.stats
    if total is not None:
        stats = loosen_bounds(stats, num_rows=total, num_live=total)
    return replace(file, deletion_vector=inline_vector(deleted), stats=stats, data_change=True)
