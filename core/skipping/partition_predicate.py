"""The predicate that is true for the rows of one partition (spec 9.4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from functools import reduce
from operator import and_

from optimist.core.data.partition_values import parse_partition_value
from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.tree import Column, Comparison, IsNull, Literal
from optimist.core.schema.types import StructField

__all__ = ["partition_predicate"]


def partition_predicate(fields: Iterable[StructField], texts: Iterable[str | None]) -> Predicate:
    """Return a predicate that is true for rows with these partition values.

    Raises:
        TableError: A text does not fit its type (kind `OPTIMIST_MALFORMED_PARTITION_VALUE`).
    """
    return reduce(and_, map(_value_equals, fields, texts))


def _value_equals(field: StructField, text: str | None) -> Predicate:
    column = Column((field.name,))
    value = parse_partition_value(text, field.data_type, column=field.name)
    if value is None:
        return IsNull(column)
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return Comparison("=", column, Literal(value, "timestamp_ntz"))
    return Comparison("=", column, literal(value))
