"""The search for matching rows in the driver, where a Spark job would cost more than the work.

It is done only where the answer is Spark's own, whatever the session's conf says: the condition is
the expression that Spark analysed, and every part of it one that the engine evaluates exactly. What
is in doubt, and every file that can't be read here, is left to Spark.
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.errors import OptimistError
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.progress import ProgressReport
from optimist.core.local.target import LocalTarget
from optimist.core.paths import scheme_of
from optimist.core.snapshot.row_filter import is_exact
from optimist.spark.arrow.plane import ArrowPlane
from optimist.spark.commands.data_writer import DataWriter
from optimist.spark.conditions.condition import Condition

__all__ = ["search_here"]

_LOG = logging.getLogger(__name__)
_LEAST_BYTES = 1 << 20
"""What opening a file costs, in bytes that could be read meanwhile."""


def search_here(
    writer: DataWriter, candidates: pa.Table, condition: Condition, *, connected: bool
) -> TouchedFiles | None:
    """The candidates that hold matching rows; None where Spark has to look.

    Args:
        writer: The table in its transaction.
        candidates: Rows of `Snapshot.files`.
        condition: What matches.
        connected: Whether the session is a client of Spark Connect.
    """
    txn = writer.txn
    limit = txn.table.options.local_plane_max_bytes
    if connected or not limit or not _can_read(writer):
        return None
    if not condition.is_partition_only and _cost(candidates) > limit:
        return None
    if not is_exact(condition.predicate, txn.snapshot.schema):
        return None
    local = LocalCondition(condition.text, condition.predicate, condition.is_partition_only)
    try:
        target = LocalTarget(txn, ProgressReport(txn.table.clock, None, "the search for rows"))
        return target.search(candidates, local)
    except OptimistError as error:
        _LOG.debug("Spark looks for the rows, as this process can't: %s", error.kind)
        return None


def _can_read(writer: DataWriter) -> bool:
    """Whether this process reaches the table's files; Hadoop may be what knows the way."""
    is_local = scheme_of(writer.txn.table.table_path) in ("", "file")
    return is_local or isinstance(writer.plane, ArrowPlane)


def _cost(files: pa.Table) -> int:
    costs = pc.max_element_wise(files["size"], _LEAST_BYTES)
    return int(pc.sum(costs, min_count=0).as_py())
