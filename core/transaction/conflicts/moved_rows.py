"""What became of rows that we need, after a winner that only rearranged rows (spec 2.12).

A compaction never moves a row to another partition, so its files are looked at one partition at a
time. If our commit deletes all rows of its old files there, it deletes all rows of its new files,
and no row has to be found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.data.statistics.stats_text import num_live_rows_in, num_rows
from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.transaction.conflicts.ours_and_theirs import MovedRows, Ours, Theirs
from optimist.core.transaction.conflicts.row_search import FoundRows, RowSearch, RowsToFind

__all__ = ["moved_rows"]

ReadVectors: TypeAlias = Callable[[Sequence[DeletionVectorDescriptor]], Sequence[BitMap64]]


def moved_rows(
    ours: Ours, theirs: Theirs, search: RowSearch, read_vectors: ReadVectors
) -> MovedRows:
    """Find where the rows stand that we need and the winner moved.

    Args:
        ours: Our transaction.
        theirs: The winner.
        search: Finds rows in the new files.
        read_vectors: Reads the rows of vectors.
    """
    # A compaction of files that another one has just compacted would do the same work again.
    if not theirs.only_rearranges or not any(item.data_change for item in _files_of(ours)):
        return MovedRows()
    found = [
        _Move(ours, part, search, read_vectors).followed() for part in _split_by_partition(theirs)
    ]
    return MovedRows(
        left=frozenset[str]().union(*(item.left for item in found)),
        replaced=tuple(add for item in found for add in item.replaced),
        read=frozenset[str]().union(*(item.read for item in found)),
        rows={path: rows for item in found for path, rows in item.rows.items()},
        deleted={path: rows for item in found for path, rows in item.deleted.items()},
        reason=next((item.reason for item in found if item.reason is not None), None),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The files of one partition that a rearrangement removed, and those with their rows."""

    removed: Mapping[str, RemoveFile]
    adds: tuple[AddFile, ...]

    @property
    def is_even(self) -> bool:
        num_before = num_live_rows_in(tuple(self.removed.values()))
        return num_before is not None and num_before == num_live_rows_in(self.adds)

    @property
    def new_paths(self) -> frozenset[str]:
        return frozenset(canonical_path(item.path) for item in self.adds)


def _split_by_partition(theirs: Theirs) -> Iterator[_Part]:
    removed = {canonical_path(item.path): item for item in theirs.removes}
    added = {canonical_path(item.path): item for item in theirs.adds}
    old: dict[object, dict[str, RemoveFile]] = defaultdict(dict)
    new: dict[object, list[AddFile]] = defaultdict(list)
    for path, remove in removed.items():
        if path not in added:  # else only its vector was replaced
            old[_partition_of(remove)][path] = remove
    for path, add in added.items():
        if path not in removed:
            new[_partition_of(add)].append(add)
    for partition, files in old.items():
        yield _Part(files, tuple(new[partition]))


def _partition_of(file: AddFile | RemoveFile) -> object:
    return frozenset((file.partition_values or {}).items())


@dataclass(frozen=True, slots=True)
class _Move:
    """What a rearrangement of one partition means to us."""

    ours: Ours
    part: _Part
    search: RowSearch
    read_vectors: ReadVectors

    def followed(self) -> MovedRows:
        """Find where rows that we need stand now, or say why that can't be told."""
        ours, part = self.ours, self.part
        removes = {canonical_path(item.path): item for item in ours.of_type(RemoveFile)}
        removes = {path: item for path, item in removes.items() if path in part.removed}
        paths = pa.array(list(part.removed), pa.string())
        needed = ours.reads.paths_among(paths, only_needed=True)
        touched = frozenset((*needed, *removes))
        if not touched:
            return MovedRows()
        if not part.is_even:
            return MovedRows(reason="its new files have more or fewer rows than its old ones")
        if any(not _have_one_vector(item, part.removed[path]) for path, item in removes.items()):
            return MovedRows()
        marked = {canonical_path(item.path): item for item in ours.of_type(AddFile)}
        if removes.keys() == part.removed.keys() and not marked.keys() & removes.keys():
            return MovedRows(left=touched, replaced=part.adds, read=part.new_paths)
        single = ours.reads.single_rows_of(needed).keys() & marked.keys()
        emptied = removes.keys() - marked.keys()
        # Rows that we need and leave where they are: nothing is asked of them but to stay.
        read = part.new_paths if needed - single - emptied else frozenset[str]()
        if not removes:
            return MovedRows(left=touched, read=read)
        if emptied and not TableMetadata.of(ours.metadata).properties.enable_deletion_vectors:
            return MovedRows(reason="its new files hold other rows, too, which would have to go")
        return self._trace_rows(touched, read, removes, marked)

    def _trace_rows(
        self,
        touched: frozenset[str],
        read: frozenset[str],
        removes: Mapping[str, RemoveFile],
        marked: Mapping[str, AddFile],
    ) -> MovedRows:
        """Find the rows that we delete, one by one."""
        wanted, deleted = [], []
        for path, remove in removes.items():
            total = num_rows(remove.stats)
            if total is None:
                return MovedRows(reason="its old files do not say how many rows they had")
            before = self._read_vector(remove)
            after = self._read_vector(marked[path]) if path in marked else _all_rows(total)
            deleted.append(after - before)
            needed = self.ours.reads.needed_rows.get(path, BitMap64()) - before
            wanted.append(RowsToFind(_as_file(remove), before, deleted[-1] | needed))
        found = self.search.find(wanted, self.part.adds)
        if isinstance(found, str):
            return MovedRows(reason=found)
        gone = list(map(_only_chosen, found, wanted, deleted))
        return MovedRows(touched, (), read, self._by_path(found), self._by_path(gone))

    def _read_vector(self, file: AddFile | RemoveFile) -> BitMap64:
        if file.deletion_vector is None:
            return BitMap64()
        (rows,) = self.read_vectors([file.deletion_vector])
        return rows

    def _by_path(self, found: Sequence[FoundRows]) -> Mapping[str, BitMap64]:
        rows: dict[str, BitMap64] = {}
        for number, add in enumerate(self.part.adds):
            here = BitMap64()
            for item in found:
                here.update(item.positions[item.files == number].tolist())
            if here:
                rows[canonical_path(add.path)] = here
        return rows


def _only_chosen(found: FoundRows, wanted: RowsToFind, chosen: BitMap64) -> FoundRows:
    """Keep the found rows that stood at chosen positions."""
    kept = [position in chosen for position in wanted.rows]
    return FoundRows(found.files[kept], found.positions[kept])


def _files_of(ours: Ours) -> tuple[AddFile | RemoveFile, ...]:
    return (*ours.of_type(AddFile), *ours.of_type(RemoveFile))


def _have_one_vector(one: RemoveFile, other: RemoveFile) -> bool:
    ids = {item.deletion_vector and item.deletion_vector.unique_id for item in (one, other)}
    return len(ids) == 1


def _all_rows(count: int) -> BitMap64:
    rows = BitMap64()
    rows.add_range(0, count)
    return rows


def _as_file(remove: RemoveFile) -> AddFile:
    """Return the file as it was before it was removed."""
    return AddFile(
        path=remove.path,
        partition_values=remove.partition_values or {},
        size=remove.size or 0,
        modification_time=0,
        data_change=False,
        stats=remove.stats,
        deletion_vector=remove.deletion_vector,
        base_row_id=remove.base_row_id,
        default_row_commit_version=remove.default_row_commit_version,
    )
