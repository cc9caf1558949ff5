"""Filters that Spark pushes to a Python data source, as predicates for skipping files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_
from typing import Any

from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.tree import (
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    NullSafeEqual,
    Predicate,
    StartsWith,
)
from optimist.core.schema.types import StructType
from optimist.spark.pushed_filters import COMPARISONS, plain_literal

__all__ = ["pushed_predicate"]


def pushed_predicate(filters: Iterable[Any], schema: StructType) -> Predicate:
    """Those filters that are understood, conjoined; TRUE of none.

    Spark evaluates all of them again, so leaving one out costs time and never rows.

    Args:
        filters: Values of `pyspark.sql.datasource.Filter`.
        schema: The table's; a filter on a column that it lacks is left out.
    """
    translated = (_predicate(item) for item in filters)
    known = [item for item in translated if item is not None and _is_known(item, schema)]
    return reduce(and_, known) if known else Predicate.TRUE


def _is_known(predicate: Predicate, schema: StructType) -> bool:
    return all(resolve_column(path, schema) is not None for path in predicate.columns())


def _predicate(source: Any) -> Predicate | None:
    name = type(source).__name__
    if name == "Not":
        child = _predicate(source.child)
        return None if child is None else ~child
    if name in COMPARISONS:
        value = _literal(source.value)
        return None if value is None else Comparison(COMPARISONS[name], _column(source), value)
    translate = _TRANSLATIONS.get(name)
    return None if translate is None else translate(source)


def _null_safe(source: Any) -> Predicate | None:
    value = _literal(source.value)
    return None if value is None else NullSafeEqual(_column(source), value)


def _in(source: Any) -> Predicate | None:
    literals = [_literal(value) for value in source.value]
    known = tuple(item for item in literals if item is not None)
    return In(_column(source), known) if known and len(known) == len(literals) else None


def _starts_with(source: Any) -> Predicate | None:
    return StartsWith(_column(source), source.value) if isinstance(source.value, str) else None


_TRANSLATIONS: dict[str, Callable[[Any], Predicate | None]] = {
    "EqualNullSafe": _null_safe,
    "In": _in,
    "IsNull": lambda source: IsNull(_column(source)),
    "IsNotNull": lambda source: ~IsNull(_column(source)),
    "StringStartsWith": _starts_with,
}


def _column(source: Any) -> Column:
    return Column(tuple(source.attribute))


def _literal(value: Any) -> Literal | None:
    """A value as a constant, by its type; None for what is not on the list."""
    if isinstance(value, dt.datetime):
        return Literal(value, "timestamp" if value.tzinfo else "timestamp_ntz")
    return Literal(value, "date") if isinstance(value, dt.date) else plain_literal(value)
