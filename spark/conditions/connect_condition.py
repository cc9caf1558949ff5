"""Conditions on rows on Spark Connect, where the client can't ask Catalyst.

The server resolves the condition, or says why it can't. The engine's predicate for pruning is read
from the client's messages, and from the texts inside them.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema.types import StructType
from optimist.spark.conditions.condition_reading import UTC_NAMES, ConditionReading, opaque_where
from optimist.spark.conditions.connect_expressions import SentExpressions
from optimist.spark.conditions.connect_text import SentTexts
from optimist.spark.rows.row_values import may_be_drawn
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import conf_entries

__all__ = ["opaque_in_other_zones", "read_sent_condition", "sent_message", "sure_predicate"]

_SHOWN = re.compile(r"^Column<'(?P<text>.*)'>$", re.DOTALL)


def read_sent_condition(
    frame: DataFrame, condition: Column | str, schema: StructType, alias: str | None
) -> ConditionReading:
    """Let the server resolve a condition, and return what the client can know of it.

    Args:
        frame: The table's rows in a Connect session, under their alias.
        condition: SQL text or a column.
        schema: The table's schema.
        alias: The frame's alias.

    Raises:
        pyspark.errors.AnalysisException: The server can't resolve the condition.
    """
    _ = (
        frame.filter(condition).select(sf.lit(1)).schema
    )  # without the select, the schema would come from the input
    texts = SentTexts(schema, alias, conf_entries(frame.sparkSession))
    if isinstance(condition, str):
        text, predicate = condition, texts.predicate(condition)
        names, obstacle = texts.names(text), texts.obstacle(text)
    else:
        text = _readable_text(condition)
        sent = SentExpressions(texts, text)
        message = sent_message(frame, condition)
        predicate, names = sent.predicate(message), sent.names(message)
        obstacle = sent.obstacle(message)
    if obstacle is None and not predicate.is_exact:
        column = sf.expr(condition) if isinstance(condition, str) else condition
        obstacle = "non-deterministic" if may_be_drawn(frame, column) else None
    predicate = opaque_in_other_zones(frame.sparkSession, predicate, schema)
    return ConditionReading(text, names, predicate, obstacle)


def opaque_in_other_zones(
    spark: SparkSession, predicate: Predicate, schema: StructType
) -> Predicate:
    """Make conjuncts with times opaque, if the session is not in UTC."""
    if session_zone_name(spark) in UTC_NAMES:
        return predicate
    return opaque_where(predicate, lambda part: _depends_on_zone(part, schema))


def sure_predicate(spark: SparkSession, predicate: Predicate, schema: StructType) -> Predicate:
    """Return the conjuncts that are understood, and whose texts are understood, too."""
    found = opaque_in_other_zones(spark, predicate, schema)
    sure = [part for part in found.conjuncts() if _is_sure(part)]
    return reduce(and_, sure) if sure else Predicate.TRUE


def sent_message(frame: DataFrame, column: Column) -> Any:
    """Return a column as the client of the frame's session sends it."""
    client: Any = frame.sparkSession.client
    expression: Any = column
    return expression.to_plan(client)


def _is_sure(part: Predicate) -> bool:
    return part.is_exact and Predicate.parse(str(part)) == part


def _readable_text(column: Column) -> str:
    """Return a column as people read it, which is not SQL: texts have no quotes."""
    match = _SHOWN.match(str(column))
    return match["text"] if match else str(column)


def _depends_on_zone(predicate: Predicate, schema: StructType) -> bool:
    """Check whether times in a predicate may depend on the session's zone.

    The engine reads them in UTC.
    """
    resolved = [resolve_column(path, schema) for path in predicate.columns()]
    types = {str(column.data_type) for column in resolved if column is not None}
    return bool(types & {"timestamp", "timestamp_ntz"}) or (
        "date" in types and "timestamp" in str(predicate).lower()
    )
