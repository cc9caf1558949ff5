"""The bins of an OPTIMIZE, written in this process (spec 10.14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from optimist.core.care.compacted_bin import CompactedBin
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.local.progress import Progress, ProgressReport
from optimist.core.local.rewriting import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalBins"]


@dataclass(frozen=True, slots=True)
class LocalBins:
    """Writes bins, as a `BinWriter`.

    Attributes:
        progress: Called after each bin with the files that are done.
    """

    progress: Progress | None = None

    def __call__(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table], pending: UncommittedFiles
    ) -> Sequence[CompactedBin]:
        """Write the rows of each bin one after the other, in the order of its files."""
        if not bins:
            return ()
        report = ProgressReport(txn.table.clock, self.progress, "OPTIMIZE")
        target = LocalTarget(txn, report)
        writer = RowWriter(target, pending, is_checked=False, data_change=False)
        written = writer.copy(bins, "OPTIMIZE")
        return [
            CompactedBin.of(files, found, counts)
            for files, (found, counts) in zip(bins, written, strict=True)
        ]
