"""The constants that can be a column's default without Spark: those that fit its type exactly."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import SqlType, parse_expression
from optimist.core.expressions.tree import Call, Cast, Constant, Expression, Name
from optimist.core.predicates.coercion import INTEGER_DIGITS
from optimist.core.predicates.constants import cast_literal
from optimist.core.predicates.parsing import literal_of, type_name_of
from optimist.core.predicates.tree import Literal
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from optimist.core.values.decimals import exactly_at_scale, is_in_range

__all__ = ["ensure_value_of", "invalid_default"]

_WIDER = ("byte", "short", "integer", "long", "float", "double")
"""Types of numbers, each of which can hold the values of those before it."""
_TIMES = ("timestamp", "timestamp_ntz")
_CLOCKS = {
    "current_date": ("date", "timestamp", "timestamp_ntz", "string"),
    "curdate": ("date", "timestamp", "timestamp_ntz", "string"),
    "current_timestamp": ("timestamp", "string"),
    "now": ("timestamp", "string"),
    "localtimestamp": ("timestamp_ntz", "string"),
}


def ensure_value_of(column: str, sql: str, item: StructField) -> None:
    """Refuse a default that is not a value of the column, or that only Spark can evaluate.

    Args:
        column: The column's name, for the error.
        sql: A constant expression.
        item: The column's field.

    Raises:
        SchemaError: It is not a value of the column, or only Spark can evaluate it (kind
            `INVALID_DEFAULT_VALUE`).
    """
    parsed = parse_expression(sql)
    clock = _clock_function(parsed)
    if clock is not None:
        if str(item.data_type) not in _CLOCKS[clock]:
            raise invalid_default(column, sql, f"it is not a value of type {item.data_type}")
        return
    literal = literal_of(_without_casts_of_null(parsed))
    if isinstance(parsed, Cast) and literal is not None and literal.value is None:
        _ensure_null_of(column, sql, parsed.target, item.data_type)
    if literal is None:
        raise invalid_default(column, sql, "only Spark can tell its value, so set it there")
    if literal.value is not None and not _fits_type(literal, item.data_type):
        raise invalid_default(column, sql, f"it does not become {item.data_type} exactly")


def invalid_default(column: str, sql: str, reason: str) -> SchemaError:
    """Return the error for a default that a column can't have.

    Args:
        column: The column's name.
        sql: The default.
        reason: The reason, as the rest of the sentence.
    """
    return SchemaError(
        f"The column {shown(column)} can't have the default value {quoted(sql)}: {shown(reason)}. "
        "Nothing was written. Use a constant, such as 0, 'none' or current_date(), or no "
        "default.",
        kind="INVALID_DEFAULT_VALUE",
        column=column,
        expression=sql,
    )


def _clock_function(parsed: Expression) -> str | None:
    """Return the name of the current-time function that an expression calls, if it calls one."""
    if isinstance(parsed, Name) and parsed.is_call:
        return parsed.path[0].lower() if parsed.path[0].lower() in _CLOCKS else None
    is_call = isinstance(parsed, Call) and not parsed.arguments and not parsed.qualifiers
    return parsed.name if is_call and isinstance(parsed, Call) and parsed.name in _CLOCKS else None


def _without_casts_of_null(parsed: Expression) -> Expression:
    """Return the null inside `CAST(NULL AS type)`, or the expression itself."""
    inner = parsed
    while isinstance(inner, Cast):
        inner = inner.value
    return inner if isinstance(inner, Constant) and inner.value is None else parsed


def _ensure_null_of(column: str, sql: str, target: SqlType, data_type: DataType) -> None:
    """Refuse a typed null whose type does not fit the column's."""
    given, wanted = type_name_of(target), str(data_type)
    if given is None:  # a nested type, or a variant
        is_one = isinstance(data_type, ArrayType | MapType | StructType) or wanted == "variant"
    elif given in _WIDER and wanted in _WIDER:
        is_one = _WIDER.index(given) <= _WIDER.index(wanted)
    elif isinstance(data_type, DecimalType):
        is_one = given == wanted or (
            given in INTEGER_DIGITS
            and INTEGER_DIGITS[given][1] <= data_type.precision - data_type.scale
        )
    else:
        is_one = wanted in (given, "string") or (given == "date" and wanted in _TIMES)
    if not is_one:
        raise invalid_default(column, sql, f"it is not a value of type {wanted}")


def _fits_type(literal: Literal, data_type: DataType) -> bool:
    if isinstance(data_type, DecimalType):
        found = cast_literal(literal, "decimal")
        return found is not None and _fits_decimal(found.value, data_type)
    if not isinstance(data_type, PrimitiveType) or data_type.name == "void":
        return False
    if data_type.name == "string":
        return literal.kind in ("string", "integer", "boolean")
    if "boolean" in (data_type.name, literal.kind):
        return data_type.name == literal.kind
    if literal.kind in ("date", "timestamp", "timestamp_ntz"):
        return literal.kind == data_type.name
    return cast_literal(literal, data_type.name) is not None


def _fits_decimal(number: object, data_type: DecimalType) -> bool:
    if not isinstance(number, Decimal):
        return False
    try:
        fitted = exactly_at_scale(number, data_type.scale)
    except InvalidOperation:
        return False
    return is_in_range(fitted, data_type.precision, data_type.scale)
