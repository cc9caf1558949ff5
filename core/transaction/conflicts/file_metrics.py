"""The metrics of files and vectors, after a rebase has changed a commit's actions (spec 8.3)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import Action, AddFile, RemoveFile
from optimist.core.transaction.conflicts.ours_and_theirs import Ours

__all__ = ["with_actions"]

_IN_MERGE = {
    "numRemovedFiles": "numTargetFilesRemoved",
    "numRemovedBytes": "numTargetBytesRemoved",
    "numDeletionVectorsAdded": "numTargetDeletionVectorsAdded",
    "numDeletionVectorsRemoved": "numTargetDeletionVectorsRemoved",
    "numDeletionVectorsUpdated": "numTargetDeletionVectorsUpdated",
}
"""The metrics of files and vectors as MERGE calls them (spec 8.3)."""


def with_actions(ours: Ours, actions: tuple[Action, ...]) -> Ours:
    """Replace the commit's actions, and update the metrics of its files.

    Metrics of rows stay as they were.
    """
    before, ours = ours.actions, replace(ours, actions=actions)
    metrics = ours.commit_info.operation_metrics
    if not metrics:
        return ours
    old, new = _count_files(before), _count_files(actions)
    moved = {
        name: str(int(metrics[name]) + new[key] - old[key])
        for key in new
        for name in (key, _IN_MERGE[key])
        if metrics.get(name, "").isdecimal()
    }
    info = replace(ours.commit_info, operation_metrics={**metrics, **moved})
    return replace(ours, commit_info=info)


def _count_files(actions: tuple[Action, ...]) -> dict[str, int]:
    """Compute the metrics of files and vectors, named as in the history."""
    added = {canonical_path(item.path) for item in actions if isinstance(item, AddFile)}
    removes = [item for item in actions if isinstance(item, RemoveFile)]
    gone = [item for item in removes if canonical_path(item.path) not in added]
    with_vector = [item for item in removes if item.deletion_vector]
    return {
        "numRemovedFiles": len(gone),
        "numRemovedBytes": sum(item.size or 0 for item in gone),
        "numDeletionVectorsAdded": len(removes) - len(gone),
        "numDeletionVectorsRemoved": len(with_vector),
        "numDeletionVectorsUpdated": len([i for i in with_vector if i not in gone]),
    }
