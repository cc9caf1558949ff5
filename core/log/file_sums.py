"""The sums over a version's live files, and how a commit changes them (spec 5.9).

Sums are derived only from certain facts. A log may add a file that is live, or remove one that is
not. Both are legal, and change nothing, but the commit alone does not show that. So the files that
go are the rows that were live, not the removes that name them: those in memory, or those that the
transaction has read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.deleted_record_counts import DeletedRecordCounts
from optimist.core.log.file_set import FileSet
from optimist.core.log.file_sizes import FileSizeHistogram, total_bytes
from optimist.core.log.file_table import (
    canonical_path,
    canonical_paths,
    file_actions_batch,
    file_keys,
    last_per_key,
)
from optimist.core.protocol.actions import Action, AddFile, CommitInfo, RemoveFile
from optimist.core.values.exact_sums import exact_sum
from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "COUNTED",
    "NO_FILES",
    "FileChanges",
    "FileSums",
    "ReadFiles",
    "new_adds",
    "only_adds_new_files",
]

COUNTED = ["path", "size", "deletionVector"]
"""The columns of files that sums are made of."""
_UNIQUE_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[^/]*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What a transaction knows of the files that its commit names.

    Attributes:
        files: Files of the version that it began from, as they are there, with the counted columns.
        wrote_others: Whether it has written all other files that its commit adds.
    """

    files: tuple[pa.Table, ...] = ()
    wrote_others: bool = False

    def paths_among(self, paths: Sequence[str]) -> frozenset[str]:
        """Return those of the canonical paths that are paths of the files."""
        wanted = pa.array(paths, pa.string())
        found: set[str] = set()
        for files in self.files if paths else ():
            known = canonical_paths(files["path"])
            found.update(known.filter(pc.is_in(known, value_set=wanted)).to_pylist())
        return frozenset(found)

    def with_keys(self, keys: pa.Array) -> pa.RecordBatch:
        """Return the files with these keys, each once."""
        found = [file_actions_batch(()).select(COUNTED)]
        for batch in (batch for files in self.files for batch in files.to_batches()):
            hits = pc.is_in(file_keys(batch), value_set=keys)
            found.append(batch.filter(hits))
        return last_per_key(pa.concat_batches(found))


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The live files that commits bring, and the earlier live files that go.

    A file that is added again both goes, with its old action, and comes. Both tables have at least
    the counted columns of `FILES_SCHEMA`.
    """

    came: pa.Table
    went: pa.Table

    @classmethod
    def of(
        cls,
        actions: pa.RecordBatch,
        before: FileSet,
        *,
        only_new: bool = False,
        new: Sequence[AddFile] = (),
        read: ReadFiles | None = None,
    ) -> FileChanges | None:
        """Return the changes by adds and removes, or None if finding out needs a read.

        Args:
            actions: Adds and removes in order, a batch of `ACTIONS_SCHEMA`.
            before: The live files before them.
            only_new: Whether they certainly add only files that were not live (see
                `only_adds_new_files`).
            new: Adds among them of files that were certainly not live (see `new_adds`).
            read: What is known of the files before them; None for nothing.
        """
        last = last_per_key(actions.select(["isAdd", *COUNTED]))
        adds = last if only_new else last.filter(last.column("isAdd"))
        came = pa.Table.from_batches([adds.select(COUNTED)])
        if only_new:
            return cls(came, came.slice(0, 0))
        went = before.rows_in_memory(file_keys(last))
        if went is None and read is not None:
            went = _went_of_read(file_keys(last), new, read)
        return None if went is None else cls(came, went)


def _went_of_read(keys: pa.Array, new: Sequence[AddFile], read: ReadFiles) -> pa.Table | None:
    """Return the files with these keys, or None unless each was read or is new."""
    found = read.with_keys(keys)
    known = pa.concat_arrays([file_keys(found), file_keys(file_actions_batch(new))])
    if not pc.all(pc.is_in(keys, value_set=known), min_count=0).as_py():
        return None
    return pa.Table.from_batches([found])


def new_adds(actions: Sequence[Action], read: ReadFiles | None = None) -> list[AddFile]:
    """Return those adds of a commit whose files were certainly not live before it.

    A command writes the files that it adds, or has read them: their names are unique, or the file
    is read and gets another deletion vector.

    Args:
        actions: The commit.
        read: What its transaction knows of the files; None for nothing.
    """
    adds = [item for item in actions if isinstance(item, AddFile)]
    if only_adds_new_files(actions):
        return adds
    if read is None or not read.wrote_others:
        return []
    others = [canonical_path(item.path) for item in adds if not _has_unique_name(item)]
    known = read.paths_among(others)
    return [item for item in adds if _has_unique_name(item) or canonical_path(item.path) in known]


def only_adds_new_files(actions: Sequence[Action]) -> bool:
    """Return whether a commit changes no file that was live before it.

    A blind append has read no file of the table, and the name of a new file is unique.
    """
    files = [item for item in actions if isinstance(item, AddFile | RemoveFile)]
    is_blind = any(isinstance(item, CommitInfo) and item.is_blind_append for item in actions)
    return not files or (is_blind and all(map(_is_new, files)))


def _is_new(item: AddFile | RemoveFile) -> bool:
    return isinstance(item, AddFile) and item.data_change and _has_unique_name(item)


def _has_unique_name(item: AddFile) -> bool:
    return _UNIQUE_NAME.search(item.path) is not None


@dataclass(frozen=True, slots=True)
class FileSums:
    """The sums over the live files of one version, None where an earlier writer left one out."""

    size_bytes: int = 0
    num_files: int = 0
    num_deleted_records: int | None = 0
    num_deletion_vectors: int | None = 0
    file_sizes: FileSizeHistogram | None = None
    deleted_record_counts: DeletedRecordCounts | None = None

    @classmethod
    def of(cls, files: pa.Table) -> FileSums:
        """Return the sums of these live files, columns of `FILES_SCHEMA`."""
        cardinality = _cardinalities(files)
        return cls(
            size_bytes=total_bytes(files.column("size")),
            num_files=files.num_rows,
            num_deleted_records=exact_sum(cardinality),
            num_deletion_vectors=len(cardinality) - cardinality.null_count,
            file_sizes=FileSizeHistogram.of(files.column("size")),
            deleted_record_counts=DeletedRecordCounts.of(pc.fill_null(cardinality, 0)),
        )

    @property
    def are_possible(self) -> bool:
        """Whether they can be counts: sums derived from false ones may be negative or huge."""
        known = (self.num_deleted_records, self.num_deletion_vectors)
        return all(
            0 <= number <= LARGEST_LONG
            for number in (self.size_bytes, self.num_files, *known)
            if number is not None
        )

    def after(self, changes: FileChanges) -> FileSums:
        """Return the sums after commits."""
        came, went = changes.came["size"].to_pylist(), changes.went["size"].to_pylist()
        more, less = _deleted_records(changes.came), _deleted_records(changes.went)
        sizes, deleted = self.file_sizes, self.deleted_record_counts
        return FileSums(
            self.size_bytes + sum(came) - sum(went),
            self.num_files + len(came) - len(went),
            _add_if_known(
                self.num_deleted_records, sum(filter(None, more)) - sum(filter(None, less))
            ),
            _add_if_known(self.num_deletion_vectors, _count_vectors(more) - _count_vectors(less)),
            sizes and sizes.plus(came, went),
            deleted and deleted.plus((n or 0 for n in more), (n or 0 for n in less)),
        )


NO_FILES = FileSums(
    file_sizes=FileSizeHistogram.empty(), deleted_record_counts=DeletedRecordCounts((0,) * 10)
)


def _cardinalities(files: pa.Table) -> pa.Array:
    """Return the deleted records per file, null for a file without a deletion vector."""
    return pc.struct_field(files.column("deletionVector").combine_chunks(), "cardinality")


def _deleted_records(files: pa.Table) -> list[int | None]:
    """Return the deleted records of a commit's few files, None without a deletion vector."""
    if files["deletionVector"].null_count == files.num_rows:
        return [None] * files.num_rows
    return list(_cardinalities(files).to_pylist())


def _count_vectors(deleted: list[int | None]) -> int:
    return len(deleted) - deleted.count(None)


def _add_if_known(known: int | None, change: int) -> int | None:
    return None if known is None else known + change
