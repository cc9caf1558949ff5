"""The source of a MERGE: the same rows in every pass, and which rows of the table they can match.

A MERGE reads its source more than once, so the rows are stored on the executors first, each with
the number by which the passes know it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.predicates import Predicate
from optimist.spark.commands.dml.target import Target
from optimist.spark.conditions.join_reading import JoinKey, JoinReading
from optimist.spark.rows.stored_rows import stored_rows
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["SourceFacts", "facts_of", "repeatable"]

_MAX_VALUES = 64
"""How many values of a key become a list; more become a range."""
_CALENDAR = ("DATE '0001-01-01'", "DATE '9999-12-31'")
"""The days that Python knows."""
_PLACE_IN_PARTITION = (1 << 33) - 1
_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_LISTED = (*_INTEGERS, st.DateType, st.DecimalType)
_RANGED = (*_LISTED, st.FloatType, st.DoubleType)


@contextmanager
def repeatable(source: DataFrame, *more: Column) -> Iterator[DataFrame]:
    """The source with rows that stay the same; they are stored, and freed at the end.

    Even rows of a fixed version of a table are stored: the session's conf and the cluster's cores
    decide how Spark divides them and which damaged files it ignores, and both may change meanwhile.

    Args:
        source: The rows.
        more: Further columns, whose values are stored, too.
    """
    with stored_rows(source.select("*", *more)) as stored:
        if is_connect(source.sparkSession):
            # Columns that are bound to the source find its plan by this number.
            _set_plan_id(stored, _plan_id(source))
        yield stored


def _plan_id(frame: DataFrame) -> int:
    inner: Any = frame
    return int(inner._plan._plan_id)


def _set_plan_id(frame: DataFrame, plan_id: int) -> None:
    """PySpark 4.3 made `_plan_id` a property of another field."""
    inner: Any = frame
    plan = inner._plan
    name = "_root_plan_id" if hasattr(plan, "_root_plan_id") else "_plan_id"
    setattr(plan, name, plan_id)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What one pass over the source has found.

    Attributes:
        num_rows: How many rows it has.
        predicate: True for every row of the table that can match one of them.
    """

    num_rows: int
    predicate: Predicate


def facts_of(
    source: DataFrame, reading: JoinReading, target: Target, rows: DataFrame
) -> SourceFacts:
    """Count the source's rows and collect the values of its keys, in one pass.

    Args:
        source: The source, materialised.
        reading: What the condition asks to be equal, and of which rows of the source.
        target: The table.
        rows: What `target.columns()` gave, to which the keys' own sides are bound.
    """
    keys, can_match = reading.keys, sf.lit(True)
    if reading.other is not None:
        can_match = sf.coalesce(reading.other, sf.lit(False))
    named = source.select(
        *(sf.when(can_match, key.other).alias(f"k{at}") for at, key in enumerate(keys)),
        can_match.alias("can_match"),
        (sf.monotonically_increasing_id().bitwiseAND(_PLACE_IN_PARTITION)).alias("place"),
    )
    types = [field.dataType for field in named.schema.fields[: len(keys)]]
    known = {at: kind for at, kind in enumerate(types) if _is_ranged(kind)}
    facts = [column for at, kind in known.items() for column in _facts(at, kind)]
    answer = named.agg(
        sf.count(sf.lit(1)).alias("rows"), sf.max("place").alias("place"), *facts
    ).toArrow()
    (found,) = answer.to_pylist()
    is_complete = found["place"] is None or found["place"] < _MAX_VALUES
    parts = [
        _predicate(_Key(keys[at], kind, at, is_complete), found, target, rows)
        for at, kind in known.items()
    ]
    predicate = reduce(and_, parts) if parts else Predicate.TRUE
    return SourceFacts(found["rows"], predicate if found["rows"] else Predicate.FALSE)


def _is_ranged(kind: st.DataType) -> bool:
    # Text with a collation is in another order than the table's statistics.
    return isinstance(kind, _RANGED) or kind == st.StringType()


def _facts(at: int, kind: st.DataType) -> list[Column]:
    value = sf.col(f"k{at}")
    # No text that is not UTF-8 and no year 10000 may come here: Python could not read the answer.
    usable = value.isNotNull()
    if isinstance(kind, st.StringType):
        usable = sf.coalesce(sf.is_valid_utf8(value), sf.lit(True))
    if isinstance(kind, st.DateType):
        usable = value.between(*map(sf.expr, _CALENDAR))
    listed = sf.when(usable & (sf.col("place") < _MAX_VALUES), value)
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
    key: JoinKey
    kind: st.DataType
    at: int
    is_complete: bool

    def literal(self, value: object) -> Column:
        if is_connect(self.key.spark):
            return sf.lit(value)  # the client understands literals, and no casts of them
        if isinstance(value, dt.date):
            return sf.expr(f"DATE '{value.isoformat()}'")  # PySpark makes old dates another day
        return sf.lit(value).cast(self.kind)


def _predicate(key: _Key, found: dict[str, Any], target: Target, rows: DataFrame) -> Predicate:
    """A predicate on the table's side of a key that is true for every row that can match."""
    at, own = key.at, key.key.own
    if not found[f"usable{at}"]:
        return Predicate.TRUE
    low, high = found[f"min{at}"], found[f"max{at}"]
    takes_null = key.key.is_null_safe and found[f"nulls{at}"] > 0
    if low is None:
        return target.predicate(own.isNull(), rows) if takes_null else Predicate.FALSE
    values = found.get(f"values{at}", ())
    if key.is_complete and 0 < len(values) <= _MAX_VALUES:
        wanted = own.isin([key.literal(value) for value in sorted(values)])
    else:
        wanted = (own >= key.literal(low)) & (own <= key.literal(high))
    return target.predicate(wanted | own.isNull() if takes_null else wanted, rows)
