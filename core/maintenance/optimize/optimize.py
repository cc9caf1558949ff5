"""OPTIMIZE and REORG: files are written again, few for many; no row changes (spec 10.14, 2.16).

1. In the partitions that a predicate names, the files that are small, or of which many rows are
   deleted, are put into bins; see `bins`. With `optimize.batchSize`, so many bytes of bins at once,
   and a later batch takes its files as the newest version has them by then.
   Z-order and clustering take other files, and arrange their rows; see `arrangements`.
2. Each bin is written as one file, in this process or on Spark; one that is arranged as several.
3. One commit, which changes no data, replaces the old files of a batch by the new ones.
4. After a conflict the same files are committed again on the newest version: old files that lost
   rows meanwhile lose them in the new files as well, and bins of which an old file is gone are
   dropped; see `compacted_bin`. So a conflict costs a bin and not the run.

An OPTIMIZE never makes other writers fail: a DELETE, UPDATE or MERGE beside it finds its rows in
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
    """Writes bins on one plane."""

    def __call__(
        self,
        txn: OptimisticTransaction,
        bins: Sequence[pa.Table],
        pending: UncommittedFiles,
        order: RowOrder | None,
    ) -> Sequence[CompactedBin]:
        """Write each of the bins, rows of `Snapshot.files`, into files of its own.

        Where an order is given, the rows of a bin are arranged by it, and files of the wanted size
        are cut from that; else a bin becomes one file.
        """
        ...


def optimize(
    begin: Callable[[], OptimisticTransaction], write: BinWriter, wanted: Rearrangement
) -> Optimized:
    """Write files of a table again, few for many.

    Args:
        begin: Starts a transaction on the newest version.
        write: Writes the bins.
        wanted: Which files.

    Raises:
        UsageError: The table can't be arranged like that; see `Rearrangement`.
        DeltaConcurrentModificationException: Other commits came first, again and again. What
            earlier batches have committed stays.
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    txn = begin()
    txn.ensure_writable()
    snapshot, options, clock = txn.snapshot, txn.table.options, txn.table.clock
    arrangement = wanted.arrangement(snapshot, options)
    started_ms = clock.now_ms()
    candidates = wanted.candidates(snapshot)
    bins = arrangement.bins(candidates, snapshot, options)
    batches = list(_batches(bins, options.optimize_batch_size))
    landed: list[CompactedBin] = []
    version = None
    for number, batch in enumerate(batches):
        if number:  # others may have committed since the files were chosen
            txn = begin()
            live = txn.snapshot.files
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
    """Refuse a condition on partitions where the table is clustered.

    Raises:
        UsageError: It is (kind `DELTA_CLUSTERING_WITH_PARTITION_PREDICATE`).
    """
    if clustering_columns(snapshot.domain_metadata, snapshot.schema):
        raise UsageError(
            "OPTIMIZE command for Delta table with clustering doesn't support partition "
            f"predicates. Please remove the predicates: {shown(text)}. Nothing was written.",
            kind="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            predicate=text,
        )


def ensure_of_partitions(names: Iterable[str], snapshot: Snapshot) -> None:
    """Refuse a condition that names other columns than those of the partitions.

    Args:
        names: The top-level columns that it names, in any case.
        snapshot: The table.

    Raises:
        UsageError: It does (kind `DELTA_NON_PARTITION_COLUMN_REFERENCE`).
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
        """Write the bins and commit them; the commit is None where no bin was left.

        Raises:
            TableError: Rows were doubled or lost, by the statistics of the files (kind
                `DELTA_NUM_RECORDS_MISMATCH`).
        """
        with UncommittedFiles(txn) as pending:
            written = self._written(txn, bins, pending)
            for found in written:
                ensure_balanced(found.actions(0), RowBalance.EQUAL, self._operation)
            commit, landed = self._commit(txn, written, pending)
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

    def _written(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table], pending: UncommittedFiles
    ) -> list[CompactedBin]:
        arrangement, clock = self.arrangement, txn.table.clock
        return [
            found.marked(partial(arrangement.marked, bin_id=str(clock.new_uuid())))
            for found in self.write(txn, bins, pending, arrangement.order)
        ]

    def _commit(
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
                told = operation.with_metrics(commit_metrics(bins))
                return pending.commit(txn, _actions(bins, txn), told), bins
            except DeltaConcurrentModificationException:
                is_late = clock.monotonic_s() - start_s > policy.budget_s
                if txn.may_be_in_table or tries > policy.max_attempts or is_late:
                    raise
            if tries > 1:
                clock.sleep(pause_s(tries - 1, policy, clock))
            txn = self._again(first)
            live = live_files(txn.snapshot, bins)
            followed = [found.followed(live, txn.table, pending) for found in bins]
            bins = [found for found in followed if found is not None]
            if len(bins) < len(followed):
                _LOG.info(
                    "OPTIMIZE leaves out %d groups of files, which others changed meanwhile.",
                    len(followed) - len(bins),
                )
        return None, ()

    def _again(self, first: OptimisticTransaction) -> OptimisticTransaction:
        """A transaction on the newest version, for which the new files still fit."""
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


def _actions(bins: Sequence[CompactedBin], txn: OptimisticTransaction) -> tuple[Action, ...]:
    now_ms = txn.table.clock.now_ms()
    return tuple(action for found in bins for action in found.actions(now_ms))


def _files_before(bins: Sequence[CompactedBin]) -> pa.Table:
    return files_table(add for found in bins for add in found.before)


def _batches(bins: Sequence[pa.Table], max_bytes: int | None) -> Iterator[list[pa.Table]]:
    """The bins of each commit: of at least so many bytes; all in one where that is None."""
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
