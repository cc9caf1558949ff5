"""The changes of rows that `DeltaTable` and its transactions offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.requests.merge_clauses import Kind
from optimist.core.table.table_handle import TableHandle
from optimist.spark.commands.dml.delete import delete
from optimist.spark.commands.dml.target import TARGET_ALIAS
from optimist.spark.commands.dml.update import update
from optimist.spark.commands.merge.builder import DeltaMergeBuilder
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.commands.merge.run import merge
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.own_frames import OwnFrames
from optimist.spark.conditions.own_names import (
    OwnNames,
    alias_beside,
    named,
    qualified_columns,
)
from optimist.spark.rows.local_rows import numbers_frame
from optimist.spark.rows.touched_files import aliased
from optimist.spark.session.arguments import (
    ExpressionOrColumn,
    ensure_assignments,
    ensure_condition,
    ensure_given,
    ensure_source,
)
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["RowChanges"]


class RowChanges(ABC):
    """DELETE, UPDATE and MERGE."""

    _spark: SparkSession
    _frames: OwnFrames
    _own_name: tuple[str, ...]
    """The name before the table's columns: the user's alias, or the table's name in the catalog."""

    @property
    @abstractmethod
    def _handle(self) -> TableHandle:
        """The table's handle on which the commands run."""

    def delete(self, condition: ExpressionOrColumn | None = None) -> DataFrame | None:
        """Delete the rows for which the condition is true, or all rows without a condition.

        Returns:
            As in Delta, on Spark Connect one row with `num_affected_rows`, which is -1 if whole
            files were removed whose statistics do not count their rows; in a classic session None.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is deleted.
            UsageError: The condition is not deterministic, or is a column with a subquery on
                Spark Connect.
        """
        ensure_condition(condition)
        with original_errors():
            names = self._names(self._alias)
            chosen = None if condition is None else self._over_own_rows(condition, names)
            num_affected = delete(self._spark, self._handle, chosen, alias=names.alias)
            return self._affected_frame(num_affected)

    def update(
        self,
        condition: ExpressionOrColumn | None = None,
        set: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> DataFrame | None:
        """Set columns to new values in matching rows, or in all rows without a condition.

        Args:
            condition: SQL text or a column.
            set: Maps names of columns, or of fields in structs (`pos.lat`), to new values, SQL text
                or columns. `DEFAULT` is a column's default.

        Returns:
            On Spark Connect one row with `num_affected_rows`; in a classic session None.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is updated.
            SchemaError: A column does not exist, or a new value violates a constraint.
            UsageError: `set` is None or empty, or assigns a column twice; or the condition is not
                deterministic, or is a column with a subquery on Spark Connect.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        assignments = ensure_assignments(set)
        ensure_condition(condition)
        with original_errors():
            names = self._names(self._alias)
            chosen = None if condition is None else self._over_own_rows(condition, names)
            values = {
                names.in_target_text(name): self._over_own_rows(value, names)
                for name, value in assignments.items()
            }
            num_affected = update(self._spark, self._handle, chosen, values, alias=names.alias)
            return self._affected_frame(num_affected)

    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder:
        """Begin a MERGE: update, delete and insert rows of the table by the rows of a source.

        Nothing happens before the builder's `execute` is called.

        Args:
            source: The rows to compare with the table's rows, under an alias if the condition needs
                names for both.
            condition: The condition under which a row of the table and one of the source match: SQL
                text or a column.

        Raises:
            UsageError: An argument is None.
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
        """
        ensure_source(source)
        ensure_given(condition, "'condition' in merge")
        ensure_condition(condition)
        return DeltaMergeBuilder(MergeRequest(source, condition), self._merge)

    def _merge(self, request: MergeRequest) -> DataFrame:
        with original_errors():
            is_named = len(self._own_name) > 1
            source = attributes_of(request.source) if is_named else None
            alias = alias_beside(self._own_name, source, TARGET_ALIAS)
            names = self._names(alias)

            def qualify(value: ExpressionOrColumn, kind: Kind) -> ExpressionOrColumn:
                qualified = self._frames.beside(request.source, value, alias)
                if kind == "NOT MATCHED":
                    return qualified
                return names.in_value(qualified, source if kind == "MATCHED" else None)

            changed = request.expressions_changed(qualify, names.in_target_text)
            return merge(self._spark, self._handle, changed, alias)

    def _over_own_rows(self, value: ExpressionOrColumn, names: OwnNames) -> ExpressionOrColumn:
        """Return an expression over the table's rows alone, as the commands take it."""
        return names.in_value(self._frames.by_name(self._spark, value))

    @property
    def _alias(self) -> str | None:
        return self._own_name[-1] if self._own_name else None

    def _names(self, alias: str | None) -> OwnNames:
        def columns() -> Any:
            schema = to_spark_schema(self._handle.snapshot().schema)
            return qualified_columns(self._spark, schema, self._own_name)

        return OwnNames(self._spark, self._own_name, alias, lru_cache(maxsize=1)(columns))

    def _under_own_name(self, frame: DataFrame) -> DataFrame:
        """Return the table's rows as `toDF` returns them."""
        if len(self._own_name) > 1:
            return named(frame, self._own_name)
        return aliased(frame, self._alias)

    def _affected_frame(self, num_rows: int) -> DataFrame | None:
        if not is_connect(self._spark):
            return None
        return numbers_frame(self._spark, {"num_affected_rows": num_rows})
