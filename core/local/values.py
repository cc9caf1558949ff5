"""Values that a command assigns, computed from Arrow columns exactly as Spark computes them.

| a value | how it is computed |
|---|---|
| a Python value but text, or a `pyarrow` scalar | a constant |
| SQL text: a constant, a column, a field of a struct | as it is |
| `+`, `-`, `*` of integers | in the wider type; what overflows is an error |
| `CASE WHEN`, `if`, `coalesce`, `concat` of texts, `CAST` | only for the rows that take it |

Everything else is refused by name: only Spark knows its value for certain.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from optimist.core.errors import UsageError
from optimist.core.foreign_text import quoted
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.stored_values import (
    INTEGERS,
    NULL,
    Value,
    constant_of,
    does_not_fit,
    stored_as,
)
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.parsing import (
    column_of,
    literal_of,
    predicate_of,
    type_name_of,
)
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_type
from optimist.core.schema.types import (
    DataType,
    PrimitiveType,
    StructType,
    data_type_from_json,
)
from optimist.core.snapshot.row_filter import is_exact
from optimist.core.values.unicode_text import ensure_unicode

__all__ = ["parse_value"]

Rows: TypeAlias = pa.Table
_STRING = PrimitiveType("string")
_ARITHMETIC: dict[type[exp.Expr], tuple[str, Callable[[Any, Any], Any]]] = {
    exp.Add: ("+", pc.add_checked),
    exp.Sub: ("-", pc.subtract_checked),
    exp.Mul: ("*", pc.multiply_checked),
}


def parse_value(given: object, schema: StructType, *, zone: str = "UTC") -> Value:
    """The value that a caller assigns.

    Args:
        given: SQL text, or a Python value that is not text, or a `pyarrow` scalar.
        schema: The columns that it may name.
        zone: The time zone in which times without one are read.

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
        return _Sql(given, schema, zone).value(sqlglot.parse_one(given, read="spark"))
    except (SqlglotError, RecursionError):
        _refuse(given)


def _of_scalar(given: pa.Scalar) -> Value:
    field = pa.field("value", given.type)
    (item,) = from_arrow_schema(pa.schema([field]))
    plain = given.cast(to_arrow_type(item.data_type))
    return Value(item.data_type, lambda rows: pa.repeat(plain, rows.num_rows))


def _refuse(sql: str, reason: str = "can be computed row by row only by Spark") -> NoReturn:
    raise UsageError(
        f"The value {quoted(sql)} {reason}. {RUN_WITH_SPARK}",
        kind="OPTIMIST_NEEDS_SPARK",
        value=sql,
    )


