"""Conditions on rows in Spark Connect, where Catalyst's answers can't be had."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import Column, DataFrame

from optimist.core.errors import UsageError
from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import ensure_columns
from optimist.core.predicates.tree import Opaque
from optimist.core.schema.types import StructType
from optimist.spark.connect_expressions import message_predicate, messages

__all__ = ["connect_predicate", "connect_text", "find_obstacle"]

_TEXTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL)
_NON_DETERMINISTIC = (
    "rand",
    "randn",
    "random",
    "randstr",
    "uniform",
    "uuid",
    "shuffle",
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "input_file_block_start",
    "input_file_block_length",
)
_CALL = re.compile(rf"\b(?:{'|'.join(_NON_DETERMINISTIC)})\s*\(", re.IGNORECASE)
_SUBQUERY = re.compile(r"\(\s*(?:select|with|values|table|from)\b", re.IGNORECASE)
_SHOWN = re.compile(r"^Column<'(?P<text>.*)'>$", re.DOTALL)


def connect_text(column: Column) -> str:
    """A column as people read it; not SQL to be parsed, for it has no quotes around texts."""
    match = _SHOWN.match(str(column))
    return match["text"] if match else str(column)


def find_obstacle(frame: DataFrame, condition: Column | str) -> str | None:
    """`non-deterministic` or `subquery` where a condition is or holds one, by what can be seen.

    Args:
        frame: A frame of a Connect session.
        condition: SQL text or a column.
    """
    if isinstance(condition, str):
        return _obstacle_in_text(condition)
    for message in messages(_message(frame, condition)):
        name = message.DESCRIPTOR.name
        if name == "SubqueryExpression":
            return "subquery"
        if name == "UnresolvedFunction" and message.function_name.lower() in _NON_DETERMINISTIC:
            return "non-deterministic"
        is_udf = name == "CommonInlineUserDefinedFunction"
        if is_udf and not message.deterministic:
            return "non-deterministic"
        found = _obstacle_in_text(message.expression) if name == "ExpressionString" else None
        if found is not None:
            return found
    return None


def connect_predicate(frame: DataFrame, condition: Column | str, schema: StructType) -> Predicate:
    """The condition as the engine tracks it; what it can't understand matches every file.

    The columns of the predicate are at least those that the condition reads.
    """
    text = condition if isinstance(condition, str) else connect_text(condition)
    try:
        if isinstance(condition, str):
            found = Predicate.parse(condition)
        else:
            found = message_predicate(_message(frame, condition), text)
        return ensure_columns(found, schema)
    except UsageError:
        # Spark has resolved it, so it is valid: a name under the table's alias, or a lambda's.
        every = frozenset((item.name,) for item in schema)
        return Opaque(sql=text, paths=every, deterministic=True)


def _obstacle_in_text(text: str) -> str | None:
    bare = _TEXTS.sub("''", text)
    if _SUBQUERY.search(bare):
        return "subquery"
    return "non-deterministic" if _CALL.search(bare) else None


def _message(frame: DataFrame, column: Column) -> Any:
    client: Any = frame.sparkSession.client
    expression: Any = column
    return expression.to_plan(client)
