"""Values that a command assigns, computed from Arrow columns exactly as Spark computes them.

| a value | how it is computed |
|---|---|
| a Python value but text, or a `pyarrow` scalar | a constant |
| SQL text: a constant, a column, a field of a struct | as it is |
| `+`, `-`, `*` of integers | in the wider type; what overflows is an error |
| `year`, `month` and `day` of dates | of the years 1 to 9999 |
| `CASE WHEN`, `if`, `coalesce`, `concat` of texts, `CAST` | only for the rows that take it |

Everything else is refused by name: only Spark knows its value for certain.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from optimist.core.local.stored_values import INTEGERS, NULL, Value, constant_of, integer_of
from optimist.core.local.value_building import DatePart, Sign, ValueBuilder, needs_spark
from optimist.core.predicates.builder import literal
from optimist.core.predicates.parsing import (
    column_of,
    literal_of,
    predicate_of,
    type_name_of,
)
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_type
from optimist.core.schema.types import (
    StructType,
    data_type_from_json,
)
from optimist.core.values.unicode_text import ensure_unicode

__all__ = ["parse_value"]

_SIGNS: dict[type[exp.Expr], Sign] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_DATE_PARTS: dict[type[exp.Expr], DatePart] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
}


def parse_value(
    given: object, schema: StructType, *, zone: str = "UTC", skips_alias: bool = True
) -> Value:
    """The value that a caller assigns.

    Args:
        given: SQL text, or a Python value that is not text, or a `pyarrow` scalar.
        schema: The columns that it may name.
        zone: The time zone in which times without one are read.
        skips_alias: Whether a first name that is no column is taken for the table's alias.

    Raises:
        UsageError: Only Spark knows its value for certain (kind `OPTIMIST_NEEDS_SPARK`), or there
            can be no such value.
    """
    if isinstance(given, pa.Scalar):
        return _of_scalar(given)
    if isinstance(given, dt.datetime) and given.tzinfo is None:
        return constant_of(Literal(given, "timestamp_ntz"))
    if not isinstance(given, str):
        return constant_of(literal(given), zone)
    ensure_unicode(given)
    try:
        build = ValueBuilder(given, schema, zone, skips_alias)
        return _Sql(build).value(sqlglot.parse_one(given, read="spark"))
    except (SqlglotError, RecursionError):
        raise needs_spark(given) from None


def _of_scalar(given: pa.Scalar) -> Value:
    field = pa.field("value", given.type)
    (item,) = from_arrow_schema(pa.schema([field]))
    plain = given.cast(to_arrow_type(item.data_type))
    return Value(item.data_type, lambda rows: pa.repeat(plain, rows.num_rows))


@dataclass(frozen=True, slots=True)
class _Sql:
    """Translates one SQL text, part by part."""

    build: ValueBuilder

    def value(self, node: exp.Expr) -> Value:
        node = node.unnest()
        typed = _typed_integer(node)
        if typed is not None:
            return typed
        if isinstance(node, exp.Cast) and type_name_of(node.args["to"]) in INTEGERS:
            return self._cast(node)  # a constant, too, in its declared type
        constant, column = literal_of(node), column_of(node)
        if constant is not None:
            return constant_of(constant, self.build.zone)
        if column is not None:
            return self.build.column(column.path)
        return self._computed(node)

    def _computed(self, node: exp.Expr) -> Value:
        if type(node) in _SIGNS:
            sides = (self.value(node.this), self.value(node.expression))
            return self.build.arithmetic(_SIGNS[type(node)], *sides)
        if type(node) in _DATE_PARTS:
            inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
            return self.build.date_part(_DATE_PARTS[type(node)], self.value(inner))
        if isinstance(node, (exp.Case, exp.If)):
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            return self.build.coalesce(self._values([node.this, *node.expressions]))
        if isinstance(node, exp.Concat):
            # The parser makes 'it' || 's' of 'it''s', which is one text with a quote to Spark.
            if all(item.is_string for item in node.expressions):
                raise self.build.refusal("is no text that is read alike everywhere")
            return self.build.concat(self._values(node.expressions))
        if isinstance(node, exp.DPipe):
            return self.build.concat(self._values([node.this, node.expression]))
        if isinstance(node, exp.Cast):
            return self._cast(node)
        raise self.build.refusal()

    def _values(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def _case(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Case) and node.this is not None:
            raise self.build.refusal()
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default" if isinstance(node, exp.Case) else "false")
        results = self._values([branch.args["true"] for branch in branches])
        results.append(NULL if default is None else self.value(default))
        return self.build.case([predicate_of(branch.this) for branch in branches], results)

    def _cast(self, node: exp.Cast) -> Value:
        name = type_name_of(node.args["to"])
        # Spark's CAST comes as a TryCast, too; TRY_CAST is the one that is safe.
        if name is None or node.args.get("format") or node.args.get("safe"):
            raise self.build.refusal()
        return self.build.cast(self.value(node.this), data_type_from_json(name))


def _typed_integer(node: exp.Expr) -> Value | None:
    """The constant that `3L`, `2S`, `4Y` or a cast of an integer is, perhaps with a minus."""
    sign = 1
    while isinstance(node, exp.Neg):
        sign, node = -sign, node.this.unnest()
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return None
    name, digits = type_name_of(node.args["to"]), str(node.this.this)
    if name not in INTEGERS or node.this.is_string or not digits.isdecimal():
        return None
    return integer_of(sign * int(digits), name)
