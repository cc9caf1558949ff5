"""The columns and the predicate of a condition, as Spark analysed it (spec 1.3).

Only Spark knows the meaning of a condition: confs change how its text is read (`"x"` may be a text
or a column), an alias and a struct column can have the same name, and a column built in Python has
no text. So nothing here reads the text again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from optimist.core.predicates import Predicate
from optimist.core.predicates.tree import Opaque
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.types import StructType
from optimist.spark.conditions.bound_condition import has_subquery
from optimist.spark.conditions.catalyst_expressions import CatalystPredicates
from optimist.spark.conditions.condition_reading import (
    UTC_NAMES,
    ConditionReading,
    Obstacle,
    opaque_where,
)
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import Jvm, analyzed_plan, filter_condition, iterate

__all__ = ["folded", "read_analyzed_condition", "without_zone_dependence"]

_INSTANT = "timestamp"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_STAR = re.compile(r"(?:Unr|R)esolved(?:DataFrame)?(?:Star|Regex)")
_MAY_BE_STAR = re.compile(r"\*|star|regex", re.IGNORECASE)
_TEXTS_OF_TIMES = ("SpecialDatetimeValues",)
"""The rule that makes a time of `CAST('today' AS DATE)`. Without it, folding takes such a text for
one that is no time: for an error, or in sessions without ANSI mode for null.
"""
_FOLDING = (
    *_TEXTS_OF_TIMES,
    "ComputeCurrentTime",  # PySpark 4.0 can't fold functions of the current time
    "ReplaceExpressions",
    "RewriteWithExpression",
    "ConstantFolding",
    "NullPropagation",
    "SimplifyCasts",
    "UnwrapCastInBinaryComparison",
    "BooleanSimplification",
    "LikeSimplification",
    "OptimizeIn",
    "ConstantFolding",
    "BooleanSimplification",
)
"""Rules of Spark's optimizer that bring a condition into the form in which scans get their filters.
They are applied one by one: the whole optimizer would move the condition through the plan, and add
inferred conditions.
"""


def read_analyzed_condition(
    frame: DataFrame,
    condition: Column,
    schema: StructType,
    partition_columns: Collection[str],
) -> ConditionReading:
    """Let Spark resolve a condition, and return its columns and predicate.

    Args:
        frame: The table's rows, in a classic session.
        condition: The condition.
        schema: The table's schema.
        partition_columns: The table's partition columns.

    Raises:
        pyspark.errors.AnalysisException: The condition names unknown columns, or is not a boolean.
    """
    execution = frame.filter(condition)._jdf.queryExecution()
    jvm = Jvm.of(frame.sparkSession)
    # `'now'` must be one time for all passes of a command.
    expression = _apply_rules(jvm, filter_condition(execution.analyzed()), _TEXTS_OF_TIMES)
    translation = CatalystPredicates(schema, named_path, lambda part: _make_opaque(part, schema))
    zone = session_zone_name(frame.sparkSession)
    is_shown = expression.references().subsetOf(analyzed_plan(frame).outputSet())
    return ConditionReading(
        text=str(expression.sql()),
        names=frozenset(name.lower() for name in _column_names(expression)),
        predicate=without_zone_dependence(
            translation.predicate(folded(jvm, expression)), schema, partition_columns, zone
        ),
        obstacle=_find_obstacle(jvm, execution.logical().condition(), expression),
        analyzed=jvm.column(expression) if is_shown else None,
    )


def without_zone_dependence(
    predicate: Predicate, schema: StructType, partition_columns: Collection[str], zone: str
) -> Predicate:
    """Make conditions on timestamp partition columns opaque outside of UTC.

    The engine reads the texts of partition values in UTC, but they may be in another zone.
    Constants and statistics of data columns are instants, so the zone does not matter for them.
    """
    fields = (schema.find(name) for name in partition_columns)
    zoned = {item.name for item in fields if item is not None and str(item.data_type) == _INSTANT}
    if not zoned or zone in UTC_NAMES:
        return predicate
    return opaque_where(predicate, lambda part: any(path[0] in zoned for path in part.columns()))


def _find_obstacle(jvm: Jvm, written: Any, expression: Any) -> Obstacle | None:
    if not expression.deterministic():
        return "non-deterministic"
    if has_subquery(jvm, expression):
        return "subquery"
    return "star" if _has_star(written) else None


def _has_star(written: Any) -> bool:
    """Check whether an expression, as written, holds a `*` or a pattern of names."""
    # First all leaves as one text: in a long list, each leaf would cost a round trip.
    leaves = written.collectLeaves()
    if not _MAY_BE_STAR.search(str(leaves.mkString(" "))):
        return False
    return any(_STAR.match(str(leaf.getClass().getSimpleName())) for leaf in iterate(leaves))


def folded(jvm: Jvm, expression: Any) -> Any:
    """Compute an expression's constants and simplify its form."""
    return _apply_rules(jvm, expression, _FOLDING)


def _apply_rules(jvm: Jvm, expression: Any, names: Sequence[str]) -> Any:
    """Apply rules of Spark's optimizer to an expression."""
    logical = jvm.catalyst.plans.logical
    columns = expression.references().toSeq()
    plan = logical.Filter(expression, logical.LocalRelation(columns, jvm.nil, False, jvm.none))
    with jvm.as_active():
        for name in names:
            changed = jvm.module(f"{_OPTIMIZER}.{name}$").apply(plan)
            # A rule may replace the whole filter; then the condition is kept as it was.
            if changed.nodeName() == "Filter" and changed.child().nodeName() == "LocalRelation":
                plan = changed
    return plan.condition()


def _column_names(expression: Any) -> list[str]:
    return [str(item.name()) for item in iterate(expression.references())]


def _make_opaque(expression: Any, schema: StructType) -> Opaque:
    paths = (named_path((name,), schema) for name in _column_names(expression))
    known = frozenset(path for path in paths if path is not None)
    return Opaque(str(expression.sql()), known, deterministic=True)
