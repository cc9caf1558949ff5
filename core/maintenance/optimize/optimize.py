"""OPTIMIZE and REORG: rewrite many files as few, without a change of rows (spec 10.14, 2.16).

1. In the partitions that a predicate chooses, small files and files with many deleted rows are
   grouped into bins; see `bins`. `optimize.batchSize` limits the bytes of bins in one commit. Each
   later batch takes its files from the version that is newest then. Z-order and clustering choose
   other files and arrange their rows; see `arrangements`.
2. Each bin is written as one file, in this process or by Spark. A bin that is arranged may become
   several files.
3. One commit per batch replaces the old files by the new ones. It changes no data.
4. After a conflict the same files are committed again on the newest version. Rows that were deleted
   from old files meanwhile are deleted from the new files, too. A bin that lost an old file is
   dropped; see `compacted_bin`. So a conflict costs a bin and not the run.

An OPTIMIZE never makes other writers fail: a concurrent DELETE, UPDATE or MERGE finds its rows in
the new files (spec 2.12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from optimist.core.commands.row_balance import RowBalance, ensure_balanced
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.parquet.parquet_writer import delete_files
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    MetadataChangedException,
    UsageError,
)
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.log.file_table import files_table
from optimist.core.maintenance.optimize.arrangements import Arrangement, Rearrangement
from optimist.core.maintenance.optimize.bins import bins_now
from optimist.core.maintenance.optimize.compacted_bin import CompactedBin, live_files
from optimist.core.maintenance.optimize.optimize_metrics import Optimized, commit_metrics, optimized
from optimist.core.maintenance.optimize.row_order import RowOrder
from optimist.core.protocol.actions import Action
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.runtime.retry import pause_s
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.identity_marks import are_same_but_for_marks
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.core.values.exact_sums import exact_sum

__all__ = ["BinWriter", "ensure_no_clustering", "ensure_of_partitions", "optimize"]

_LOG = logging.getLogger(__name__)


class BinWriter(Protocol):
    """The writer of bins, in this process or by Spark."""

    def __call__(
        self,
        txn: OptimisticTransaction,
        bins: Sequence[pa.Table],
        pending: UncommittedFiles,
        order: RowOrder | None,
    ) -> Sequence[CompactedBin]:
        """Write each bin, as rows of `Snapshot.files`, into files of its own.

        With an order, the rows of a bin are arranged by it and cut into files of the wanted size.
        Without an order, a bin becomes one file.
        """
        ...


def optimize(
    begin: Callable[[], OptimisticTransaction], write: BinWriter, wanted: Rearrangement
) -> Optimized:
    """Write many files of a table again as few.

    Args:
        begin: Starts a transaction on the newest version.
        write: Writes the bins.
        wanted: The files to rewrite, and how.

    Raises:
        UsageError: The table can't be arranged like this; see `Rearrangement`.
        DeltaConcurrentModificationException: Other commits won against every attempt. Earlier
            batches stay committed.
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    txn = begin()
    txn.ensure_writable()
    snapshot, options, clock = txn.snapshot, txn.table.options, txn.table.clock
    arrangement = wanted.arrangement(snapshot, options)
    started_ms = clock.now_ms()
    candidates = wanted.candidates(snapshot, arrangement.choice(options))
    bins = arrangement.bins(candidates.files, snapshot, options)
    batches = list(_split_into_batches(bins, options.optimize_batch_size))
    landed: list[CompactedBin] = []
    version = None
    for number, batch in enumerate(batches):
        if number:  # others may have committed since the files were chosen
            txn = begin()
            live = txn.snapshot.files_at(pa.concat_tables(batch)["path"])
            batch = bins_now(batch, live, keeps_single=arrangement.keeps_single)
        commit, done = _Batch(begin, write, wanted, arrangement).run(txn, batch)
        landed += done
        version = version if commit is None else commit.version
    return optimized(
        landed,
        arrangement,
        candidates,
        version=version,
        num_batches=len(batches),
        period_ms=(started_ms, clock.now_ms()),
    )


def ensure_no_clustering(text: str, snapshot: Snapshot) -> None:
    """Refuse a partition predicate for a clustered table.

    Raises:
        UsageError: The table is clustered (kind `DELTA_CLUSTERING_WITH_PARTITION_PREDICATE`).
    """
    if clustering_columns(snapshot.domain_metadata, snapshot.schema):
        raise UsageError(
            "OPTIMIZE command for Delta table with clustering doesn't support partition "
            f"predicates. Please remove the predicates: {shown(text)}. Nothing was written.",
            kind="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            predicate=text,
        )


