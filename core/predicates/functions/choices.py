"""Functions that choose one of their arguments; the others are not computed for that row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.common_types import widened, widest
from optimist.core.predicates.functions.comparisons import compared, is_comparable
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    NULL,
    VOID,
    Arguments,
    Array,
    Value,
    columns_of,
    computed,
    one_array,
)
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType

__all__ = ["chosen", "coalesce", "conjunction", "disjunction", "not_", "nullif", "nvl2"]


def chosen(conditions: Sequence[Value], given: Arguments) -> Value | None:
    """Return the result of the first condition that is true, or the last result if none is.

    Args:
        conditions: Booleans.
        given: A result for each condition, and one for all other rows.
    """
    found = _of_one_type(given)
    if found is None or any(item.data_type not in (BOOLEAN, VOID) for item in conditions):
        return None
    data_type, results = found
    arrow_type = to_arrow_type(data_type)

    def compute(rows: pa.Table) -> Array:
        answer: Any = pa.nulls(rows.num_rows, arrow_type)
        is_open = pa.repeat(pa.scalar(True), rows.num_rows)
        for condition, result in zip(conditions, results[:-1], strict=True):
            mask = _mask_of(condition, rows, is_open)
            answer = _put(answer, mask, result.compute(rows.filter(mask)))
            is_open = pc.and_not(is_open, mask)
        return _put(answer, is_open, results[-1].compute(rows.filter(is_open)))

    return Value(data_type, compute, columns_of((*conditions, *results)))


def _mask_of(condition: Value, rows: pa.Table, is_open: pa.Array) -> pa.Array:
    """Return where a condition is true, computed only for rows that are open."""
    found = pc.fill_null(condition.compute(rows.filter(is_open)).cast(pa.bool_()), False)
    return _put(pa.repeat(pa.scalar(False), rows.num_rows), is_open, found)


def _put(values: Any, mask: Any, replacements: Any) -> pa.Array:
    old, mask, new = map(one_array, (values, mask, replacements))
    if not pa.types.is_nested(old.type):
        return pc.replace_with_mask(old, mask, new)
    behind = pc.add(pc.cumulative_sum(mask.cast(pa.int64())), len(old) - 1)
    places = pc.if_else(mask, behind, pa.array(np.arange(len(old))))
    return pa.concat_arrays([old, new.cast(old.type)]).take(places)


def _of_one_type(given: Arguments) -> tuple[DataType, list[Value]] | None:
    """Cast the values to their common type."""
    data_type = widest(given.values)
    if data_type is None:
        return None
    return data_type, list(given.values) if data_type == VOID else widened(given.values, data_type)


def coalesce(given: Arguments) -> Value | None:
    """Return the first value that is not null."""
    found = _of_one_type(given)
    if found is None or not given.values:
        return None
    data_type, values = found

    def compute(rows: pa.Table) -> Array:
        answer = values[0].compute(rows)
        for value in values[1:]:
            is_missing = pc.is_null(answer)
            answer = _put(answer, is_missing, value.compute(rows.filter(is_missing)))
        return answer

    return Value(data_type, compute, columns_of(values))


def nvl2(given: Arguments) -> Value | None:
    """Return the second value where the first one is not null, and the third one elsewhere."""
    test, *results = given.values
    is_there = computed(BOOLEAN, [test], pc.is_valid)
    return chosen([is_there], Arguments(results, given.text, given.zone))


def nullif(given: Arguments) -> Value | None:
    """Return the first value, or null where both values are equal."""
    first = given.values[0]
    equal = compared("=", given)
    if equal is None or not is_comparable(first.data_type):
        return None
    return chosen([equal], Arguments([NULL, first], given.text, given.zone))


def conjunction(given: Arguments) -> Value | None:
    """Return AND of booleans; where one is false, the ones behind it are not computed."""
    return _joined(given, decided=False)


def disjunction(given: Arguments) -> Value | None:
    """Return OR of booleans; where one is true, the ones behind it are not computed."""
    return _joined(given, decided=True)


def _joined(given: Arguments, *, decided: bool) -> Value | None:
    values = list(given.values)
    if any(item not in (BOOLEAN, VOID) for item in given.types):
        return None
    merge = pc.or_kleene if decided else pc.and_kleene

    def compute(rows: pa.Table) -> Array:
        answer: Any = pa.repeat(pa.scalar(not decided), rows.num_rows)
        for value in values:
            is_open = pc.fill_null(pc.not_equal(answer, decided), True)
            found = value.compute(rows.filter(is_open)).cast(pa.bool_())
            whole = _put(pa.repeat(pa.scalar(decided), rows.num_rows), is_open, found)
            answer = merge(answer, whole)
        return answer

    return Value(BOOLEAN, compute, columns_of(values))


def not_(given: Arguments) -> Value | None:
    """Return the opposite of a boolean."""
    if given.types[0] not in (BOOLEAN, VOID):
        return None
    return computed(BOOLEAN, given.values, lambda found: pc.invert(found.cast(pa.bool_())))
