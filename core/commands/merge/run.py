"""The steps in which a MERGE changes rows, with Spark or without it (spec 10.15).

1. The log tells which files can hold rows that match. They count as read.
2. The plane searches these files: which rows change, and which clause each of them gets.
3. The plane writes updated rows with their new values, and new rows.
4. Where the table has deletion vectors, changed rows are marked in vectors. Elsewhere their files
   are removed, and step 3 also writes the other rows of these files.

A `MergeTarget` does steps 2 and 3 on each plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from optimist.core.commands.command import Changes
from optimist.core.commands.marked_files import ChosenRows
from optimist.core.commands.merge.resolved import ResolvedMerge
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.row_rewrite import marked_or_removed, marks_rows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.table_ref import TableRef
from optimist.core.predicates import Predicate
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["MergeTarget", "MergedRows", "RowsToMerge", "changes_of_merge", "merge_rows"]


@dataclass(frozen=True, slots=True)
class RowsToMerge:
    """What the search has found.

    Attributes:
        touched: The files with rows that change, and the positions of these rows.
        counts: How many rows change; copied and inserted rows are not known yet.
        needed: The rows that the outcome depends on; None for all rows of the searched files.
    """

    touched: TouchedFiles
    counts: RowCounts
    needed: TouchedFiles | None


_Found = TypeVar("_Found", bound=RowsToMerge)


class MergeTarget(Protocol[_Found]):
    """The rows of one MERGE, as a plane finds and writes them."""

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        ...

    @property
    def num_source_rows(self) -> int:
        """How many rows the source has."""
        ...

    def search(self, candidates: pa.Table) -> AbstractContextManager[_Found]:
        """Find the rows that change.

        What is stored for them is freed at the end of the context.

        Args:
            candidates: Rows of `Snapshot.files`.
        """
        ...

    def write(self, found: _Found, chosen: Sequence[ChosenRows] | None) -> tuple[WrittenFiles, int]:
        """Write what takes the place of changed rows, and new rows.

        Args:
            found: What the search found.
            chosen: The rows that are going to be marked in vectors; None where whole files go.

        Returns:
            The new files, and how many rows were inserted.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergedRows:
    """What a MERGE did.

    Attributes:
        rewrite: What became of the files.
        counts: How many rows changed.
        num_source_rows: How many rows the source has.
    """

    rewrite: Rewrite
    counts: RowCounts
    num_source_rows: int


def merge_rows(
    rows: MergeTarget[Any], wanted: Predicate | None, pending: UncommittedFiles, watch: Stopwatch
) -> MergedRows:
    """Find the rows that change, write the new ones, and remove or mark the old ones.

    Args:
        rows: Finds and writes the rows.
        wanted: True for every row of the table that can change; None for all rows.
        pending: Looks after what is written.
        watch: Told how long the search and the writing took.

    Raises:
        SchemaError: A new value does not fit its column, or breaks a rule of the table.
        UsageError: Several rows of the source change one of the table.
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    txn = rows.txn
    with rows.search(txn.filter_files(wanted)) as found:
        touched, needed = found.touched, found.needed
        if needed is not None:
            txn.need_only(needed.files, needed.rows)
        watch.lap("scanTimeMs")
        chosen = touched.choose_rows(txn.table) if marks_rows(txn, "MERGE") else None
        written, num_inserted = rows.write(found, chosen)
        removed, marked = marked_or_removed(txn, touched, chosen, pending)
        watch.lap("rewriteTimeMs")
    num_copied = written.num_rows - found.counts.all_updated - num_inserted
    return MergedRows(
        Rewrite(removed, written, None, marked),
        replace(found.counts, copied=num_copied, inserted=num_inserted),
        rows.num_source_rows,
    )


def changes_of_merge(
    done: MergedRows, merge: ResolvedMerge[Any, Any], table: TableRef, watch: Stopwatch
) -> Changes:
    """Return the commit of a MERGE (spec 8.2, 8.3).

    Args:
        done: What it did.
        merge: The MERGE.
        table: The table.
        watch: Started with the command.
    """
    rewrite, counts = done.rewrite, done.counts
    metrics = {
        "numSourceRows": done.num_source_rows,
        "numTargetRowsInserted": counts.inserted,
        "numTargetRowsUpdated": counts.all_updated,
        "numTargetRowsMatchedUpdated": counts.updated,
        "numTargetRowsNotMatchedBySourceUpdated": counts.updated_by_source,
        "numTargetRowsDeleted": counts.all_deleted,
        "numTargetRowsMatchedDeleted": counts.deleted,
        "numTargetRowsNotMatchedBySourceDeleted": counts.deleted_by_source,
        "numTargetRowsCopied": counts.copied,
        "numOutputRows": rewrite.written.num_rows,
        "numTargetFilesAdded": len(rewrite.written.adds),
        "numTargetFilesRemoved": len(rewrite.removed),
        "numTargetBytesAdded": rewrite.written.size_bytes,
        "numTargetBytesRemoved": rewrite.removed.size_bytes,
        "numTargetChangeFilesAdded": len(rewrite.written.changes),
        "numTargetDeletionVectorsAdded": len(rewrite.marked),
        "numTargetDeletionVectorsRemoved": rewrite.num_vectors_removed,
        "numTargetDeletionVectorsUpdated": rewrite.num_vectors_updated,
        "materializeSourceTimeMs": 0,
        **watch.metrics(),
    }
    return Changes(
        rewrite.actions(table.clock.now_ms()),
        merge.operation().with_metrics(metrics),
        balance=merge.balance,
        counts=counts,
    )
