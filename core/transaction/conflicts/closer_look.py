"""A closer look at a winner, where its actions alone do not decide (spec 2.8, 2.12).

The checks are pure functions of what two commits wrote and read. They may have to know more, which
only files tell: which rows a vector deletes, and whether a row of a new file matches our predicate.
This module reads it as far as the options allow, and puts it into `Theirs`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyroaring import BitMap64

from optimist.core.data.parquet.row_counts import rows_by_footer
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.storage.stored_files import try_remove_file
from optimist.core.data.storage.unreadable_files import UNREADABLE
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vectors.deletion_vectors import deletion_vector_path, read_deletion_vectors
from optimist.core.data.vectors.vector_writer import belongs_in_file, write_deletion_vectors
from optimist.core.errors import OptimistError
from optimist.core.log.file_table import canonical_path, files_table
from optimist.core.predicates import SplitPredicate
from optimist.core.predicates.normal_form import conjunction
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    RemoveFile,
)
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.local_scan import count_rows
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.conflicts.checks import suspicious_adds
from optimist.core.transaction.conflicts.moved_rows import moved_rows
from optimist.core.transaction.conflicts.ours_and_theirs import (
    MovedRows,
    Ours,
    SharedFile,
    Theirs,
)
from optimist.core.transaction.conflicts.row_search import RowSearch

__all__ = ["CloserLook"]

_LOG = logging.getLogger(__name__)

Vectors = Mapping[str, BitMap64]
"""The rows of vectors by their `unique_id`; of no vector, by the empty text."""


class CloserLook:
    """Reads what decides between one transaction and its winners.

    Args:
        table: The table.
        snapshot: The version that the transaction read.
        written: Takes the files of vectors that are written here, before they are.
    """

    def __init__(self, table: TableRef, snapshot: Snapshot, written: CommitFiles) -> None:
        self._table = table
        self._snapshot = snapshot
        self._written = written

    def at(self, ours: Ours, theirs: Theirs) -> Theirs:
        """Return the winner with what was found out about it.

        If a file can't be read, or any other error comes up, nothing is found out, and the checks
        judge by whole files. That is safe: a closer look only avoids false conflicts.
        """
        try:
            return self._look_at(ours, theirs)
        except Exception:  # noqa: BLE001 - files of any writer are read here, and no commit needs it
            _LOG.warning(
                "Version %d could not be examined, so its conflicts are judged by whole files.",
                theirs.version,
                exc_info=True,
            )
            return theirs

    def _look_at(self, ours: Ours, theirs: Theirs) -> Theirs:
        if self._table.options.conflict_granularity != "row" or ours.reads.whole_table:
            return theirs
        replaced = _replaced_vectors(theirs)
        theirs = replace(theirs, shared=self._find_shared_files(ours, replaced))
        theirs = replace(theirs, moved=self._find_moved_rows(ours, theirs))
        hits, _ = suspicious_adds(ours, theirs)
        if not hits:
            return theirs
        kept = self._without_new_rows(hits, replaced)
        theirs = replace(theirs, harmless=kept)
        hits, _ = suspicious_adds(ours, theirs)
        if not hits or self._may_match(hits, ours.reads.predicates):
            return theirs
        return replace(theirs, harmless=kept | {canonical_path(item.path) for item in hits})

    def settled(self, before: Ours, after: Ours, winners: Sequence[Theirs]) -> Ours:
        """Write the large vectors of our commit to files, as they are after the rebase.

        Files of vectors that we made and that nothing names any more are removed. One file holds
        vectors of several data files, so it stays as long as any action of ours names it, whether
        or not we have read the data file.

        Args:
            before: Our commit before the rebase.
            after: Our commit after it.
            winners: The winners. Files that they name belong to versions, and stay.

        Raises:
            StorageError: A file of vectors can't be written; nothing was committed.
        """
        if before.actions == after.actions:
            return after
        vectors = [add.deletion_vector for add in after.of_type(AddFile) if add.deletion_vector]
        rows = self._rows_of([vector for vector in vectors if belongs_in_file(vector)])
        large = {name: vector for name, vector in rows.items() if vector}
        found = write_deletion_vectors(
            list(large.values()), self._table, self._written.register_path
        )
        written = dict(zip(large, found, strict=True))
        after = replace(
            after, actions=tuple(_with_stored_vector(item, written) for item in after.actions)
        )
        made = self._files_of_vectors(_with_our_vectors(before))
        theirs = (item for winner in winners for item in winner.files)
        named = (*after.actions, *before.of_type(RemoveFile), *theirs)
        self._remove_files(made - self._files_of_vectors(named))
        return after

    # Vectors

    def _find_shared_files(
        self, ours: Ours, replaced: Mapping[str, tuple[RemoveFile, AddFile]]
    ) -> Mapping[str, SharedFile]:
        """Find the files that we need single rows of and whose vectors the winner replaced."""
        needed = ours.reads.single_rows_of(replaced.keys())
        pairs = {path: replaced[path] for path in needed}
        own = {canonical_path(item.path): item for item in ours.of_type(AddFile)}
        removed = {canonical_path(item.path): item for item in ours.of_type(RemoveFile)}
        described = [item.deletion_vector for pair in pairs.values() for item in pair]
        described += [own[path].deletion_vector for path in pairs if path in own]
        rows = self._rows_of_if_readable(described)
        if rows is None:
            return {}
        found = {}
        for path, (remove, after) in pairs.items():
            before, deleted = (
                rows[_vector_id(remove.deletion_vector)],
                rows[_vector_id(after.deletion_vector)],
            )
            # Rows that came back are new rows, which nobody has looked at.
            if not before <= deleted or not _fits_winner(removed.get(path), own.get(path), remove):
                continue
            marked = rows[_vector_id(own[path].deletion_vector)] if path in own else BitMap64()
            lost = (needed[path] | (marked - before)) & deleted
            united = marked | deleted
            is_emptied = path in own and self._are_all_rows(own[path], united)
            found[path] = SharedFile(after, lost, len(deleted), united, is_emptied)
        return found

    def _are_all_rows(self, file: AddFile, rows: BitMap64) -> bool:
        """Return whether these are all rows of a file, which its footer has to confirm.

        A vector may name rows that the file does not have, and statistics may count too few.
        """
        counted = num_rows(file.stats)
        if counted is None or rows.range_cardinality(0, counted) != counted:
            return False
        try:
            path = self._table.data_paths.full_path(file.path)
            stored = rows_by_footer(path, self._table.data_access())
        except (OptimistError, *UNREADABLE):
            return False  # the file stays, without a row
        return rows.range_cardinality(0, stored) == stored

    def _find_moved_rows(self, ours: Ours, theirs: Theirs) -> MovedRows:
        """Find where rows that we need stand now, if the winner only rearranged them."""
        search = RowSearch(self._table, self._snapshot)
        try:
            return moved_rows(ours, theirs, search, self._read_vectors)
        except OptimistError as error:
            return MovedRows(reason=f"a deletion vector can't be read ({error.kind})")

    def _without_new_rows(
        self, adds: Sequence[AddFile], replaced: Mapping[str, tuple[RemoveFile, AddFile]]
    ) -> frozenset[str]:
        """Return the paths of the files that were there before, with the same rows or more."""
        paths = {canonical_path(item.path) for item in adds}
        pairs = {path: pair for path, pair in replaced.items() if path in paths}
        rows = self._rows_of_if_readable(
            [item.deletion_vector for pair in pairs.values() for item in pair]
        )
        if rows is None:
            return frozenset()
        return frozenset(
            path
            for path, (remove, after) in pairs.items()
            if rows[_vector_id(remove.deletion_vector)] <= rows[_vector_id(after.deletion_vector)]
        )

    def _rows_of_if_readable(
        self, vectors: Sequence[DeletionVectorDescriptor | None]
    ) -> Vectors | None:
        try:
            return self._rows_of(vectors)
        except OptimistError:
            return None

    def _rows_of(self, vectors: Sequence[DeletionVectorDescriptor | None]) -> Vectors:
        distinct = {_vector_id(vector): vector for vector in vectors if vector is not None}
        read = self._read_vectors(list(distinct.values()))
        return {"": BitMap64(), **dict(zip(distinct, read, strict=True))}

    def _read_vectors(self, vectors: Sequence[DeletionVectorDescriptor]) -> Sequence[BitMap64]:
        paths, access = self._table.data_paths, self._table.data_access()
        return read_deletion_vectors(vectors, paths, access)

    # Rows of new files

    def _may_match(self, adds: Sequence[AddFile], predicates: Sequence[SplitPredicate]) -> bool:
        """Return whether a row of the files may match: read them, or say yes if they are many."""
        options = self._table.options
        num_bytes = sum(item.size for item in adds)
        if len(adds) > options.conflict_read_files or num_bytes > options.conflict_read_bytes:
            return True
        view = self._snapshot.with_other_files(self._snapshot.metadata, files_table(adds))
        wanted = [conjunction((*split.partition, *split.data)) for split in predicates]
        # What rand() < 0.5 is true for now does not tell what it was true for when we read.
        if not all(predicate.is_deterministic for predicate in wanted):
            return True
        access = self._table.data_access()
        try:
            return any(count_rows(view, predicate, access=access) for predicate in wanted)
        except OptimistError:  # only Spark can tell, or a file can't be read
            return True

    # Files of vectors

    def _files_of_vectors(self, actions: Iterable[Action]) -> frozenset[str]:
        paths = (
            deletion_vector_path(item.deletion_vector, self._table.data_paths)
            for item in actions
            if isinstance(item, AddFile | RemoveFile) and item.deletion_vector
        )
        return frozenset(path for path in paths if path is not None)

    def _remove_files(self, paths: frozenset[str]) -> None:
        for path in paths:
            try_remove_file(path, self._table.data_access())


def _with_our_vectors(ours: Ours) -> Iterator[AddFile]:
    """Return the files that we put a vector on, without those that only a step of ours has seen."""
    needed = ours.reads.needed_rows
    return (item for item in ours.of_type(AddFile) if canonical_path(item.path) in needed)


def _replaced_vectors(theirs: Theirs) -> Mapping[str, tuple[RemoveFile, AddFile]]:
    """Return the files that a commit removes and adds again, by canonical path."""
    adds = {canonical_path(item.path): item for item in theirs.adds}
    removes = {canonical_path(item.path): item for item in theirs.removes}
    times = Counter(canonical_path(item.path) for item in theirs.files)
    return {
        path: (removes[path], add)
        for path, add in adds.items()
        if path in removes and times[path] == 2
    }


def _fits_winner(mine: RemoveFile | None, own: AddFile | None, theirs: RemoveFile) -> bool:
    """Return whether what we do to a file can be done to the file as the winner left it.

    It can be done if we put a vector on the same file, or have only read it. It can't be done if we
    remove the file for good, because its other rows were written again.
    """
    if mine is None:
        return own is None
    return own is not None and _vector_id(mine.deletion_vector) == _vector_id(
        theirs.deletion_vector
    )


def _with_stored_vector(action: Action, written: Mapping[str, DeletionVectorDescriptor]) -> Action:
    if not isinstance(action, AddFile) or _vector_id(action.deletion_vector) not in written:
        return action
    return replace(action, deletion_vector=written[_vector_id(action.deletion_vector)])


def _vector_id(vector: DeletionVectorDescriptor | None) -> str:
    return "" if vector is None else vector.unique_id
