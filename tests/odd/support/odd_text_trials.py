"""Holds what the engine makes of texts against Spark: as conditions, values and stored SQL.

What the engine takes, Spark's parser takes; what it computes, Spark computes, row by row; and the
form in which it stores a text means to Spark what the text means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from odd_texts import odd_text_rows
from optimist.core.commands.row_rules import local_constraint
from optimist.core.commands.stored_sql import canonical_sql
from optimist.core.errors import OptimistError
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.functions import NON_DETERMINISTIC
from optimist.core.expressions.tree import Call, walk
from optimist.core.local.values import parse_value
from optimist.core.predicates import Predicate, ensure_columns, evaluate
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_type
from optimist.core.schema.generated_columns import unknown_columns
from optimist.core.snapshot.row_filter import is_exact
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["Trial", "tried"]

_BATCH = 100
_REFUSALS = (PySparkException, Py4JJavaError)


@dataclass
class Trial:
    """What came of it.

    Attributes:
        counts: How many texts were taken in each role, and how many Spark takes.
        wrong: Texts that were taken in a role and mean something else to Spark, with what.
        narrower: Texts of Spark's grammar that ours refuses.
    """

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    narrower: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Claim:
    """What the engine says of a text: its value in each row."""

    role: str
    text: str
    values: list[Any]


def tried(spark: SparkSession, texts: Sequence[str]) -> Trial:
    """Try texts in each role."""
    rows = odd_text_rows()
    schema = from_arrow_schema(rows.schema)
    frame = spark.createDataFrame(
        [tuple(row.values()) for row in rows.to_pylist()], to_spark_schema(schema)
    ).coalesce(1)
    trial = Trial()
    claims: list[_Claim] = []
    for text in texts:
        is_sparks = _is_parsed(spark, text)
        trial.counts["texts"] += 1
        trial.counts["parsed by Spark"] += is_sparks
        if not _judge_grammar(trial, text, is_sparks):
            continue
        found = list(_claims(trial, text, rows, schema))
        is_told_twice = len(found) > 1 and found[0].values == found[1].values
        claims += found[1:] if is_told_twice else found
        claims += _stored(trial, spark, text, schema)
    for start in range(0, len(claims), _BATCH):
        _judge_values(trial, frame, claims[start : start + _BATCH])
    return trial


def _is_parsed(spark: SparkSession, text: str) -> bool:
    try:
        spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except _REFUSALS:
        return False
    return True


def _judge_grammar(trial: Trial, text: str, is_sparks: bool) -> bool:
    try:
        parse_expression(text)
    except NotSqlError:
        if is_sparks:
            trial.narrower.append(text)
        return False
    trial.counts["parsed"] += 1
    if not is_sparks:
        trial.wrong.append(("grammar", text, "Spark's parser refuses it"))
    return is_sparks


def _claims(trial: Trial, text: str, rows: pa.Table, schema: Any) -> Iterator[_Claim]:
    roles: dict[str, Callable[[], Any]] = {
        "condition": lambda: _condition(text, rows, schema),
        "constraint": lambda: _constraint(text, rows, schema),
        "value": lambda: _value(text, rows, schema),
    }
    for role, find in roles.items():
        try:
            values = find()
        except OptimistError:
            continue
        if values is not None:
            trial.counts[role] += 1
            yield _Claim(role, text, values)


def _condition(text: str, rows: pa.Table, schema: Any) -> list[Any] | None:
    predicate = ensure_columns(Predicate.parse(text), schema)
    if not is_exact(predicate, schema):
        return None
    answer = evaluate(predicate, rows)
    return None if answer is None else answer.to_pylist()


def _constraint(text: str, rows: pa.Table, schema: Any) -> list[Any] | None:
    predicate = local_constraint(text, schema)
    answer = None if predicate is None else evaluate(predicate, rows)
    return None if answer is None else answer.to_pylist()


def _value(text: str, rows: pa.Table, schema: Any) -> list[Any] | None:
    value = parse_value(text, schema)
    if str(value.data_type) == "void":
        return None
    found = pa.chunked_array([_whole(value.compute(rows))])
    assert found.type == to_arrow_type(value.data_type), (text, found.type, value.data_type)
    return found.to_pylist()


def _whole(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _stored(trial: Trial, spark: SparkSession, text: str, schema: Any) -> Iterator[_Claim]:
    """The form in which it would be stored must be Spark's, and mean the same."""
    try:
        if unknown_columns(text, schema):
            return
    except OptimistError:
        return
    stored = canonical_sql(text, schema)
    trial.counts["stored"] += 1
    if stored == text:
        return
    trial.counts["stored in another form"] += 1
    if not _is_parsed(spark, stored):
        trial.wrong.append(("stored", text, f"Spark's parser refuses {stored}"))
    elif canonical_sql(stored, schema) != stored:
        trial.wrong.append(("stored", text, f"{stored} is not canonical"))
    elif not any(call.name in NON_DETERMINISTIC for call in _calls(text)):
        yield _Claim("stored", text, [stored])


def _calls(text: str) -> list[Call]:
    return [node for node in walk(parse_expression(text)) if isinstance(node, Call)]


def _judge_values(trial: Trial, frame: DataFrame, claims: list[_Claim]) -> None:
    for claim, values in zip(claims, _computed(frame, list(map(_asked, claims))), strict=True):
        if claim.role == "stored":
            if not isinstance(values, str) and set(values) != {True}:
                trial.wrong.append((claim.role, claim.text, f"{claim.values[0]} is another"))
        elif isinstance(values, str):
            trial.wrong.append((claim.role, claim.text, values))
        elif not _agree(values, claim.values):
            trial.wrong.append((claim.role, claim.text, f"{values} and not {claim.values}"))


def _asked(claim: _Claim) -> str:
    return _same(claim) if claim.role == "stored" else claim.text


def _same(claim: _Claim) -> str:
    return f"({claim.text}) <=> ({claim.values[0]})"


def _computed(frame: DataFrame, expressions: list[str]) -> list[list[Any] | str]:
    """The values of each in all rows, or why there are none."""
    named = [f"({text}) AS c{place}" for place, text in enumerate(expressions)]
    try:
        rows = frame.selectExpr(*named).collect() if named else []
    except _REFUSALS as error:
        if len(expressions) == 1:
            return [_short(error)]
        middle = len(expressions) // 2
        return _computed(frame, expressions[:middle]) + _computed(frame, expressions[middle:])
    return [[row[place] for row in rows] for place in range(len(expressions))]


def _short(error: Exception) -> str:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return str(condition or error).split("\n")[0][:150]


def _agree(found: list[Any], wanted: list[Any]) -> bool:
    return len(found) == len(wanted) and all(map(_is_same, found, wanted))


def _is_same(found: Any, wanted: Any) -> bool:
    if isinstance(found, bytearray):
        found = bytes(found)
    if hasattr(found, "asDict"):
        found = found.asDict()
    if isinstance(found, float) and isinstance(wanted, float):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    if hasattr(wanted, "tzinfo") and wanted.tzinfo is not None:
        return found is not None and found.astimezone(wanted.tzinfo) == wanted
    return bool(found == wanted) and type(found) is type(wanted)
