"""What `DeltaTable`, and a transaction on one, changes of the table's rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from optimist.core.table.table_handle import TableHandle
from optimist.spark.commands.delete import delete
from optimist.spark.commands.merge.builder import DeltaMergeBuilder
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.commands.merge.run import OWN_ALIAS, merge
from optimist.spark.commands.update import update
from optimist.spark.conditions.own_frames import OwnFrames
from optimist.spark.rows.local_rows import numbers_frame
from optimist.spark.session.arguments import (
    ExpressionOrColumn,
    ensure_assignments,
    ensure_condition,
    ensure_given,
    ensure_source,
)
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["RowChanges"]


class RowChanges(ABC):
    """DELETE, UPDATE and MERGE."""

    _spark: SparkSession
    _alias: str | None
    _frames: OwnFrames

    @property
    @abstractmethod
    def _handle(self) -> TableHandle:
        """What the commands run on."""

    def delete(self, condition: ExpressionOrColumn | None = None) -> DataFrame | None:
        """Delete the rows for which the condition is true; all rows without one.

        Returns:
            As in Delta, in Spark Connect one row with `num_affected_rows`, which is -1 if whole
            files were removed whose statistics do not count their rows; in a classic session None.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is deleted.
            UsageError: The condition is not deterministic, or holds a subquery in Spark Connect.
        """
        ensure_condition(condition)
        with original_errors():
            chosen = None if condition is None else self._frames.by_name(self._spark, condition)
            num_affected = delete(self._spark, self._handle, chosen, alias=self._alias)
            return self._affected(num_affected)

    def update(
        self,
        condition: ExpressionOrColumn | None = None,
        set: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> DataFrame | None:
        """Set columns to new values in rows for which the condition is true; in all without one.

        Args:
            condition: SQL text or a column.
            set: Names of columns, or of fields within structs (`pos.lat`), to new values, SQL text
                or columns. `DEFAULT` is a column's default.

        Returns:
            In Spark Connect one row with `num_affected_rows`; in a classic session None.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is updated.
            SchemaError: A column does not exist, or a new value violates a constraint.
            UsageError: `set` is None or empty, or assigns a column twice; or the condition is not
                deterministic, or holds a subquery in Spark Connect.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        assignments = ensure_assignments(set)
        ensure_condition(condition)
        with original_errors():
            chosen = None if condition is None else self._frames.by_name(self._spark, condition)
            values = {
                name: self._frames.by_name(self._spark, value)
                for name, value in assignments.items()
            }
            num_affected = update(self._spark, self._handle, chosen, values, alias=self._alias)
            return self._affected(num_affected)

    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder:
        """Begin a MERGE: update, delete and insert rows of the table by the rows of a source.

        Nothing happens before `execute` of the builder is called.

        Args:
            source: The rows that the table's are compared with, under an alias if the condition
                has to tell the two apart by name.
            condition: When a row of the table and one of the source match: SQL text or a column.

        Raises:
            UsageError: An argument is None.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        ensure_source(source)
        ensure_given(condition, "'condition' in merge")
        ensure_condition(condition)
        return DeltaMergeBuilder(MergeRequest(source, condition), self._merge)

    def _merge(self, request: MergeRequest) -> DataFrame:
        alias = self._alias or OWN_ALIAS
        with original_errors():
            told_apart = request.expressions_changed(
                lambda value: self._frames.beside(request.source, value, alias)
            )
            return merge(self._spark, self._handle, told_apart, alias)

    def _affected(self, num_rows: int) -> DataFrame | None:
        if not is_connect(self._spark):
            return None
        return numbers_frame(self._spark, {"num_affected_rows": num_rows})
