"""Auto-compaction: after a write, the small files of the partitions that it changed (spec 10.14).

It is on by `spark.databricks.delta.autoCompact.enabled`, or by the table's property
`delta.autoOptimize.autoCompact`. Most commits only count files: it waits until a partition has many
small ones. Then it runs an OPTIMIZE of a bounded size in this process, after the write has landed.
If that fails, the write stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import ANY
from optimist.core.errors import DeltaConcurrentModificationException
from optimist.core.local.compaction import LocalBins
from optimist.core.log.file_lines import distinct_partitions
from optimist.core.maintenance.optimize.arrangements import Arrangement, Compaction, Rearrangement
from optimist.core.maintenance.optimize.bins import bins_of
from optimist.core.maintenance.optimize.optimize import optimize
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.skipping.predicate_choice import PartitionTexts, are_in_partitions
from optimist.core.snapshot import Snapshot
from optimist.core.table.compaction_turn import CompactsOne
from optimist.core.transaction.hooks.hooks import CommittedTransaction
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["AutoCompaction"]

_LOG = logging.getLogger(__name__)

_MOST_BINS = 8
"""So many files are written after one commit at most."""


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """The hook.

    Attributes:
        begin: Starts a transaction on the newest version.
        turn: Shared by all hooks of the table's handle.
        may_run_later: It may run in the background.
    """

    begin: Callable[[], OptimisticTransaction]
    turn: CompactsOne
    name: str = "Auto Compact"
    may_run_later: bool = True

    def run(self, committed: CommittedTransaction) -> None:
        """Compact the partitions that the commit has added rows to, if they are worth it."""
        options, snapshot = committed.table.options, committed.snapshot
        partitions = _changed_partitions(committed)
        if not 0 < len(partitions) <= options.auto_compact_max_partitions:
            return
        if clustering_columns(snapshot.domain_metadata, snapshot.schema):
            return
        wanted = _Auto(lambda version: version.in_partitions(partitions), partitions=partitions)
        files = wanted.candidates(snapshot).files
        if not wanted.arrangement(snapshot, options).bins(files, snapshot, options):
            return
        whose = object()
        try:
            if not self.turn.take(whose):
                return
            optimize(self.begin, LocalBins(), wanted)
        except DeltaConcurrentModificationException as conflict:
            _LOG.info(
                "Auto-compaction of %s is left to the next write: %s", snapshot.table_path, conflict
            )
        finally:
            self.turn.give_back(whose)


@dataclass(frozen=True, slots=True)
class _Auto(Rearrangement):
    """Asks for the compaction of some partitions, given by their values as the log has them."""

    partitions: Sequence[PartitionTexts] = field(default=())

    def arrangement(self, snapshot: Snapshot, options: EngineOptions) -> Arrangement:
        """See `Rearrangement.arrangement`."""
        del snapshot, options
        return _SmallFiles(tuple(self.partitions))


@dataclass(frozen=True, slots=True)
class _SmallFiles(Compaction):
    """The small files of those of some partitions that have many."""

    partitions: tuple[PartitionTexts, ...]

    @property
    def parameters(self) -> Mapping[str, object]:
        """See `Arrangement`."""
        return {**Arrangement().parameters, "auto": True}

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """See `Arrangement`."""
        target = options.auto_compact_max_file_size
        least = options.auto_compact_min_file_size or target // 2
        small = candidates.filter(pc.less(candidates["size"], least))
        if small.num_rows < max(options.auto_compact_min_num_files, 2):
            return []
        small = _within_the_table(small, snapshot)
        values = small["partitionValues"]
        found = [small.filter(are_in_partitions(values, [each])) for each in self.partitions]
        many = [each for each in found if each.num_rows >= options.auto_compact_min_num_files]
        if not many:
            return []
        bins = bins_of(pa.concat_tables(many), snapshot.partition_schema, max_bytes=target)
        return bins[:_MOST_BINS]


def _changed_partitions(committed: CommittedTransaction) -> list[PartitionTexts]:
    """List the partitions that the commit has added rows to, each once."""
    adds = (a for a in committed.actions if isinstance(a, AddFile) and a.data_change)
    partitions: list[PartitionTexts] = [add.partition_values for add in adds]
    if committed.files:
        partitions += distinct_partitions(committed.files.added)
    return list({tuple(sorted(values.items())): values for values in partitions}.values())


def _within_the_table(files: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Drop the files of a shallow clone's source.

    Only other logs tell whether their rows may be copied, and asking them costs too much for each
    commit. Besides, nobody has asked to have them copied.
    """
    paths = snapshot.data_paths
    if paths.outside == ANY:
        return files
    references = pa.concat_arrays(files["path"].chunks)
    return files.filter(pc.invert(paths.are_outside(references)))
