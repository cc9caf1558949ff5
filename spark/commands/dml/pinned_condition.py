"""The condition of a DELETE or an UPDATE, whose subqueries read one version of each table.

1. Spark resolves the condition. Without a subquery, nothing more is done here.
2. Our tables that its subqueries read are fixed to their present versions. On Spark Connect the
   texts name views that show one version each, and the server tells which.
3. The transaction begins. If the subqueries read the changed table itself, it begins at the version
   that they read, and depends on the whole table: a row that another commit adds could change a
   subquery's answer for any row.

After a conflict, all steps are repeated. Commits to other tables are not conflicts: their versions
stay fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.writing.own_sources import own_versions, transaction_from
from optimist.spark.conditions.bound_condition import BoundCondition, has_subquery
from optimist.spark.conditions.condition import Condition
from optimist.spark.conditions.subquery_text import (
    SubqueryText,
    reading_only,
    renew_subqueries,
    with_subqueries_marked,
)
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.session.jvm import Jvm, analyzed_plan, filter_condition
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["PinnedCondition"]


class PinnedCondition:
    """The condition of one command, for each of its tries."""

    def __init__(
        self,
        spark: SparkSession,
        log: TableHandle,
        condition: Column | str | BoundCondition | None,
        alias: str | None,
        values: Iterable[Column | str] = (),
    ) -> None:
        """Keep what a command is given.

        Args:
            spark: The session.
            log: The table.
            condition: The condition; None for all rows.
            alias: The alias of the table's rows.
            values: The new values of an UPDATE; on Spark Connect their subqueries are found, too.
        """
        is_sent = is_connect(spark)
        self._spark = spark
        self._log = log
        self._given = with_subqueries_marked(condition) if is_sent else condition
        self._values = [with_subqueries_marked(item) for item in values] if is_sent else []
        self._alias = alias
        self._now = self._given
        self._is_again = False

    def begin(self) -> OptimisticTransaction:
        """Begin the transaction of a try.

        Raises:
            pyspark.errors.AnalysisException: Spark can't resolve a condition with a subquery.
        """
        reads = list(self._sent_reads())
        bound = self._bind_subquery()
        if bound is not None:
            reads.append(of_fixed_versions(bound.as_rows()))
            self._now = bound.reading(reads[-1])
        txn = transaction_from(self._log, *reads)
        if any(own_versions(self._log, txn, rows) for rows in reads):
            txn.read_whole_table()
        return txn

    def resolved(self, target: Target, rows: DataFrame) -> Condition | None:
        """Return the condition, resolved as by `Target.resolve`, or None for all rows."""
        return None if self._now is None else target.resolve(self._now, rows)

    def _sent_reads(self) -> Iterator[DataFrame]:
        """Yield queries that read what the subqueries of a Connect client read."""
        if self._is_again:
            renew_subqueries([self._condition_text, *self._values])
        self._is_again = True
        values = [item for item in self._values if isinstance(item, SubqueryText)]
        condition = self._condition_text
        if condition is None and not values:
            return
        txn = self._log.start_transaction(self._log.snapshot())
        columns = Target.of(self._spark, self._log, txn, self._alias).columns()
        rows = reading_only(columns, self._alias)
        if condition is not None:
            yield rows.where(condition)
        if values:
            yield rows.select(*map(sf.expr, values))

    @property
    def _condition_text(self) -> SubqueryText | None:
        return self._given if isinstance(self._given, SubqueryText) else None

    def _bind_subquery(self) -> BoundCondition | None:
        """Return the condition as Spark resolves it, if it holds a subquery."""
        given = self._given
        if given is None or isinstance(given, BoundCondition) or is_connect(self._spark):
            return given if isinstance(given, BoundCondition) else None
        jvm = Jvm.of(self._spark)
        column = sf.expr(given) if isinstance(given, str) else given
        if not has_subquery(jvm, jvm.tree(column)):
            return None
        txn = self._log.start_transaction(self._log.snapshot())
        frame = Target.of(self._spark, self._log, txn, self._alias).columns()
        expression = filter_condition(analyzed_plan(frame.filter(column)))
        text = given if isinstance(given, str) else str(expression.sql())
        return BoundCondition(self._spark, expression, analyzed_plan(frame).output(), text)
