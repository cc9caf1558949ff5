"""What the commits of a log say of the table, kept in columns while the log is read once.

A checkpoint and compacted commits stand for ranges of commits. So they can be held against the
commits without reading any of these again.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import file_keys
from optimist.core.log.integrity import metadata_pairs
from optimist.core.protocol.actions import Action, Metadata, Protocol, SetTransaction

__all__ = [
    "CommittedActions",
    "StateFacts",
    "facts_differ",
    "keys_of",
    "last_of_each",
    "state_facts",
]

_PIECES = 1024
_PROGRESS = "progress"
_KEY = pa.large_string()  # the keys of all files may be longer than a column of strings can be
_ACTIONS = pa.schema([("isAdd", pa.bool_()), ("key", _KEY)])

StateFacts = dict[tuple[str, str], object]
"""What actions say of a table's state, by the kind of action and the application's id."""


@dataclass(slots=True)
class CommittedActions:
    """The actions of commits, noted in the order of their versions."""

    _versions: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _pieces: list[pa.RecordBatch] = field(default_factory=list)
    _chunks: list[pa.RecordBatch] = field(default_factory=list)
    _states: dict[int, StateFacts] = field(default_factory=dict)
    _num_facts: int = 0

    @property
    def num_actions(self) -> int:
        """The number of actions of all commits."""
        return self._num_files + self._num_facts

    def note(self, version: int, files: pa.RecordBatch | None, actions: Iterable[Action]) -> None:
        """Note a commit.

        Args:
            version: Its version, greater than those before it.
            files: Its adds and removes: `isAdd`, `path` and `deletionVector`.
            actions: Its other actions.
        """
        facts = state_facts(actions)
        if facts:
            self._states[version] = facts
            self._num_facts += len(facts)
        if files is not None:
            columns = [files.column("isAdd"), keys_of(files)]
            self._pieces.append(pa.RecordBatch.from_arrays(columns, schema=_ACTIONS))
            self._versions.append(version)
            self._ends.append(self._num_files + files.num_rows)
            if len(self._pieces) == _PIECES:
                self._join()

    def files_between(self, first: int, last: int) -> pa.Table:
        """Return the adds and removes of a range of versions: the columns `isAdd` and `key`."""
        self._join()
        start, stop = self._rows_before(first), self._rows_before(last + 1)
        return pa.Table.from_batches(self._chunks, _ACTIONS).slice(start, stop - start)

    def facts_between(self, first: int, last: int) -> StateFacts:
        """Return what a range of versions says of the table's state; the last word counts."""
        found: StateFacts = {}
        for version in self._states_between(first, last):
            found |= self._states[version]
        return found

    def num_actions_between(self, first: int, last: int) -> int:
        """Return the number of actions of a range of versions."""
        num_facts = sum(len(self._states[each]) for each in self._states_between(first, last))
        return num_facts + self._rows_before(last + 1) - self._rows_before(first)

    @property
    def _num_files(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _states_between(self, first: int, last: int) -> list[int]:
        if last - first < len(self._states):
            return [version for version in range(first, last + 1) if version in self._states]
        return [version for version in self._states if first <= version <= last]

    def _rows_before(self, version: int) -> int:
        number = bisect.bisect_left(self._versions, version)
        return self._ends[number - 1] if number else 0

    def _join(self) -> None:
        """Join the small batches, each of which has a price of its own."""
        if self._pieces:
            joined = pa.Table.from_batches(self._pieces, _ACTIONS).combine_chunks()
            self._chunks += joined.to_batches()
            self._pieces = []


def keys_of(files: pa.RecordBatch) -> pa.Array:
    """Return the key of each file, as `files_between` has it."""
    return file_keys(files).cast(_KEY)


def last_of_each(actions: pa.Table) -> pa.Table:
    """Return the last action of each file."""
    numbered = actions.append_column("row", pa.array(range(actions.num_rows), pa.int64()))
    last = numbered.group_by("key").aggregate([("row", "max")]).column("row_max")
    if len(last) == actions.num_rows:
        return actions
    return actions.take(last.take(pc.sort_indices(last)))


def state_facts(actions: Iterable[Action]) -> StateFacts:
    """Return what actions say of protocol, metadata and applications."""
    found: StateFacts = {}
    for action in actions:
        if isinstance(action, Protocol):
            features = map(frozenset, (action.reader_features or (), action.writer_features or ()))
            versions = (action.min_reader_version, action.min_writer_version)
            found["protocol", ""] = (*versions, *features)
        elif isinstance(action, Metadata):
            found["metadata", ""] = action
        elif isinstance(action, SetTransaction):
            found[_PROGRESS, action.app_id] = action.version
    return found


def facts_differ(some: StateFacts, others: StateFacts) -> bool:
    """Return whether two accounts of one state contradict each other.

    Writers may leave out the progress of applications that has expired, and spell a schema in their
    own way.
    """
    return any(
        _contradict(some.get(key), others.get(key))
        for key in some.keys() | others.keys()
        if key[0] != _PROGRESS or (key in some and key in others)
    )


def _contradict(one: object, other: object) -> bool:
    if isinstance(one, Metadata) and isinstance(other, Metadata):
        return any(told != noted for told, noted in metadata_pairs(one, other).values())
    return one != other