def ensure_of_partitions(names: Iterable[str], snapshot: Snapshot) -> None:
    """Refuse a predicate that names columns other than partition columns.

    Args:
        names: The top-level columns of the predicate, in any case.
        snapshot: The table.

    Raises:
        UsageError: It names such a column (kind `DELTA_NON_PARTITION_COLUMN_REFERENCE`).
    """
    known = {name.lower() for name in snapshot.partition_columns}
    for name in sorted(names):
        if name.lower() not in known:
            raise UsageError(
                f"Predicate references non-partition column {quoted(name)}. Only the partition "
                f"columns may be referenced: [{listed(snapshot.partition_columns)}]. Nothing was "
                "written. OPTIMIZE works on whole partitions.",
                kind="DELTA_NON_PARTITION_COLUMN_REFERENCE",
                column=name,
            )


@dataclass(frozen=True, slots=True)
class _Batch:
    """The bins of one commit."""

    begin: Callable[[], OptimisticTransaction]
    write: BinWriter
    wanted: Rearrangement
    arrangement: Arrangement

    def run(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table]
    ) -> tuple[CommitResult | None, Sequence[CompactedBin]]:
        """Write the bins and commit those that are left.

        The commit is None if no bin is left.

        Raises:
            TableError: The files' statistics show that rows were doubled or lost (kind
                `DELTA_NUM_RECORDS_MISMATCH`).
        """
        with UncommittedFiles(txn) as pending:
            written = self._write_bins(txn, bins, pending)
            for found in written:
                ensure_balanced(found.actions(0), RowBalance.EQUAL, self._operation)
            commit, landed = self._commit_bins(txn, written, pending)
        kept = {add.path for found in landed for add in found.after}
        dropped = [add for found in written for add in found.after if add.path not in kept]
        if dropped:
            delete_files(txn.table.table_path, dropped, txn.table.data_access())
        return commit, landed

    @property
    def _operation(self) -> str:
        return "REORG" if self.wanted.purges else "OPTIMIZE"

    def _parameters(self) -> dict[str, object]:
        text = self.wanted.text
        predicate = json_text([] if text is None else [text])
        return {"predicate": predicate, **self.arrangement.parameters}

    def _write_bins(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table], pending: UncommittedFiles
    ) -> list[CompactedBin]:
        arrangement, clock = self.arrangement, txn.table.clock
        return [
            found.marked(partial(arrangement.marked, bin_id=str(clock.new_uuid())))
            for found in self.write(txn, bins, pending, arrangement.order)
        ]

    def _commit_bins(
        self,
        txn: OptimisticTransaction,
        written: Sequence[CompactedBin],
        pending: UncommittedFiles,
    ) -> tuple[CommitResult | None, Sequence[CompactedBin]]:
        policy, clock = txn.table.options.retry_policy, txn.table.clock
        start_s, tries, bins, first = clock.monotonic_s(), 0, written, txn
        while bins:
            txn.depend_on(_files_before(bins))
            tries += 1
            try:
                operation = Operation(self._operation, self._parameters())
                described = operation.with_metrics(commit_metrics(bins))
                return pending.commit(txn, _actions_of(bins, txn), described), bins
            except DeltaConcurrentModificationException:
                is_late = clock.monotonic_s() - start_s > policy.budget_s
                if txn.may_be_in_table or tries > policy.max_attempts or is_late:
                    raise
            if tries > 1:
                clock.sleep(pause_s(tries - 1, policy, clock))
            txn = self._begin_again(first)
            live = live_files(txn.snapshot, bins)
            followed = [found.followed(live, txn.table, pending) for found in bins]
            bins = [found for found in followed if found is not None]
            if len(bins) < len(followed):
                _LOG.info(
                    "OPTIMIZE drops %d groups of files that others changed meanwhile.",
                    len(followed) - len(bins),
                )
        return None, ()

    def _begin_again(self, first: OptimisticTransaction) -> OptimisticTransaction:
        """Begin again on the newest version, if the new files still fit it."""
        txn = self.begin()
        old, new = first.snapshot, txn.snapshot
        is_same = are_same_but_for_marks(old.metadata, new.metadata)
        if not is_same or old.protocol != new.protocol:
            raise MetadataChangedException(
                "The table's schema, properties or protocol were changed while OPTIMIZE wrote "
                "files. Nothing of this batch was committed. Run it again.",
                kind="DELTA_METADATA_CHANGED",
            )
        return txn


def _actions_of(bins: Sequence[CompactedBin], txn: OptimisticTransaction) -> tuple[Action, ...]:
    now_ms = txn.table.clock.now_ms()
    return tuple(action for found in bins for action in found.actions(now_ms))


def _files_before(bins: Sequence[CompactedBin]) -> pa.Table:
    return files_table(add for found in bins for add in found.before)


def _split_into_batches(
    bins: Sequence[pa.Table], max_bytes: int | None
) -> Iterator[list[pa.Table]]:
    """Split the bins into commits of at least so many bytes, or one commit for None."""
    batch: list[pa.Table] = []
    num_bytes = 0
    for found in bins:
        batch.append(found)
        num_bytes += exact_sum(found["size"])
        if max_bytes is not None and num_bytes >= max_bytes:
            yield batch
            batch, num_bytes = [], 0
    if batch:
        yield batch
