"""OPTIMIZE and REORG: files are written again, few for many; no row changes (spec 10.14, 2.16).

1. In the partitions that a predicate names, the files that are small, or of which many rows are
   deleted, are put into bins; see `bins`. With `optimize.batchSize`, so many bytes of bins at once,
   and a later batch takes its files as the newest version has them by then.
2. Each bin is written as one file, in this process or on Spark.
3. One commit, which changes no data, replaces the old files of a batch by the new ones.
4. After a conflict the same files are committed again on the newest version: old files that lost
   rows meanwhile lose them in the new files as well, and bins of which an old file is gone are
   dropped; see `compacted_bin`. So a conflict costs a bin and not the run.

An OPTIMIZE never makes other writers fail: a DELETE, UPDATE or MERGE beside it finds its rows in
the new files (spec 2.12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.care.bins import bins_now, bins_of, worth_compacting
from optimist.core.care.compacted_bin import CompactedBin, live_files
from optimist.core.care.optimize_metrics import Optimized, commit_metrics, optimized
from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.commands.row_balance import RowBalance, ensure_balanced
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.parquet_writer import delete_files
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    MetadataChangedException,
    UsageError,
)
from optimist.core.errors.foreign_text import listed
from optimist.core.log.file_table import files_table
from optimist.core.options.engine import EngineOptions
from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import ensure_columns
from optimist.core.protocol.actions import Action
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.running.retry import pause_s
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.identity_marks import are_same_but_for_marks
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.core.values.exact_sums import exact_sum

__all__ = ["BinWriter", "Rearrangement", "optimize", "partition_predicate"]

_LOG = logging.getLogger(__name__)


class BinWriter(Protocol):
    """Writes bins on one plane."""

    def __call__(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table], pending: UncommittedFiles
    ) -> Sequence[CompactedBin]:
        """Write each of the bins, rows of `Snapshot.files`, into files of its own."""
        ...


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Which files are written again.

    Attributes:
        predicate: In which partitions, as `partition_predicate` gives it; None for all.
        text: The same as SQL, for the history.
        purges: REORG ... APPLY (PURGE): all files with a deletion vector, each alone if need be,
            and no others.
    """

    predicate: Predicate | None = None
    text: str | None = None
    purges: bool = False

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """The files that are written again, those of a bin together."""
        if self.purges:
            wanted = candidates.filter(pc.is_valid(candidates["deletionVector"]))
        else:
            wanted = worth_compacting(
                candidates,
                min_bytes=options.optimize_min_file_size,
                max_deleted_ratio=options.optimize_max_deleted_rows_ratio,
            )
        return bins_of(
            wanted,
            snapshot.partition_schema,
            max_bytes=options.optimize_max_file_size,
            keeps_single=self.purges,
        )

    def operation(self, bins: Sequence[CompactedBin]) -> Operation:
        """The operation of a commit, as the history tells it."""
        parameters: dict[str, object] = {
            "predicate": json_text([] if self.text is None else [self.text])
        }
        if self.purges:
            operation = Operation("REORG", {**parameters, "applyPurge": True})
        else:
            more = {"zOrderBy": json_text([]), "clusterBy": json_text([]), "auto": False}
            operation = Operation("OPTIMIZE", {**parameters, **more})
        return operation.with_metrics(commit_metrics(bins))


def optimize(
    begin: Callable[[], OptimisticTransaction], write: BinWriter, wanted: Rearrangement
) -> Optimized:
    """Write files of a table again, few for many.

    Args:
        begin: Starts a transaction on the newest version.
        write: Writes the bins.
        wanted: Which files.

    Raises:
        UsageError: The table is clustered (kind `OPTIMIST_NOT_BUILT_YET`).
        DeltaConcurrentModificationException: Other commits came first, again and again. What
            earlier batches have committed stays.
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    txn = begin()
    txn.ensure_writable()
    snapshot, options, clock = txn.snapshot, txn.table.options, txn.table.clock
    _ensure_not_clustered(snapshot)
    started_ms = clock.now_ms()
    candidates = snapshot.scan(wanted.predicate).files
    bins = wanted.bins(candidates, snapshot, options)
    batches = list(_batches(bins, options.optimize_batch_size))
    landed: list[CompactedBin] = []
    commits = []
    for number, batch in enumerate(batches):
        if number:  # others may have committed since the files were chosen
            txn = begin()
            batch = bins_now(batch, txn.snapshot.files, keeps_single=wanted.purges)
        commit, done = _Batch(begin, write, wanted).run(txn, batch)
        landed += done
        commits += [commit] if commit is not None else []
    return optimized(
        landed,
        snapshot,
        commits,
        num_considered=candidates.num_rows,
        num_batches=len(batches),
        period_ms=(started_ms, clock.now_ms()),
    )


def partition_predicate(given: str | Predicate, snapshot: Snapshot) -> Predicate:
    """What chooses partitions.

    Raises:
        UsageError: It names a column that is no partition column (kind
            `DELTA_NON_PARTITION_COLUMN_REFERENCE`), or does not parse.
        SchemaError: There is no such column.
    """
    parsed = Predicate.parse(given) if isinstance(given, str) else given
    predicate = ensure_columns(parsed, snapshot.schema)
    known = {name.lower() for name in snapshot.partition_columns}
    for path in sorted(predicate.columns()):
        if path[0].lower() not in known:
            raise UsageError(
                f"Predicate references non-partition column '{path[0]}'. Only the partition "
                f"columns may be referenced: [{listed(snapshot.partition_columns)}]. Nothing was "
                "written. OPTIMIZE works on whole partitions.",
                kind="DELTA_NON_PARTITION_COLUMN_REFERENCE",
                column=path[0],
            )
    return predicate


@dataclass(frozen=True, slots=True)
class _Batch:
    """The bins of one commit."""

    begin: Callable[[], OptimisticTransaction]
    write: BinWriter
    wanted: Rearrangement

    def run(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table]
    ) -> tuple[CommitResult | None, Sequence[CompactedBin]]:
        """Write the bins and commit them; the commit is None where no bin was left.

        Raises:
            TableError: Rows were doubled or lost, by the statistics of the files (kind
                `DELTA_NUM_RECORDS_MISMATCH`).
        """
        with UncommittedFiles(txn.table) as pending:
            written = self.write(txn, bins, pending)
            for found in written:
                ensure_balanced(found.actions(0), RowBalance.EQUAL, "OPTIMIZE")
            commit, landed = self._commit(txn, written, pending)
        kept = {add.path for found in landed for add in found.after}
        dropped = [add for found in written for add in found.after if add.path not in kept]
        if dropped:
            delete_files(txn.table.table_path, dropped, txn.table.data_access())
        return commit, landed

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
                operation = self.wanted.operation(bins)
                return pending.commit(txn, _actions(bins, txn), operation), bins
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


def _ensure_not_clustered(snapshot: Snapshot) -> None:
    if clustering_columns(snapshot.domain_metadata, snapshot.schema):
        raise not_built_yet("OPTIMIZE of a clustered table")
