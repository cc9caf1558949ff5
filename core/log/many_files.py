"""`ManyFiles`: the file actions of a commit that names very many files, as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_lines import add_lines, distinct_partitions, remove_lines
from optimist.core.log.file_table import ACTIONS_SCHEMA, add_files, canonical_paths
from optimist.core.log.segment import LogSegment
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import Action, AddCDCFile, AddFile, RemoveFile

__all__ = ["FilesOrigin", "ManyFiles", "split_at_files"]


@dataclass(frozen=True, slots=True, eq=False)
class FilesOrigin:
    """The version from which a commit has taken all of its files, in the order of that version.

    Attributes:
        store: The store of its log.
        segment: The files of the log that make it up.
    """

    store: LogStore
    segment: LogSegment


@dataclass(frozen=True, eq=False)
class ManyFiles:
    """All adds and removes of one commit, or all of its removes.

    Where the commit adds files by actions, these columns stand before them in its file.

    Attributes:
        added: The files that it adds, columns of `FILES_SCHEMA`. Their `dataChange` is written.
        removed: The files that it removes, as added, columns of `FILES_SCHEMA`. Each of them
            changes data, whatever their `dataChange` is.
        removed_at_ms: The time of their removal, in epoch milliseconds.
        origin: Where the added files were taken from, statistics included, if they were.
        are_all: Whether these are all files of the commit. If not, they are all that it removes.
    """

    added: pa.Table
    removed: pa.Table
    removed_at_ms: int
    origin: FilesOrigin | None = None
    are_all: bool = True

    def __len__(self) -> int:
        return int(self.added.num_rows + self.removed.num_rows)

    @cached_property
    def has_distinct_paths(self) -> bool:
        """Whether no two added files, and no two removed ones, have the same path."""
        sides = (canonical_paths(side["path"]) for side in (self.added, self.removed))
        return all(pc.count_distinct(paths).as_py() == len(paths) for paths in sides)

    def partitions(self) -> list[dict[str, str | None]]:
        """Return the values of the files' partition columns, each combination once."""
        return distinct_partitions(pa.concat_tables([self.added, self.removed]))

    def lines(self) -> Iterator[pa.Buffer]:
        """Yield the lines of the commit, adds first, many at a time."""
        yield from add_lines(self.added)
        yield from remove_lines(self.removed, self.removed_at_ms)

    def among(self, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Return all actions of the commit, the removed files as values, in the file's order.

        Args:
            actions: Its other actions.

        Raises:
            ValueError: These are all files of the commit, which is never rebased then.
        """
        if self.are_all:
            raise ValueError("Only removed files become actions again.")
        first, rest = split_at_files(actions)
        return (*first, *self._removes(), *rest)

    def _removes(self) -> Iterator[RemoveFile]:
        return (add.remove(self.removed_at_ms) for add in add_files(self.removed))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield as few batches of `ACTIONS_SCHEMA` as possible, with `dataChange` false."""
        for files, is_add in ((self.added, True), (self.removed, False)):
            for batch in files.combine_chunks().to_batches():
                yield self._as_actions(batch, is_add=is_add)

    def _as_actions(self, files: pa.RecordBatch, *, is_add: bool) -> pa.RecordBatch:
        length = files.num_rows
        columns = {name: files.column(name) for name in files.schema.names}
        columns["isAdd"] = pa.repeat(pa.scalar(is_add), length)
        columns["dataChange"] = pa.repeat(pa.scalar(False), length)
        if not is_add:
            columns["deletionTimestamp"] = pa.repeat(pa.scalar(self.removed_at_ms), length)
            columns["extendedFileMetadata"] = pa.repeat(pa.scalar(True), length)
        arrays = [columns.get(field.name, pa.nulls(length, field.type)) for field in ACTIONS_SCHEMA]
        return pa.RecordBatch.from_arrays(arrays, schema=ACTIONS_SCHEMA)


def split_at_files(actions: Sequence[Action]) -> tuple[Sequence[Action], Sequence[Action]]:
    """Return the actions before the first added file, where files as columns stand, and the rest.

    A commit that has columns removes files by these only.
    """
    kinds = AddFile | AddCDCFile
    position = next((i for i, each in enumerate(actions) if isinstance(each, kinds)), len(actions))
    return actions[:position], actions[position:]
