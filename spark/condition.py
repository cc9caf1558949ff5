"""A condition on rows twice: as Spark evaluates it, and as the engine tracks it (spec 1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import ensure_columns, resolve_column
from optimist.core.predicates.tree import Opaque
from optimist.core.schema.types import StructType
from optimist.spark.connect_condition import (
    connect_predicate,
    connect_text,
    find_obstacle,
)
from optimist.spark.native.frame import session_zone_name
from optimist.spark.session.jvm import expression_of, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["Condition", "resolve_condition"]

_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was resolved against a table.

    Attributes:
        text: SQL, for the history.
        column: What Spark filters by.
        predicate: What the engine prunes by and records as read; parts it can't understand match
            every file.
        is_partition_only: Only partition columns are named, so whole files match or do not.
    """

    text: str
    column: Column
    predicate: Predicate
    is_partition_only: bool

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns that it names, in the table's spelling or in any case."""
        return frozenset(path[0] for path in self.predicate.columns())


def resolve_condition(
    frame: DataFrame,
    condition: Column | str,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
) -> Condition:
    """Resolve a condition against the rows of a table.

    Args:
        frame: The table's rows, under its alias if it has one.
        condition: SQL text or a column.
        schema: The table's schema.
        partition_columns: The table's partition columns.

    Raises:
        pyspark.errors.AnalysisException: Spark can't resolve it.
        UsageError: It is not deterministic, or holds a subquery.
    """
    column = sf.expr(condition) if isinstance(condition, str) else condition
    if is_connect(frame.sparkSession):
        return _resolved_in_connect(frame, condition, column, schema, partition_columns)
    expression = expression_of(frame, column)
    text = condition if isinstance(condition, str) else str(expression.sql())
    _ensure_allowed(expression, text)
    names = {reference.name().lower() for reference in iterate(expression.references())}
    partitions = {name.lower() for name in partition_columns}
    faithful = isinstance(condition, str) or _means_the_same(frame, text, expression)
    return Condition(
        text=text,
        column=column,
        predicate=_without_zone_dependence(
            _tracked(text if faithful else None, text, names, schema),
            schema,
            session_zone_name(frame.sparkSession),
        ),
        is_partition_only=bool(names) and names <= partitions,
    )


def _resolved_in_connect(
    frame: DataFrame,
    condition: Column | str,
    column: Column,
    schema: StructType,
    partition_columns: Sequence[str],
) -> Condition:
    _ = frame.filter(column).schema  # the server resolves it, or says why it can't
    text = condition if isinstance(condition, str) else connect_text(condition)
    obstacle = find_obstacle(frame, condition)
    _refuse(text, obstacle == "non-deterministic", obstacle == "subquery")
    predicate = connect_predicate(frame, condition, schema)
    names = {path[0].lower() for path in predicate.columns()}
    zone = session_zone_name(frame.sparkSession)
    return Condition(
        text=text,
        column=column,
        predicate=_without_zone_dependence(predicate, schema, zone),
        is_partition_only=bool(names) and names <= {name.lower() for name in partition_columns},
    )


def _ensure_allowed(expression: Any, text: str) -> None:
    _refuse(text, not expression.deterministic(), _has_subquery(expression))


def _refuse(text: str, is_random: bool, has_subquery: bool) -> None:
    if is_random:
        raise UsageError(
            f"The condition {text!r} is not deterministic: two passes over the same rows would "
            "choose "
            "different ones. Nothing was written.",
            kind="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            condition=text,
        )
    if has_subquery:
        raise UsageError(
            f"The condition {text!r} holds a subquery, which is not supported. Compute its answer "
            "first. "
            "Nothing was written.",
            kind="DELTA_UNSUPPORTED_SUBQUERY",
            condition=text,
        )


def _has_subquery(expression: Any) -> bool:
    name = expression.getClass().getSimpleName()
    if name in ("ScalarSubquery", "InSubquery", "Exists", "ListQuery", "LateralSubquery"):
        return True
    return any(_has_subquery(child) for child in iterate(expression.children()))


def _means_the_same(frame: DataFrame, text: str, expression: Any) -> bool:
    """Whether Spark reads its own text back as the expression; it leaves out some casts."""
    try:
        again = expression_of(frame, sf.expr(text))
    except Exception:  # noqa: BLE001 - texts of odd expressions fail to parse in many ways
        return False
    return bool(again.semanticEquals(expression))


def _tracked(sql: str | None, text: str, names: set[str], schema: StructType) -> Predicate:
    if sql is not None:
        # Spark has resolved it, so it is valid; our parser may just not know it.
        with suppress(UsageError):
            return ensure_columns(Predicate.parse(sql), schema)
    known = (schema.find(name) for name in names)
    paths = frozenset((item.name,) for item in known if item is not None)
    return Opaque(sql=text, paths=paths, deterministic=True)


def _without_zone_dependence(predicate: Predicate, schema: StructType, zone: str) -> Predicate:
    """The engine reads times in UTC; elsewhere conjuncts that depend on the zone match any file."""
    if zone in _UTC_NAMES:
        return predicate
    parts = [
        Opaque(str(part), part.columns(), deterministic=True)
        if _depends_on_zone(part, schema)
        else part
        for part in predicate.conjuncts()
    ]
    return reduce(and_, parts, Predicate.TRUE) if parts else predicate


def _depends_on_zone(predicate: Predicate, schema: StructType) -> bool:
    resolved = [resolve_column(path, schema) for path in predicate.columns()]
    types = {str(column.data_type) for column in resolved if column is not None}
    return bool(types & {"timestamp", "timestamp_ntz"}) or (
        "date" in types and "timestamp" in str(predicate).lower()
    )
