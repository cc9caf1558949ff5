"""Columns that Spark has bound to one frame, as columns by name again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate
from optimist.spark.session.pyspark_versions import COLUMN_CONVERTER

__all__ = ["analyzed_by_name", "attributes_of", "by_name"]

_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern$"


def attributes_of(frame: DataFrame) -> Any:
    """The attributes of a frame, a Scala `Seq`; each has an id that no other scan's has."""
    return analyzed_plan(frame).output()


def by_name(
    spark: SparkSession,
    column: Column,
    attributes: Sequence[Any],
    *,
    qualifier: str | None = None,
    kept: Any = None,
) -> Column:
    """The column, with its references to attributes of some frames turned back into names.

    A column without such references stays as it is.

    Args:
        spark: A classic session.
        column: The column.
        attributes: What `attributes_of` gave for the frames, the oldest first.
        qualifier: The alias by which the names are to be found; None for the names alone.
        kept: What `attributes_of` gave for a frame whose columns stay bound to it.
    """
    jvm, java_column = Jvm.of(spark), cast(Any, column._jc)
    expression = jvm.module(COLUMN_CONVERTER + "$").apply(java_column.node())
    bound = [leaf for leaf in iterate(expression.collectLeaves()) if _is_bound(leaf)]
    wanted = {_id(leaf) for leaf in bound}
    known = _known(wanted, attributes)
    if known and kept is not None:
        known -= _known(wanted, [kept])
    if not known:
        return column
    return jvm.column(_named(jvm, expression, [x for x in bound if _id(x) in known], qualifier))


def analyzed_by_name(own: DataFrame, column: Column, *, qualifier: str | None = None) -> Column:
    """As `by_name`, for a column that Spark has analysed, and the columns that a frame shows.

    Args:
        own: The frame whose columns are named.
        column: The column.
        qualifier: The alias by which the names are to be found; None for the names alone.
    """
    jvm, java_column = Jvm.of(own.sparkSession), cast(Any, column._jc)
    expression = jvm.module(COLUMN_CONVERTER + "$").apply(java_column.node())
    visible = analyzed_plan(own).outputSet()
    # The leaves themselves: in a condition they are spelled as the user has spelled the column.
    leaves = iterate(expression.collectLeaves())
    bound = [leaf for leaf in leaves if _is_bound(leaf) and visible.contains(leaf)]
    return jvm.column(_named(jvm, expression, bound, qualifier)) if bound else column


def _named(jvm: Jvm, expression: Any, bound: Sequence[Any], qualifier: str | None) -> Any:
    """The expression with names in place of some attributes."""
    unresolved = jvm.root.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    above = [] if qualifier is None else [qualifier]
    named = {leaf: unresolved(jvm.seq([*above, leaf.name()])) for leaf in bound}
    has_shared = expression.containsPattern(jvm.module(_PATTERNS).WITH_EXPRESSION())
    tree = _inlined(jvm, expression, {}) if has_shared else expression
    return tree.transformUp(jvm.scala_map(named))


def _inlined(jvm: Jvm, expression: Any, shared: dict[str, Any]) -> Any:
    """The expression without `With`, which BETWEEN becomes and which can't hold bare names.

    Args:
        jvm: The session's handles.
        expression: A tree of Spark's.
        shared: The expressions that its references stand for, by their ids.
    """
    kind = str(expression.getClass().getSimpleName())
    if kind == "CommonExpressionRef":
        return shared[str(expression.id())]
    if kind == "With":
        for item in iterate(expression.defs()):
            shared[str(item.id())] = _inlined(jvm, item.child(), shared)
        return _inlined(jvm, expression.child(), shared)
    children = list(iterate(expression.children()))
    inlined = [_inlined(jvm, child, shared) for child in children]
    if all(one is other for one, other in zip(children, inlined, strict=True)):
        return expression
    return expression.withNewChildren(jvm.seq(inlined))


def _is_bound(leaf: Any) -> bool:
    return bool(leaf.getClass().getSimpleName() == "AttributeReference")


def _known(wanted: set[int], attributes: Sequence[Any]) -> set[int]:
    """The wanted ids that some frame has; the newest frame mostly has them, and is asked first."""
    found: set[int] = set()
    for output in reversed(attributes):
        if found == wanted:
            break
        found |= wanted & {_id(item) for item in iterate(output)}
    return found


def _id(leaf: Any) -> int:
    return int(leaf.exprId().id())
