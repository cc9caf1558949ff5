"""deltalake's filters, lists of `(column, operator, value)`, as predicates."""

from __future__ import annotations

import datetime as dt
import operator as operators
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

from optimist.core.data.partition_values import parse_partition_value
from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.argument_types import ensure_text, wrong_type
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.predicates import Predicate, col
from optimist.core.predicates.builder import ColumnBuilder
from optimist.core.predicates.text import quote_path
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.deltalake.dialect import optional_same_meaning

__all__ = ["Filters", "predicate_of"]

_Literal: TypeAlias = tuple[str, str, Any]
Filters: TypeAlias = str | Sequence[_Literal] | Sequence[Sequence[_Literal]]
"""SQL, or tuples joined by AND, or lists of these, joined by OR."""

_COMPARISONS: Mapping[str, Callable[[ColumnBuilder, object], Predicate]] = {
    "=": ColumnBuilder.__eq__,
    "!=": ColumnBuilder.__ne__,
    "<": ColumnBuilder.__lt__,
    "<=": ColumnBuilder.__le__,
    ">": ColumnBuilder.__gt__,
    ">=": ColumnBuilder.__ge__,
}
_OPERATORS = (*_COMPARISONS, "in", "not in")


def predicate_of(filters: Filters | None, schema: StructType) -> str | Predicate | None:
    """Return the predicate that filters mean, or None without any.

    A value is compared by the column's type, also where it is given as text. The empty text stands
    for null, for which `in` is never true; with it in the list, `not in` is true for no row.

    Args:
        filters: SQL with the quotes of deltalake, or tuples.
        schema: The table's columns.

    Raises:
        ValueError: A filter has another form, or a value does not fit its column.
        SchemaError: There is no such column (kind `DELTA_COLUMN_NOT_FOUND`).
    """
    if filters is None or isinstance(filters, str):
        return optional_same_meaning(filters, lambda: schema)
    if not isinstance(filters, Sequence):
        raise wrong_type("filters", filters, "SQL text, or a list of tuples")
    given: list[Any] = list(filters)
    if not given:
        return None
    if all(isinstance(item, tuple) for item in given):
        given = [given]
    elif not all(isinstance(item, list) for item in given):
        raise ValueError(
            "Filters are tuples of column, operator and value, or lists of such tuples, not both."
        )
    groups = [_conjunction(group, schema) for group in given]
    found = groups[0]
    for group in groups[1:]:
        found = found | group
    return found


def _conjunction(group: Sequence[_Literal], schema: StructType) -> Predicate:
    if not group:
        raise ValueError("A list of filters is empty. Give no filter at all to match all files.")
    found = Predicate.TRUE
    for item in group:
        if not isinstance(item, tuple) or len(item) != 3:
            raise ValueError(f"{item!r} is no filter. Give a tuple of column, operator and value.")
        column, operator, value = item
        one = _comparison(_column(column, schema), operator, value)
        found = one if found == Predicate.TRUE else found & one
    return found


def _column(name: str, schema: StructType) -> StructField:
    ensure_text(name, "filters, a column,")
    found = next((item for item in schema if item.name == name), None)
    if found is None:
        raise SchemaError(
            f"The table has no column {quoted(name)}. Its columns are: {listed(schema.names)}.",
            kind="DELTA_COLUMN_NOT_FOUND",
            column=name,
        )
    return found


def _comparison(item: StructField, operator: str, value: Any) -> Predicate:
    column = col(quote_path((item.name,)))
    if operator in ("in", "not in"):
        values = [_value(one, item) for one in _values(value)]
        found = column.isin([each for each in values if each is not None])
        if operator == "in":
            return found
        # NOT IN is true for no row if the list has a null.
        return Predicate.FALSE if None in values else ~found
    if operator not in _COMPARISONS:
        raise ValueError(f"The operator {operator!r} is unknown. Use one of {_OPERATORS}.")
    if isinstance(value, list | tuple | set):
        raise ValueError(f"The operator {operator!r} takes one value, not {value!r}.")  # noqa: TRY004
    wanted = _value(value, item)
    if wanted is not None:
        return _COMPARISONS[operator](column, wanted)
    if operator == "=":
        return column.is_null()
    if operator == "!=":
        return ~column.is_null()
    raise ValueError(f"A null can't be compared by {operator!r}. Use '=' or '!='.")


def _values(given: Any) -> Iterable[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"in and not in take a list of values, not {given!r}.")  # noqa: TRY004
    return given


def _value(given: Any, item: StructField) -> Any:
    """Return a value of the column's type, or None for null."""
    text = _text(given)
    if item.data_type == PrimitiveType("string"):
        return text or None
    try:
        return parse_partition_value(text, item.data_type, column=item.name)
    except TableError:
        raise ValueError(
            f"A filter compares the column {quoted(item.name)} with {quoted(text)}, which is no "
            f"{item.data_type}. Nothing was read. Give a value of the column's type."
        ) from None


def _text(given: Any) -> str:
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, str):
        return given
    if isinstance(given, dt.datetime):
        return given.isoformat(sep=" ")
    if isinstance(given, dt.date):
        return given.isoformat()
    if isinstance(given, Decimal):
        return format(given, "f")
    if hasattr(given, "__index__"):
        return str(operators.index(given))
    if isinstance(given, Real):  # those of NumPy, too
        return str(float(given))
    raise ValueError(f"A filter can't have the value {given!r}. Give text, a number or a date.")
