"""Whether compacted commits say the same of the table as the commits themselves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.commit_lines import CommitLines
from optimist.core.log.file_table import file_actions_batch
from optimist.core.maintenance.fsck.committed_actions import (
    CommittedActions,
    facts_differ,
    keys_of,
    last_of_each,
    state_facts,
)

__all__ = ["contradiction"]


def contradiction(
    compacted: CommitLines, commits: CommittedActions, first: int, last: int
) -> str | None:
    """Describe how compacted commits contradict the commits, or return None.

    A file that came and went within the commits may be left out: it is not in the table either way.

    Args:
        compacted: The content of the compacted file.
        commits: The commits.
        first: The first version for which the file stands.
        last: The last one.
    """
    if facts_differ(state_facts(compacted.actions), commits.facts_between(first, last)):
        return "protocol, metadata or transactions are not those of the commits"
    actions = commits.files_between(first, last)
    told = file_actions_batch(compacted.file_actions)
    now = last_of_each(actions)
    added, removed = _keys(now, is_add=True), _keys(now, is_add=False)
    told_keys, is_told_add = keys_of(told), told.column("isAdd")
    told_added = told_keys.filter(is_told_add)
    told_removed = told_keys.filter(pc.invert(is_told_add))
    came = _keys(actions, is_add=True)
    wrong = (
        (_without(added, told_added), "it does not add"),
        (_without(told_added, added), "it adds, and the commits do not,"),
        (_without(_without(removed, told_removed), came), "it does not remove"),
        (_without(told_removed, removed), "it removes, and the commits do not,"),
    )
    found = [f"{words} {len(keys)} files" for keys, words in wrong if len(keys)]
    return "; ".join(found) or None


def _keys(actions: pa.Table, *, is_add: bool) -> pa.ChunkedArray:
    return actions.column("key").filter(pc.equal(actions.column("isAdd"), is_add))


def _without(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))
