"""Values that a command assigns, computed from Arrow columns exactly as Spark computes them.

A value is a Python value, a `pyarrow` scalar, or SQL text, which the table of functions computes
(`core/predicates/functions`). Everything else is refused by name: only Spark computes it exactly.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import wrong_type
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.names import free_names
from optimist.core.local.value_building import ValueBuilder, needs_spark
from optimist.core.predicates.builder import ColumnBuilder, literal
from optimist.core.predicates.functions.value import Value, constant_of
from optimist.core.predicates.resolution import column_not_found, is_unknown
from optimist.core.predicates.text import quote_path
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_type
from optimist.core.schema.types import StructType
from optimist.core.values.unicode_text import ensure_unicode

__all__ = ["parse_assigned", "parse_value"]


def parse_assigned(given: object, schema: StructType, *, zone: str = "UTC") -> Value:
    """Parse the value that a caller assigns by UPDATE or MERGE.

    Args:
        given: As for `parse_value`; a column from `col` means its value in the same row.
        schema: The columns that it may name.
        zone: The time zone for timestamps without one.

    Raises:
        SchemaError: It names an unknown column (kind `DELTA_COLUMN_NOT_FOUND`).
        ArgumentTypeError: It is an expression of pyarrow.
        UsageError: As `parse_value`.
    """
    if isinstance(given, ColumnBuilder):
        return parse_value(quote_path(given.path), schema, zone=zone)
    if isinstance(given, pc.Expression):
        wanted = "SQL text or a Python value for each column, not an expression of pyarrow"
        raise wrong_type("set", given, wanted)
    if isinstance(given, str):
        _ensure_known_names(given, schema)
    return parse_value(given, schema, zone=zone)


def _ensure_known_names(sql: str, schema: StructType) -> None:
    try:
        names = [name.path for name in free_names(parse_expression(sql)) if not name.is_call]
    except (NotSqlError, RecursionError):
        return  # the error for the whole text says more
    for path in names:
        if is_unknown(path, schema):
            raise column_not_found(path, schema, f"The value {quoted(sql)} names it")


def parse_value(given: object, schema: StructType, *, zone: str = "UTC") -> Value:
    """Parse a value that is computed from the columns of its row.

    Args:
        given: SQL text, or another Python value, or a `pyarrow` scalar.
        schema: The columns that it may name.
        zone: The time zone for timestamps without one.

    Raises:
        UsageError: Only Spark can compute it exactly (kind `OPTIMIST_NEEDS_SPARK`), or the value is
            not valid.
    """
    if isinstance(given, pa.Scalar):
        return _value_of_scalar(given)
    if isinstance(given, dt.datetime) and given.tzinfo is None:
        return constant_of(Literal(given, "timestamp_ntz"))
    if not isinstance(given, str):
        return constant_of(literal(given), zone)
    ensure_unicode(given)
    try:
        return ValueBuilder(given, schema, zone).sql(parse_expression(given))
    except NotSqlError as error:
        raise _not_sql(given, error) from None
    except RecursionError:
        raise needs_spark(given) from None


def _not_sql(given: str, error: NotSqlError) -> UsageError:
    return UsageError(
        f"The value {quoted(given)} is not an SQL expression: {shown(error)}. Nothing was written. "
        "Correct the SQL, and put unusual names in back-ticks.",
        kind="PARSE_SYNTAX_ERROR",
        expression=given,
    )


def _value_of_scalar(given: pa.Scalar) -> Value:
    field = pa.field("value", given.type)
    (item,) = from_arrow_schema(pa.schema([field]))
    plain = given.cast(to_arrow_type(item.data_type))
    return Value(item.data_type, lambda rows: pa.repeat(plain, rows.num_rows))
