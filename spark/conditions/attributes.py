"""Columns that Spark has bound to one frame, turned back into columns by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate
from optimist.spark.session.pyspark_versions import COLUMN_CONVERTER

__all__ = ["analyzed_by_name", "attributes_of", "by_name"]

_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern$"
_LITERAL = "org.apache.spark.sql.catalyst.expressions.Literal$"
_FIELD_NAMES: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "GetStructField": lambda taken: str(taken.extractFieldName()),
        "GetArrayStructFields": lambda taken: str(taken.field().name()),
    }
)
"""The field that an expression takes out of a struct, or of the structs of an array."""


def attributes_of(frame: DataFrame) -> Any:
    """Return the attributes of a frame, a Scala `Seq`, with ids that no other scan has."""
    return analyzed_plan(frame).output()


def by_name(
    spark: SparkSession,
    column: Column,
    attributes: Sequence[Any],
    *,
    qualifier: str | None = None,
    kept: Any = None,
) -> Column:
    """Turn a column's references to attributes of some frames back into names.

    A column without such references is returned unchanged.

    Args:
        spark: A classic session.
        column: The column.
        attributes: The results of `attributes_of` for the frames, the oldest first.
        qualifier: The alias before the names; None for the names alone.
        kept: The result of `attributes_of` for a frame whose columns stay bound to it.
    """
    jvm, java_column = Jvm.of(spark), cast(Any, column._jc)
    expression = jvm.module(COLUMN_CONVERTER + "$").apply(java_column.node())
    bound = [leaf for leaf in iterate(expression.collectLeaves()) if _is_bound(leaf)]
    wanted = {_expression_id(leaf) for leaf in bound}
    known = _find_known_ids(wanted, attributes)
    if known and kept is not None:
        known -= _find_known_ids(wanted, [kept])
    if not known:
        return column
    return jvm.column(
        _replace_by_names(
            jvm, expression, [x for x in bound if _expression_id(x) in known], qualifier
        )
    )


def analyzed_by_name(own: DataFrame, column: Column, *, qualifier: str | None = None) -> Column:
    """Turn the columns that a frame shows back into names, in an analysed column.

    Args:
        own: The frame whose columns become names.
        column: The column.
        qualifier: The alias before the names; None for the names alone.
    """
    jvm, java_column = Jvm.of(own.sparkSession), cast(Any, column._jc)
    expression = jvm.module(COLUMN_CONVERTER + "$").apply(java_column.node())
    visible = analyzed_plan(own).outputSet()
    # The leaves themselves: a condition spells them as the user has spelled the column.
    leaves = iterate(expression.collectLeaves())
    bound = [leaf for leaf in leaves if _is_bound(leaf) and visible.contains(leaf)]
    return jvm.column(_replace_by_names(jvm, expression, bound, qualifier)) if bound else column


def _replace_by_names(
    jvm: Jvm, expression: Any, bound: Sequence[Any], qualifier: str | None
) -> Any:
    """Replace some attributes of an expression by names."""
    unresolved = jvm.root.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    above = [] if qualifier is None else [qualifier]
    named = {leaf: unresolved(jvm.seq([*above, leaf.name()])) for leaf in bound}
    has_shared = expression.containsPattern(jvm.module(_PATTERNS).WITH_EXPRESSION())
    tree = _inline_shared(jvm, expression, {}) if has_shared else expression
    return _fields_by_name(jvm, tree).transformUp(jvm.scala_map(named))


def _fields_by_name(jvm: Jvm, expression: Any) -> Any:
    """Take fields out of structs by their names.

    Spark has put their places there, and the table's newest version may have fields in other
    places.
    """
    if not expression.containsPattern(jvm.module(_PATTERNS).EXTRACT_VALUE()):
        return expression
    kind = str(expression.getClass().getSimpleName())
    children = list(iterate(expression.children()))
    inner = [_fields_by_name(jvm, child) for child in children]
    if kind in _FIELD_NAMES:
        name = jvm.module(_LITERAL).apply(_FIELD_NAMES[kind](expression))
        return jvm.catalyst.analysis.UnresolvedExtractValue(inner[0], name)
    return _with_children(jvm, expression, children, inner)


def _inline_shared(jvm: Jvm, expression: Any, shared: dict[str, Any]) -> Any:
    """Inline `With`, which BETWEEN becomes and which can't hold bare names.

    Args:
        jvm: The session's handles.
        expression: A tree of Spark's.
        shared: The expressions of its references, by their ids.
    """
    kind = str(expression.getClass().getSimpleName())
    if kind == "CommonExpressionRef":
        return shared[str(expression.id())]
    if kind == "With":
        for item in iterate(expression.defs()):
            shared[str(item.id())] = _inline_shared(jvm, item.child(), shared)
        return _inline_shared(jvm, expression.child(), shared)
    children = list(iterate(expression.children()))
    return _with_children(
        jvm, expression, children, [_inline_shared(jvm, child, shared) for child in children]
    )


def _with_children(jvm: Jvm, expression: Any, before: Sequence[Any], after: Sequence[Any]) -> Any:
    """Return the expression with other children, or itself if they are the same."""
    if all(one is other for one, other in zip(before, after, strict=True)):
        return expression
    return expression.withNewChildren(jvm.seq(after))


def _is_bound(leaf: Any) -> bool:
    return bool(leaf.getClass().getSimpleName() == "AttributeReference")


def _find_known_ids(wanted: set[int], attributes: Sequence[Any]) -> set[int]:
    """Return the wanted ids that a frame has, asking the newest frame first."""
    found: set[int] = set()
    for output in reversed(attributes):
        if found == wanted:
            break
        found |= wanted & {_expression_id(item) for item in iterate(output)}
    return found


def _expression_id(leaf: Any) -> int:
    return int(leaf.exprId().id())
