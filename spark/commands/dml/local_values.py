"""Expressions that Spark has resolved, which the driver computes exactly or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.stored_values import stored_as
from optimist.core.local.value_building import ValueBuilder, needs_spark
from optimist.core.predicates import Predicate
from optimist.core.predicates.tree import Opaque
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.types import StructType
from optimist.core.snapshot.row_filter import ensure_exact
from optimist.spark.conditions.analysis import folded
from optimist.spark.conditions.catalyst_expressions import CatalystPredicates
from optimist.spark.conditions.catalyst_values import CatalystValues
from optimist.spark.rows.assignments import Assignments
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate

__all__ = ["LocalValues", "unknown"]


def unknown(expression: Any) -> Opaque:
    """Return a placeholder for an expression that only Spark can evaluate."""
    return Opaque(str(expression.sql()), frozenset(), deterministic=True)


@dataclass(frozen=True, slots=True)
class LocalValues:
    """A translation of the expressions of one command over some rows.

    Attributes:
        spark: A classic session.
        predicates: Translates conditions over the columns of the rows.
    """

    spark: SparkSession
    predicates: CatalystPredicates

    @classmethod
    def of_table(cls, spark: SparkSession, schema: StructType) -> LocalValues:
        """Return the translation for expressions over the rows of a table."""
        return cls(spark, CatalystPredicates(schema, named_path, unknown))

    def condition(self, expression: Any) -> Predicate:
        """Translate a condition.

        Raises:
            UsageError: Only Spark can evaluate it for certain (kind `OPTIMIST_NEEDS_SPARK`).
        """
        predicate = self.predicates.predicate(folded(Jvm.of(self.spark), expression))
        ensure_exact(predicate, self.predicates.schema, remedy=RUN_WITH_SPARK)
        return predicate

    def assignments(self, given: Assignments, schema: StructType) -> LocalAssignments:
        """Translate new values for the columns of a table.

        Args:
            given: The new values.
            schema: The table's schema.

        Raises:
            UsageError: Only Spark can compute a value for certain (kind `OPTIMIST_NEEDS_SPARK`).
            SchemaError: A constant does not fit its column.
        """
        plan = analyzed_plan(given.selected())
        if given.shaping.store.policy != "ansi" or plan.nodeName() != "Project":
            raise needs_spark(str(plan.nodeName()))
        if given.partial:
            raise needs_spark(str(plan.nodeName()), "assigns fields of structs that may be null")
        jvm, zone = Jvm.of(self.spark), session_zone_name(self.spark)
        targets, values = ValueBuilder("a column", schema), {}
        for path, expression in zip(given.values, iterate(plan.projectList()), strict=True):
            text = str(expression.child().sql())
            build = ValueBuilder(text, self.predicates.schema)
            translated = CatalystValues(build, self.predicates, lambda item: folded(jvm, item))
            target = targets.column(path).data_type
            values[path] = stored_as(translated.value(expression), target, ".".join(path), zone)
        return LocalAssignments(schema, values)
