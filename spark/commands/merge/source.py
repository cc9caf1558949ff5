"""The source of a MERGE: its rows stay the same, and tell which rows of the table can match.

A MERGE reads its source more than once. So the rows are stored on the executors first, each with
the number by which the passes find it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.commands.merge.resolved import JoinKey
from optimist.core.predicates import Predicate
from optimist.spark.commands.dml.target import Target
from optimist.spark.conditions.join_reading import JoinReading
from optimist.spark.rows.stored_rows import stored_rows
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["SourceFacts", "facts_of", "repeatable"]

_MAX_VALUES = 64
"""Up to so many values of a key become a list; more become a range."""
_CALENDAR = ("DATE '0001-01-01'", "DATE '9999-12-31'")
"""The first and the last day that Python knows."""
_INDEX_IN_PARTITION = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of one partition."""
_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_LISTED = (*_INTEGERS, st.DateType, st.DecimalType)
_RANGED = (*_LISTED, st.FloatType, st.DoubleType)


@contextmanager
def repeatable(source: DataFrame, *more: Column) -> Iterator[DataFrame]:
    """Store the source's rows, so that every pass reads the same, until the context ends.

    Even rows of a fixed version of a table are stored. The session's conf and the cluster's cores
    decide how Spark splits them and which damaged files it ignores, and both can change meanwhile.

    Args:
        source: The rows.
        more: Further columns to store.
    """
    with stored_rows(source.select("*", *more)) as stored:
        if is_connect(source.sparkSession):
            # Columns that are bound to the source find its plan by this id.
            _set_plan_id(stored, _plan_id(source))
        yield stored


def _plan_id(frame: DataFrame) -> int:
    inner: Any = frame
    return int(inner._plan._plan_id)


def _set_plan_id(frame: DataFrame, plan_id: int) -> None:
    """Set the id of a frame's plan, which PySpark 4.3 keeps in another field."""
    inner: Any = frame
    plan = inner._plan
    name = "_root_plan_id" if hasattr(plan, "_root_plan_id") else "_plan_id"
    setattr(plan, name, plan_id)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What one pass over the source has found.

    Attributes:
        num_rows: How many rows the source has.
        predicate: True for every row of the table that can match a row of the source.
    """

    num_rows: int
    predicate: Predicate


def facts_of(
    source: DataFrame, reading: JoinReading, target: Target, rows: DataFrame
) -> SourceFacts:
    """Count the source's rows and collect the values of its keys, in one pass.

    Args:
        source: The stored rows of the source.
        reading: The keys of the condition, and which rows of the source can match.
        target: The table.
        rows: What `target.columns()` gave, to which the table's sides of the keys are bound.
    """
    keys, can_match = reading.keys, sf.lit(True)
    if reading.source is not None:
        can_match = sf.coalesce(reading.source, sf.lit(False))
    named = source.select(
        *(sf.when(can_match, key.source).alias(f"k{at}") for at, key in enumerate(keys)),
        can_match.alias("can_match"),
        (sf.monotonically_increasing_id().bitwiseAND(_INDEX_IN_PARTITION)).alias("index"),
    )
    types = [field.dataType for field in named.schema.fields[: len(keys)]]
    known = {at: kind for at, kind in enumerate(types) if _is_ranged(kind)}
    facts = [column for at, kind in known.items() for column in _key_facts(at, kind)]
    answer = named.agg(
        sf.count(sf.lit(1)).alias("rows"), sf.max("index").alias("index"), *facts
    ).toArrow()
    (found,) = answer.to_pylist()
    is_complete = found["index"] is None or found["index"] < _MAX_VALUES
    parts = [
        _key_predicate(_Key(keys[at], kind, at, is_complete), found, target, rows)
        for at, kind in known.items()
    ]
    predicate = reduce(and_, parts) if parts else Predicate.TRUE
    return SourceFacts(found["rows"], predicate if found["rows"] else Predicate.FALSE)


def _is_ranged(kind: st.DataType) -> bool:
    # Text with a collation is in another order than the table's statistics.
    return isinstance(kind, _RANGED) or kind == st.StringType()


def _key_facts(at: int, kind: st.DataType) -> list[Column]:
    value = sf.col(f"k{at}")
    # Python cannot read an answer with text that is not UTF-8, or with the year 10000.
    usable = value.isNotNull()
    if isinstance(kind, st.StringType):
        usable = sf.coalesce(sf.is_valid_utf8(value), sf.lit(True))
    if isinstance(kind, st.DateType):
        usable = value.between(*map(sf.expr, _CALENDAR))
    listed = sf.when(usable & (sf.col("index") < _MAX_VALUES), value)
    all_usable = sf.coalesce(sf.bool_and(usable | value.isNull()), sf.lit(True))
    facts = [
        sf.when(all_usable, sf.min(value)).alias(f"min{at}"),
        sf.when(all_usable, sf.max(value)).alias(f"max{at}"),
        all_usable.alias(f"usable{at}"),
        sf.count_if(sf.col("can_match") & value.isNull()).alias(f"nulls{at}"),
    ]
    if isinstance(kind, (*_LISTED, st.StringType)):
        facts.append(sf.collect_set(listed).alias(f"values{at}"))
    return facts


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of the condition, as the pass has looked at it.

    Attributes:
        key: The key.
        kind: The type of its values in the source.
        at: Its index among the keys.
        is_complete: Whether the listed values are all values.
    """

    key: JoinKey[Column]
    kind: st.DataType
    at: int
    is_complete: bool

    def literal(self, value: object, spark: SparkSession) -> Column:
        if is_connect(spark):
            return sf.lit(value)  # the client reads literals, but no casts of literals
        if isinstance(value, dt.date):
            return sf.expr(f"DATE '{value.isoformat()}'")  # PySpark makes old dates another day
        return sf.lit(value).cast(self.kind)


def _key_predicate(key: _Key, found: dict[str, Any], target: Target, rows: DataFrame) -> Predicate:
    """Return the predicate of one key, true for every row of the table that can match."""
    at, column = key.at, key.key.target
    if not found[f"usable{at}"]:
        return Predicate.TRUE
    low, high = found[f"min{at}"], found[f"max{at}"]
    takes_null = key.key.is_null_safe and found[f"nulls{at}"] > 0
    if low is None:
        return target.predicate(column.isNull(), rows) if takes_null else Predicate.FALSE
    values = found.get(f"values{at}", ())
    if key.is_complete and 0 < len(values) <= _MAX_VALUES:
        wanted = column.isin([key.literal(value, target.spark) for value in sorted(values)])
    else:
        first, last = (key.literal(value, target.spark) for value in (low, high))
        wanted = (column >= first) & (column <= last)
    return target.predicate(wanted | column.isNull() if takes_null else wanted, rows)
