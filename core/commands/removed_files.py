"""The files that a command removes whole: as values if they are few, else as columns (spec 10.15).

A file that is removed whole needs no value of its own: its line of the commit, its rows and its
bytes follow from the columns of `Snapshot.files`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_lines import distinct_map_keys
from optimist.core.log.file_table import FILES_SCHEMA, add_files, files_table
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.values.exact_sums import exact_sum

__all__ = ["NOT_REMOVED", "RemovedFiles", "num_live_rows_of"]

_MANY = 1_000
"""From how many files on they are committed as columns. Fewer are quicker as values."""


@dataclass(frozen=True, slots=True, eq=False)
class RemovedFiles:
    """Files that a command removes.

    Attributes:
        files: The files, as rows of `Snapshot.files`.
    """

    files: pa.Table

    @classmethod
    def of(cls, adds: Sequence[AddFile]) -> RemovedFiles:
        """Return the files that these actions have added."""
        return cls(files_table(adds)) if adds else NOT_REMOVED

    def __len__(self) -> int:
        return int(self.files.num_rows)

    @property
    def size_bytes(self) -> int:
        """The sum of their sizes."""
        return exact_sum(self.files["size"])

    @property
    def num_vectors(self) -> int:
        """The number of them with a deletion vector, which is removed with its file (spec 8.3)."""
        return len(self) - int(self.files["deletionVector"].null_count)

    @property
    def num_live_rows(self) -> int | None:
        """The number of their rows that are not deleted, or None if one file's is unknown."""
        return num_live_rows_of(self.files)

    def actions(self, now_ms: int) -> tuple[RemoveFile, ...]:
        """Return the actions that remove them now."""
        return tuple(add.remove(now_ms) for add in add_files(self.files))

    def removes(self, now_ms: int) -> tuple[tuple[RemoveFile, ...], ManyFiles | None]:
        """Return what removes them now: actions if they are few, else columns."""
        if len(self) < _MANY or not _can_be_columns(self.files):
            return self.actions(now_ms), None
        return (), ManyFiles(self.files.slice(0, 0), self.files, now_ms, are_all=False)


NOT_REMOVED = RemovedFiles(FILES_SCHEMA.empty_table())
"""No files."""


def num_live_rows_of(files: pa.Table) -> int | None:
    """Return the number of rows of files without deleted ones, or None if one file's is unknown.

    Args:
        files: Rows of `Snapshot.files`.
    """
    counts = FileStatistics(files, StructType(())).num_records
    if counts.null_count:
        return None
    vectors = files["deletionVector"].combine_chunks()
    if vectors.null_count == len(vectors):
        return exact_sum(counts)
    deleted = pc.if_else(vectors.is_valid(), pc.struct_field(vectors, "cardinality"), 0)
    fits = pc.and_(pc.greater_equal(deleted, 0), pc.less_equal(deleted, counts))
    if deleted.null_count or not pc.all(fits, min_count=0).as_py():
        return None
    return exact_sum(counts) - exact_sum(deleted)


def _can_be_columns(files: pa.Table) -> bool:
    """Return whether the values of all fields are ones that a line of a commit may have.

    A damaged checkpoint may hold others, which are refused when they become actions.
    """
    vectors = files["deletionVector"].combine_chunks()
    vectors = vectors.filter(vectors.is_valid())
    numbers = {name: pc.struct_field(vectors, name) for name in ("sizeInBytes", "cardinality")}
    offsets = pc.struct_field(vectors, "offset")
    needed = [
        files["path"],
        files["size"],
        pc.struct_field(vectors, "storageType"),
        pc.struct_field(vectors, "pathOrInlineDv"),
        *numbers.values(),
    ]
    counts = [files["size"], *numbers.values(), offsets]
    maps = (files["partitionValues"], files["tags"])
    return (
        not any(each.null_count for each in needed)
        and all(pc.all(pc.greater_equal(each, 0), min_count=0).as_py() for each in counts)
        and all(len(set(keys)) == len(keys) for each in maps for keys in distinct_map_keys(each))
    )
