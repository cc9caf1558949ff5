"""The one way in which DELETE and UPDATE change rows, with Spark or without it (spec 10.15).

1. The files that may hold matching rows are searched.
2. Where the table has deletion vectors, and the rows were looked for, they are marked in vectors,
   and what takes their place is written.
3. Elsewhere the whole files are removed, and what takes their place is written.

The command decides what is written, and the plane how rows are found and written; a `RowTarget`
does both. MERGE finds its rows by a join of its own, and shares the second half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa

from optimist.core.commands.marked_files import ChosenRows, MarkedFiles
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
    """The rows that one DELETE or UPDATE changes, as a plane finds and writes them."""

    command: ClassVar[RowCommand]
    """What is done to them."""

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        ...

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:
        """Those of some files that hold matching rows.

        Args:
            candidates: Rows of `Snapshot.files`.
            with_rows: Tell which rows match, where rows are read.
        """
        ...

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write what takes the place of rows.

        Args:
            touched: What the search found.
            chosen: The rows that are going to be marked in vectors; None where whole files go.
        """
        ...


def rewrite_rows(
    rows: RowTarget, candidates: pa.Table, pending: UncommittedFiles, watch: Stopwatch
) -> Rewrite:
    """Find the matching rows, and mark them in vectors or remove their files.

    The transaction records that it needs these rows, once they are written.

    Args:
        rows: What finds and writes them.
        candidates: What `filter_files` gave for the predicate.
        pending: Looks after what is written.
        watch: Told how long the search and the writing took.

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
    files = marked_or_removed(txn, touched, chosen, pending)
    txn.need_only(touched.files, touched.rows)
    watch.lap("rewriteTimeMs")
    return Rewrite(files.emptied, written, touched.num_matching, files.marked)


def marks_rows(txn: OptimisticTransaction, command: RowCommand) -> bool:
    """Whether a command marks rows in deletion vectors: the table and the options allow it.

    Elsewhere, and where whole files match, files are removed and written again (spec 10.10).
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
) -> MarkedFiles:
    """What becomes of the touched files: those of chosen rows get vectors, others are removed.

    Raises:
        StorageError: A file of vectors can't be written.
    """
    if chosen is None:
        return MarkedFiles(emptied=touched.adds)
    return MarkedFiles.write(txn.table, chosen, pending)