@dataclass(frozen=True, slots=True)
class _Sql:
    """Translates one SQL text, part by part."""

    text: str
    schema: StructType
    zone: str

    def value(self, node: exp.Expr) -> Value:
        node = node.unnest()
        if isinstance(node, exp.Cast) and type_name_of(node.args["to"]) in INTEGERS:
            return self._cast(node)  # a constant, too, in its declared type
        constant, column = literal_of(node), column_of(node)
        if constant is not None:
            return constant_of(constant, self.zone)
        if column is not None:
            return self._column(column.path)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if isinstance(node, (exp.Case, exp.If)):
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            return self._coalesce([node.this, *node.expressions])
        if isinstance(node, exp.Concat):
            # The parser makes 'it' || 's' of 'it''s', which is one text with a quote to Spark.
            if all(item.is_string for item in node.expressions):
                _refuse(self.text, "is no text that is read alike everywhere")
            return self._concat(node.expressions)
        if isinstance(node, exp.DPipe):
            return self._concat([node.this, node.expression])
        if isinstance(node, exp.Cast):
            return self._cast(node)
        _refuse(self.text)

    def _column(self, path: tuple[str, ...]) -> Value:
        found = resolve_column(path, self.schema)
        if found is None:
            _refuse(self.text, "names a column that there is not")

        def compute(rows: Rows) -> pa.ChunkedArray:
            values: Any = rows[found.path[0]]
            for name in found.path[1:]:
                values = pc.struct_field(values, [values.type.get_field_index(name)])
            return values

        return Value(found.data_type, compute, frozenset({found.path}))

    def _arithmetic(self, node: exp.Expr) -> Value:
        sign, kernel = _ARITHMETIC[type(node)]
        sides = [self.value(node.this), self.value(node.expression)]
        names = [str(side.data_type) for side in sides]
        if any(name not in INTEGERS for name in names):
            _refuse(self.text)
        data_type = PrimitiveType(max(names, key=INTEGERS.index))
        arrow_type = to_arrow_type(data_type)

        def compute(rows: Rows) -> Any:
            left, right = (side.compute(rows).cast(arrow_type) for side in sides)
            try:
                return kernel(left, right)
            except pa.ArrowInvalid:
                raise does_not_fit(f"{self.text} ({sign})", data_type) from None

        return Value(data_type, compute, sides[0].columns | sides[1].columns)

    def _case(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Case) and node.this is not None:
            _refuse(self.text)
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default" if isinstance(node, exp.Case) else "false")
        results = [self.value(branch.args["true"]) for branch in branches]
        results.append(NULL if default is None else self.value(default))
        conditions = [self._condition(branch.this) for branch in branches]
        data_type, results = self._alike(results)
        columns = _columns(results).union(*(_names(item, self.schema) for item in conditions))

        def compute(rows: Rows) -> Any:
            masks = [_mask(item, rows, self.zone) for item in conditions]
            return _first_taken(rows, masks, results, to_arrow_type(data_type))

        return Value(data_type, compute, columns)

    def _condition(self, node: exp.Expr) -> Predicate:
        predicate = predicate_of(node)
        known = all(resolve_column(path, self.schema) for path in predicate.columns())
        if not known or not is_exact(predicate, self.schema, zone=self.zone):
            _refuse(self.text)
        return predicate

    def _coalesce(self, nodes: Sequence[exp.Expr]) -> Value:
        data_type, values = self._alike([self.value(node) for node in nodes])

        def compute(rows: Rows) -> Any:
            found = values[0].compute(rows)
            for value in values[1:]:
                missing = pc.is_null(found)
                found = _replaced(found, missing, value.compute(rows.filter(missing)))
            return found

        return Value(data_type, compute, _columns(values))

    def _concat(self, nodes: Sequence[exp.Expr]) -> Value:
        values = [self.value(node) for node in nodes]
        if any(value.data_type != _STRING for value in values) or not values:
            _refuse(self.text)

        def compute(rows: Rows) -> Any:
            parts = [value.compute(rows) for value in values]
            return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")

        return Value(_STRING, compute, _columns(values))

    def _cast(self, node: exp.Cast) -> Value:
        name = type_name_of(node.args["to"])
        # Spark's CAST comes as a TryCast, too; TRY_CAST is the one that is safe.
        if name is None or node.args.get("format") or node.args.get("safe"):
            _refuse(self.text)
        return stored_as(self.value(node.this), data_type_from_json(name), self.text)

    def _alike(self, values: Sequence[Value]) -> tuple[DataType, list[Value]]:
        """The values in one type: the one that they have, or the widest of integers."""
        types = {value.data_type for value in values if value is not NULL}
        if not types:
            return NULL.data_type, list(values)
        names = {str(item) for item in types}
        if len(types) > 1 and not names <= set(INTEGERS):
            _refuse(self.text)
        wanted = next(iter(types))
        if len(types) > 1:
            wanted = PrimitiveType(max(names, key=INTEGERS.index))
        if pa.types.is_nested(to_arrow_type(wanted)):
            _refuse(self.text)
        return wanted, [stored_as(value, wanted, self.text) for value in values]


def _columns(values: Sequence[Value]) -> frozenset[tuple[str, ...]]:
    return frozenset().union(*(value.columns for value in values))


def _names(predicate: Predicate, schema: StructType) -> frozenset[tuple[str, ...]]:
    found = (resolve_column(path, schema) for path in predicate.columns())
    return frozenset(column.path for column in found if column is not None)


def _mask(predicate: Predicate, rows: Rows, zone: str) -> Any:
    return pc.fill_null(evaluate(predicate, rows, zone=zone), False)


def _first_taken(
    rows: Rows, masks: Sequence[Any], results: Sequence[Value], arrow_type: pa.DataType
) -> Any:
    """For each row the result of the first mask that is true; of the last one, if none is."""
    found = pa.chunked_array([pa.nulls(rows.num_rows, arrow_type)])
    is_open = pa.repeat(pa.scalar(True), rows.num_rows)
    for mask, result in zip([*masks, is_open], results, strict=True):
        taken = pc.and_(is_open, mask)
        found = _replaced(found, taken, result.compute(rows.filter(taken)))
        is_open = pc.and_not(is_open, taken)
    return found


def _replaced(values: Any, mask: Any, replacements: Any) -> Any:
    whole, flags, others = map(_in_one_piece, (values, mask, replacements))
    return pa.chunked_array([pc.replace_with_mask(whole, flags, others)])


def _in_one_piece(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
