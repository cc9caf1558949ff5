"""The steps by which DELETE and UPDATE change rows, with Spark or without it (spec 10.15).

1. The files that may hold matching rows are searched.
2. If the table has deletion vectors, and the search has found positions, the rows are marked in
   vectors, and their new rows are written.
3. Otherwise whole files are removed, and their remaining and new rows are written.

A `RowTarget` decides what is written, for its command, and how rows are found and written, for its
plane. MERGE finds its rows by a join of its own, and shares the second half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa

from optimist.core.commands.marked_files import ChosenRows, MarkedFile, MarkedFiles
from optimist.core.commands.removed_files import RemovedFiles
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.protocol.gates import supports
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["RowCommand", "RowTarget", "marked_or_removed", "marks_rows", "rewrite_rows"]


RowCommand: TypeAlias = Literal["DELETE", "UPDATE", "MERGE"]


class RowTarget(Protocol):
    """The rows that a DELETE or UPDATE changes, found and written with Spark or without it."""

    command: ClassVar[RowCommand]
    """The command that changes them."""

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        ...

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:
        """Return the files that hold matching rows.

        Args:
            candidates: Rows of `Snapshot.files`.
            with_rows: Whether to return the positions of matching rows, if rows are read.
        """
        ...

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write the new rows that replace the matching ones, or whole files.

        Args:
            touched: The result of the search.
            chosen: The rows to mark in vectors; None if whole files are removed.
        """
        ...


def rewrite_rows(
    rows: RowTarget, candidates: pa.Table, pending: UncommittedFiles, watch: Stopwatch
) -> Rewrite:
    """Find the matching rows, and mark them in vectors or remove their files.

    After writing, it records in the transaction that the commit needs these rows.

    Args:
        rows: Finds and writes the rows.
        candidates: The result of `filter_files` for the predicate.
        pending: Keeps track of the written files.
        watch: Measures the time for search and writing.

    Raises:
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    txn = rows.txn
    with_rows = marks_rows(txn, rows.command)
    touched = rows.search(candidates, with_rows=with_rows)
    watch.lap("scanTimeMs")
    chosen = touched.choose_rows(txn.table) if with_rows else None
    written = rows.write(touched, chosen)
    removed, marked = marked_or_removed(txn, touched, chosen, pending)
    txn.need_only(touched.files, touched.rows)
    watch.lap("rewriteTimeMs")
    return Rewrite(removed, written, touched.num_matching, marked)


def marks_rows(txn: OptimisticTransaction, command: RowCommand) -> bool:
    """Tell whether a command marks rows in deletion vectors, by the table and the options.

    Otherwise, and if a whole file matches, files are removed and written again (spec 10.10).
    """
    snapshot, options = txn.snapshot, txn.table.options
    is_wanted = {
        "DELETE": options.delete_by_vectors,
        "UPDATE": options.update_by_vectors,
        "MERGE": options.merge_by_vectors,
    }
    has_vectors = supports(snapshot.protocol, "deletionVectors")
    return is_wanted[command] and has_vectors and snapshot.properties.enable_deletion_vectors


def marked_or_removed(
    txn: OptimisticTransaction,
    touched: TouchedFiles,
    chosen: Sequence[ChosenRows] | None,
    pending: UncommittedFiles,
) -> tuple[RemovedFiles, tuple[MarkedFile, ...]]:
    """Give vectors to the touched files with chosen rows, or remove the whole files.

    Raises:
        StorageError: A file of vectors can't be written.
    """
    if chosen is None:
        return RemovedFiles(touched.files), ()
    found = MarkedFiles.write(txn.table, chosen, pending)
    return RemovedFiles.of(found.emptied), found.marked
