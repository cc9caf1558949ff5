"""MERGE on Spark, by vectors or by copy on write (spec 10.15, profiles MG and MGi of 2.13).

1. Spark resolves every expression; no row is read.
2. The source's rows are stored on the executors, each with a number.
3. One pass over them counts them, and collects the values of the columns that must be equal. With
   these, the log tells which files can hold rows that match; they are recorded as read.
4. One pass joins the rows of these files with the source. It finds which rows change, what happens
   to each, their new values, and rows that change more than once; see `changes`.
5. Where the table has deletion vectors, those rows are marked in vectors. Elsewhere the other rows
   of their files are read by their positions, and written again. The new values, and rows of the
   source that match no row, are written beside them.

Each condition is evaluated in one pass, because a subquery in it can answer otherwise the next
time.

If the MERGE can only add rows, step 4 only leaves out the source's rows that match, and no file is
removed.

Where the work is small, the driver does steps 2 to 5 without a Spark job, see `local_merge`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes
from optimist.core.commands.merge.clauses import ensure_order
from optimist.core.commands.merge.evolution import evolve_schema
from optimist.core.commands.merge.run import changes_of_merge
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.row_rewrite import run
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.local_merge import merge_in_driver
from optimist.spark.commands.merge.merge_target import merge_on_spark
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.commands.merge.resolution import SparkResolvedMerge, SparkSides
from optimist.spark.commands.writing.own_sources import own_versions, transaction_from
from optimist.spark.conditions.bound_condition import has_subquery, rebound
from optimist.spark.conditions.subquery_text import (
    SubqueryText,
    renew_subqueries,
    with_subqueries_marked,
)
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.rows.local_rows import numbers_frame
from optimist.spark.rows.touched_files import aliased
from optimist.spark.session.job_scope import described
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["merge"]


def merge(spark: SparkSession, log: TableHandle, request: MergeRequest, alias: str) -> DataFrame:
    """Run a MERGE.

    Args:
        spark: The session.
        log: The table.
        request: The MERGE.
        alias: The alias of the table's rows.

    Returns:
        One row with the numbers of changed rows, see `DeltaMergeBuilder.execute`.
    """
    ensure_order(request.clauses)
    evolves_schema = request.evolves_schema or log.options.schema_auto_merge_enabled
    source = of_fixed_versions(request.source)
    request = replace(request, source=source, evolves_schema=evolves_schema)
    if is_connect(spark):
        request = request.expressions_changed(lambda value, _: with_subqueries_marked(value), str)
    command = _Command(spark, log, request, alias)
    with described(spark, "MERGE", log.table.table_path):
        counts = run(spark, log, command.work, command.begin)
    row = {
        "num_affected_rows": counts.num_affected,
        "num_updated_rows": counts.all_updated,
        "num_deleted_rows": counts.all_deleted,
        "num_inserted_rows": counts.inserted,
    }
    return numbers_frame(spark, row)


@dataclass(frozen=True, slots=True)
class _Try:
    """One try of a MERGE, its expressions resolved.

    Attributes:
        target: The table in the transaction of the try.
        merge: The expressions.
        watch: Started with the try.
    """

    target: Target
    merge: SparkResolvedMerge
    watch: Stopwatch


class _Command:
    """One MERGE, for each try of it.

    Subqueries can read the table itself, so they are resolved before the transaction starts for
    good. If they read it at the version of that transaction, the try keeps what was resolved.
    """

    def __init__(
        self, spark: SparkSession, log: TableHandle, request: MergeRequest, alias: str
    ) -> None:
        self._spark = spark
        self._log = log
        self._request = request
        self._alias = alias
        self._prepared: _Try | None = None
        self._is_again = False

    def begin(self) -> OptimisticTransaction:
        """Start the transaction of a try, at the oldest version that the MERGE reads."""
        log = self._log
        if self._is_again:
            renew_subqueries(self._request.expressions)
        self._is_again = True
        txn = transaction_from(log, self._request.source)
        self._prepared = None
        if not self._has_subqueries:
            return txn
        prepared = self._prepare(txn)
        reads = prepared.merge.reads
        read = {version for rows in reads for version in own_versions(log, txn, rows)}
        if read - {txn.read_version}:
            return transaction_from(log, *reads)
        self._prepared = prepared
        return txn

    def work(self, txn: OptimisticTransaction, pending: UncommittedFiles) -> Changes:
        """Change the rows, up to the commit."""
        prepared = self._prepared
        if prepared is None or prepared.target.txn is not txn:
            prepared = self._prepare(txn)
        target, merge, watch = prepared.target, prepared.merge, prepared.watch
        if any(own_versions(self._log, txn, rows) for rows in merge.reads):
            # What becomes of the table is made of its own rows: any change of it is a conflict.
            txn.read_whole_table()
        done = merge_in_driver(target, merge, pending, watch)
        if done is None:
            done = merge_on_spark(target, merge, pending, watch)
        return changes_of_merge(done, merge, txn.table, watch)

    @cached_property
    def _has_subqueries(self) -> bool:
        """Whether a condition holds a subquery, which can read the table at another version.

        On Spark Connect it is also true for a value.
        """
        if is_connect(self._spark):
            return any(isinstance(item, SubqueryText) for item in self._request.expressions)
        jvm, given = Jvm.of(self._spark), self._request.conditions
        columns = (sf.expr(item) if isinstance(item, str) else item for item in given)
        return any(has_subquery(jvm, jvm.tree(item)) for item in columns)

    def _prepare(self, txn: OptimisticTransaction) -> _Try:
        """Evolve the schema and resolve the expressions in the transaction of a try."""
        request, alias = self._request, self._alias
        if request.evolves_schema:
            source = from_spark_schema(request.source.schema)
            evolve_schema(txn, source, request.clauses, alias)
        target = Target.of(self._spark, self._log, txn, alias)
        watch = target.stopwatch()
        rows = target.columns()
        if request.target_attributes is not None:  # Spark has bound some expressions already
            rows = aliased(rebound(rows, request.target_attributes), target.alias)
        merge = SparkResolvedMerge.of(target, SparkSides(rows, request.source), request)
        return _Try(target, merge, watch)
