"""Which files a query reads, which it leaves out, and by what rule (spec 2.8, 9.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates import Predicate
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.pruner import FilePruner
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum

__all__ = ["ExplainedFiles", "explain_files"]

_TOGETHER = "all conditions together"


@dataclass(frozen=True, slots=True)
class ExplainedFiles:
    """The files of a version, as a query sees them.

    Attributes:
        files: One row per file: `path`, `size`, `rows` without deleted ones (null where the log
            does not tell), `partitionValues`, `read` and `rule`, which is null for a file that is
            read.
        rules: One row per rule: `rule`, `files`, `bytes`.
    """

    files: pa.Table
    rules: pa.Table

    def count(self, *, read: bool) -> tuple[int, int]:
        """Return the number and the bytes of the files that are read, or of the others."""
        is_read = self.files.column("read")
        sizes = self.files.column("size").filter(is_read if read else pc.invert(is_read))
        return len(sizes), exact_sum(sizes)


def explain_files(
    snapshot: Snapshot,
    where: str | None,
    *,
    use_statistics: bool,
    pruner: FilePruner | None = None,
) -> ExplainedFiles:
    """Say of each file of a version whether a query reads it, and if not, by what rule.

    A rule is a condition of the query, and what rules the file out by it: its partition values or
    its statistics. If several conditions rule a file out, the first one counts.

    Args:
        snapshot: The version.
        where: The query's condition; None reads all files.
        use_statistics: Whether queries use statistics (option `stats.skipping`).
        pruner: A pruner of the version, for a caller that asks for several conditions.

    Raises:
        UsageError: The condition does not parse, or names an unknown column.
    """
    predicate = snapshot.scan(where).predicate
    pruner = pruner or snapshot.pruner()
    is_read = pruner.keep_mask(predicate, use_statistics=use_statistics)
    rule = pc.if_else(is_read, None, _rules(pruner, predicate, use_statistics))
    files = pruner.files
    known = pa.table(
        {
            "path": files.column("path"),
            "size": files.column("size"),
            "rows": live_rows(files, pruner.statistics.num_records.combine_chunks()),
            "partitionValues": files.column("partitionValues"),
            "read": is_read,
            "rule": rule,
        }
    )
    return ExplainedFiles(known, _summed(known))


def _rules(pruner: FilePruner, predicate: Predicate, use_statistics: bool) -> Any:
    """Return the first rule that leaves each file out."""
    rule = pa.nulls(pruner.files.num_rows, pa.string())
    for conjunct in predicate.conjuncts():
        text = str(conjunct)
        for source, with_statistics in (("partition values", False), ("statistics", True)):
            if use_statistics or not with_statistics:
                keep = pruner.keep_mask(conjunct, use_statistics=with_statistics)
                found = pc.if_else(keep, None, pa.scalar(f"{source}: {text}"))
                rule = pc.coalesce(rule, found)
    return pc.fill_null(rule, _TOGETHER)


def _summed(files: pa.Table) -> pa.Table:
    left_out = files.filter(pc.invert(files.column("read"))).select(["rule", "size"])
    if not left_out.num_rows:
        columns = [("rule", pa.string()), ("files", pa.int64()), ("bytes", pa.int64())]
        return pa.schema(columns).empty_table()
    sums = left_out.group_by("rule").aggregate([("size", "count"), ("size", "sum")])
    return sums.select(["rule", "size_count", "size_sum"]).rename_columns(
        ["rule", "files", "bytes"]
    )
