"""Values that a command assigns, computed from Arrow columns exactly as Spark computes them.

| value | computation |
|---|---|
| a Python value but text, or a `pyarrow` scalar | a constant |
| SQL text: a constant, a column, a field of a struct | unchanged |
| `+`, `-`, `*` of integers | in the wider type; an overflow is an error |
| `year`, `month` and `day` of dates | for the years 1 to 9999 |
| `CASE WHEN`, `if`, `coalesce`, `concat` of strings, `CAST` | only for the rows that need it |

Everything else is refused by name: only Spark can compute it exactly.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import wrong_type
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.names import free_names
from optimist.core.expressions.tree import Call, Case, Cast, Expression, Number, Operation
from optimist.core.local.stored_values import (
    INTEGERS,
    NULL,
    Value,
    constant_of,
    integer_of,
    typed_constant,
)
from optimist.core.local.value_building import DatePart, Sign, ValueBuilder, needs_spark
from optimist.core.predicates.builder import ColumnBuilder, literal
from optimist.core.predicates.parsing import (
    column_of,
    literal_of,
    predicate_of,
    type_name_of,
)
from optimist.core.predicates.resolution import column_not_found, is_unknown
from optimist.core.predicates.text import quote_path
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_type
from optimist.core.schema.types import PrimitiveType, StructType, data_type_from_json
from optimist.core.values.unicode_text import ensure_unicode

__all__ = ["parse_assigned", "parse_value"]

_SIGNS: dict[str, Sign] = {"+": "+", "-": "-", "*": "*"}
_DATE_PARTS: dict[str, DatePart] = {
    "year": "year",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
}
_TYPED_INTEGERS = ("byte", "short", "long")


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
        return _Sql(ValueBuilder(given, schema, zone)).value(parse_expression(given))
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


@dataclass(frozen=True, slots=True)
class _Sql:
    """Translates one SQL text, part by part."""

    build: ValueBuilder

    def value(self, node: Expression) -> Value:
        typed = _typed_integer(node)
        if typed is not None:
            return typed
        if isinstance(node, Cast) and type_name_of(node.target) in INTEGERS:
            return self._build_cast(node)  # a constant, too, in its declared type
        constant, column = literal_of(node), column_of(node)
        if constant is not None:
            return constant_of(constant, self.build.zone)
        if column is not None:
            return self.build.column(column.path)
        return self._compute(node)

    def _compute(self, node: Expression) -> Value:
        if isinstance(node, Operation) and node.operator in _SIGNS:
            left, right = self._translate_all(node.operands)
            return self.build.arithmetic(_SIGNS[node.operator], left, right)
        if isinstance(node, Operation) and node.operator == "||":
            return self.build.concat(self._translate_all(node.operands))
        if isinstance(node, Case):
            return self._build_case(node)
        if isinstance(node, Cast):
            return self._build_cast(node)
        if isinstance(node, Call) and node.is_plain and not node.qualifiers:
            return self._call_function(node.name, node.arguments)
        raise self.build.refusal()

    def _call_function(self, name: str, arguments: Sequence[Expression]) -> Value:
        count = len(arguments)
        if name in _DATE_PARTS and count == 1:
            return self.build.date_part(_DATE_PARTS[name], self.value(_date_of(arguments[0])))
        if (name == "coalesce" and count) or (name in ("nvl", "ifnull") and count == 2):
            return self.build.coalesce(self._translate_all(arguments))
        if name == "concat":
            return self.build.concat(self._translate_all(arguments))
        if name == "if" and count == 3:  # condition and two results
            condition = predicate_of(arguments[0], self.build.text)
            return self.build.case([condition], self._translate_all(arguments[1:]))
        raise self.build.refusal()

    def _translate_all(self, nodes: Sequence[Expression]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def _build_case(self, node: Case) -> Value:
        if node.value is not None:
            raise self.build.refusal()
        results = self._translate_all(node.results)
        results.append(NULL if node.default is None else self.value(node.default))
        conditions = [predicate_of(item, self.build.text) for item in node.conditions]
        return self.build.case(conditions, results)

    def _build_cast(self, node: Cast) -> Value:
        name = type_name_of(node.target)
        if name is None or node.is_try:
            raise self.build.refusal()
        return self.build.cast(self.value(node.value), data_type_from_json(name))


def _date_of(node: Expression) -> Expression:
    """Return the argument of `to_date(x)`, which must itself be a date."""
    if isinstance(node, Call) and node.is_plain and node.name == "to_date":
        return node.arguments[0] if len(node.arguments) == 1 else node
    return node


def _typed_integer(node: Expression) -> Value | None:
    """Return the constant of `3L`, `2S` or `4Y`, possibly with signs before it."""
    if isinstance(node, Number) and node.kind in _TYPED_INTEGERS:
        return typed_constant(Literal(int(node.text), "integer"), PrimitiveType(node.kind))
    sign = 1
    while isinstance(node, Operation) and node.operator in ("-x", "+x"):
        sign, node = -sign if node.operator == "-x" else sign, node.operands[0]
    if not isinstance(node, Number) or node.kind not in _TYPED_INTEGERS:
        return None
    return integer_of(sign * int(node.text), node.kind)
