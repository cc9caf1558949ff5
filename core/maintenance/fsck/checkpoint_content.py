"""Whether a checkpoint says the same of the table as the commits before it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.maintenance.fsck.committed_actions import (
    CommittedActions,
    StateFacts,
    facts_differ,
    last_of_each,
)

__all__ = ["CheckpointContent", "untruth_of"]


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """What a checkpoint holds.

    Attributes:
        version: Its version; -1 stands for the time before the first commit.
        facts: What it says of the table's state.
        keys: The keys of its live files.
        size_bytes: The sum of their sizes.
    """

    version: int
    facts: StateFacts
    keys: pa.ChunkedArray
    size_bytes: int


def untruth_of(
    checkpoint: CheckpointContent, base: CheckpointContent, commits: CommittedActions
) -> str | None:
    """Describe how a checkpoint contradicts an earlier one and the commits since; None if not.

    Args:
        checkpoint: The checkpoint.
        base: The earlier one.
        commits: The commits between them, all of them.
    """
    first, last = base.version + 1, checkpoint.version
    expected = base.facts | commits.facts_between(first, last)
    source = f"checkpoint {base.version} and the commits after it" if first else "the commits"
    if facts_differ(checkpoint.facts, expected):
        return f"its protocol, metadata or transactions are not those of {source}"
    changed = last_of_each(commits.files_between(first, last))
    touched, is_add = changed.column("key"), changed.column("isAdd")
    added = touched.filter(is_add)
    num_kept = _num_in(checkpoint.keys, base.keys.filter(pc.invert(_is_in(base.keys, touched))))
    num_lost = len(base.keys) - _num_in(base.keys, touched) - num_kept
    num_added = _num_in(checkpoint.keys, added)
    num_lost += len(added) - num_added
    num_strange = len(checkpoint.keys) - num_kept - num_added
    wrong = ((num_lost, "lacks"), (num_strange, "has"))
    told = [f"it {verb} {count} files" for count, verb in wrong if count]
    return f"unlike {source}, {' and '.join(told)}" if told else None


def _is_in(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(keys, value_set=others)


def _num_in(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> int:
    return pc.sum(_is_in(keys, others), min_count=0).as_py() or 0
