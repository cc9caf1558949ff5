"""Filters that Spark pushes to a Python data source, as predicates for skipping files."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

from optimist.core.predicates import builder
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.translation import Operation, Operator, Translation
from optimist.core.predicates.tree import Column, Literal, Opaque, Predicate
from optimist.core.schema.types import StructType

__all__ = ["pushed_predicate"]


def pushed_predicate(filters: Iterable[Any], schema: StructType) -> Predicate:
    """The conjunction of the filters that are understood; TRUE if there are none.

    Spark evaluates all of them again, so leaving one out costs time and never rows.

    Args:
        filters: Values of `pyspark.sql.datasource.Filter`.
        schema: The table's; a filter on a column that it lacks is left out.
    """
    translated = map(_FILTERS.predicate, filters)
    known = [item for item in translated if item.is_exact and _is_known(item, schema)]
    return reduce(and_, known) if known else Predicate.TRUE


def _is_known(predicate: Predicate, schema: StructType) -> bool:
    return all(resolve_column(path, schema) is not None for path in predicate.columns())


class _Filters(Translation[Any]):
    """Terms are filters, columns, and Python values."""

    __slots__ = ()

    def operation(self, term: Any) -> Operation[Any] | None:
        name = type(term).__name__
        if name == "Not":
            return "NOT", (term.child,)
        operator = _OPERATORS.get(name)
        if operator is None:
            return None
        column = Column(tuple(term.attribute))
        if operator in ("IS NULL", "IS NOT NULL"):
            return operator, (column,)
        return operator, (column, *(term.value if operator == "IN" else (term.value,)))

    def column(self, term: Any) -> Column | None:
        return term if isinstance(term, Column) else None

    def literal(self, term: Any) -> Literal | None:
        if isinstance(term, dt.datetime) and term.tzinfo is None:
            return Literal(term, "timestamp_ntz")
        if not isinstance(term, (bool, int, float, Decimal, str, dt.date)):
            return None
        return builder.literal(term) if _is_ordinary(term) else None

    def opaque(self, term: Any) -> Opaque:
        return Opaque(str(term), frozenset(), deterministic=True)


_FILTERS = _Filters()
_OPERATORS: dict[str, Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "IN",
    "IsNull": "IS NULL",
    "IsNotNull": "IS NOT NULL",
    "StringStartsWith": "STARTS WITH",
    "StringEndsWith": "ENDS WITH",
    "StringContains": "CONTAINS",
}


def _is_ordinary(value: object) -> bool:
    """Whether a value is neither NaN nor infinite."""
    return math.isfinite(value) if isinstance(value, (float, Decimal)) else True
