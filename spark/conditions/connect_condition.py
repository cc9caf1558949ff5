"""Conditions on rows on Spark Connect, where the client can't ask Catalyst.

The server resolves the condition, or says why it can't. The engine's predicate for pruning is read
from the client's messages, and from the texts inside them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.predicates import Predicate
from optimist.core.predicates.coercion import bind
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.predicates.tree import Literal, NullSafeEqual
from optimist.core.schema.types import StructType
from optimist.spark.conditions.condition_reading import UTC_NAMES, ConditionReading, opaque_where
from optimist.spark.conditions.connect_expressions import SentExpressions
from optimist.spark.conditions.connect_text import SentTexts
from optimist.spark.rows.row_values import may_be_drawn
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import conf_entries

__all__ = [
    "known_in_session",
    "known_in_zone",
    "known_without",
    "read_sent_condition",
    "sent_message",
    "sure_predicate",
]

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
    predicate = known_in_session(frame.sparkSession, predicate, schema)
    return ConditionReading(text, names, predicate, obstacle)


def known_in_session(spark: SparkSession, predicate: Predicate, schema: StructType) -> Predicate:
    """Make the conjuncts opaque that may mean something else in this session.

    These are conjuncts with times, if the session is not in UTC, and `<=>` with a constant that is
    null after Spark's cast, if the session is not in ANSI mode.
    """
    found = opaque_where(predicate, lambda part: _may_equal_null(part, schema))
    if session_zone_name(spark) in UTC_NAMES:
        return found
    return opaque_where(found, lambda part: _depends_on_zone(part, schema))


def known_in_zone(spark: SparkSession, predicate: Predicate, zone: str) -> Predicate:
    """Return the conjuncts that mean in a zone what they mean in the session now.

    A frame keeps the zone in which it was made, and the server resolves its conditions anew in the
    session's zone at each action. Constants of times are written in quotes.
    """
    parts = predicate.conjuncts()
    rest = [part for part in parts if "'" not in str(part)]
    if len(rest) == len(parts) or session_zone_name(spark) == zone:
        return predicate
    return reduce(and_, rest) if rest else Predicate.TRUE


def known_without(confs: Mapping[str, str], predicate: Predicate, keys: Sequence[str]) -> Predicate:
    """Return a predicate that was read from a text while some keys of the conf were not true.

    The server parses the text of a query anew at each action, by the conf of that time. If a key is
    true by now, nothing is known.
    """
    is_read_alike = not any(confs.get(key, "").strip().lower() == "true" for key in keys)
    return predicate if is_read_alike else Predicate.TRUE


def sure_predicate(spark: SparkSession, predicate: Predicate, schema: StructType) -> Predicate:
    """Return the conjuncts that are understood, and whose texts are understood, too."""
    found = known_in_session(spark, predicate, schema)
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


def _may_equal_null(predicate: Predicate, schema: StructType) -> bool:
    """Check whether a constant behind `<=>` may be null in the type of the comparison.

    Without ANSI mode, `number <=> 'x'` is true where the number is null.
    """
    for leaf in predicate.walk():
        if isinstance(leaf, NullSafeEqual) and isinstance(leaf.right, Literal):
            column = resolve_column(leaf.left.path, schema)
            is_null = leaf.right.value is None
            if not is_null and (column is None or not _keeps_constant(leaf.right, column)):
                return True
    return False


def _keeps_constant(constant: Literal, column: ResolvedColumn) -> bool:
    return bind("=", constant, column.data_type, dt.timezone.utc) is not None


def _depends_on_zone(predicate: Predicate, schema: StructType) -> bool:
    """Check whether times in a predicate may depend on the session's zone.

    The engine reads them in UTC.
    """
    resolved = [resolve_column(path, schema) for path in predicate.columns()]
    types = {str(column.data_type) for column in resolved if column is not None}
    return bool(types & {"timestamp", "timestamp_ntz"}) or (
        "date" in types and "timestamp" in str(predicate).lower()
    )
