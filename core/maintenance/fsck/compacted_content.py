"""Whether compacted commits say the same of the table's files as the commits themselves."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.commit_lines import CommitLines
from optimist.core.log.file_table import file_actions_batch, file_keys, last_per_key

__all__ = ["contradiction"]


def contradiction(compacted: CommitLines, commits: Iterable[CommitLines]) -> str | None:
    """Describe how compacted commits contradict the commits, or return None.

    A file that came and went within the commits may be left out: it is not in the table either way.

    Args:
        compacted: The content of the compacted file.
        commits: The content of each commit that it stands for, in order.
    """
    bodies = [body for lines in commits for body in lines.file_actions]
    actions = file_actions_batch(bodies)
    last, told = last_per_key(actions), file_actions_batch(compacted.file_actions)
    added, told_added = _keys(last, is_add=True), _keys(told, is_add=True)
    removed, told_removed = _keys(last, is_add=False), _keys(told, is_add=False)
    came = _keys(actions, is_add=True)
    wrong = (
        (_without(added, told_added), "it does not add"),
        (_without(told_added, added), "it adds, and the commits do not,"),
        (_without(_without(removed, told_removed), came), "it does not remove"),
        (_without(told_removed, removed), "it removes, and the commits do not,"),
    )
    found = [f"{words} {len(keys)} files" for keys, words in wrong if len(keys)]
    return "; ".join(found) or None


def _keys(actions: pa.RecordBatch, *, is_add: bool) -> pa.Array:
    is_wanted = pc.equal(actions.column("isAdd"), is_add)
    return file_keys(actions.filter(is_wanted))


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))
