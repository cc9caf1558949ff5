"""A scan of rows as a lazy frame of Polars, by its interface for sources of rows.

Polars passes down the columns that a query uses, its filter, and the number of rows that are
enough. The filter is translated as far as it means the same here. What is not translated only
means that more is read, since Polars' own filter runs on each batch, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from optimist.core.imports import import_by_need
from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.tree import (
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    StartsWith,
)
from optimist.core.schema.types import StructType
from optimist.core.snapshot.frames import frame_library
from optimist.core.snapshot.row_filter import known_predicate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BatchesOf", "lazy_frame", "translate_filter"]

BatchesOf = Callable[[list[str] | None, Predicate, int | None], Iterator[pa.RecordBatch]]
"""Returns the rows of some columns (None for all), of a predicate, and so many of them."""

_COMPARISONS: dict[str, ComparisonOp] = {
    "Eq": "=",
    "NotEq": "<>",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_BOUNDS: dict[str, tuple[ComparisonOp, ComparisonOp]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_UNKNOWN = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The errors of a look at a description that has another form than expected."""
_MOST_TEXT = 200_000
"""The longest description of a filter that is looked at."""


def lazy_frame(schema: pa.Schema, table: StructType, batches: BatchesOf) -> pl.LazyFrame:
    """Return a lazy frame that reads what a query of it needs.

    Args:
        schema: The columns of the frame.
        table: The columns of the table, which a filter may name.
        batches: Reads rows.

    Raises:
        ConfigError: Polars is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """
    polars = frame_library("polars")
    plugins = import_by_need("polars.io.plugins")

    def read(
        columns: list[str] | None, condition: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        # Polars takes the first `most` rows before it filters, so no filter may come before them.
        pushed = Predicate.TRUE
        if condition is not None and most is None:
            pushed = translate_filter(condition, table)
        needed = columns
        if columns is not None and condition is not None:
            needed = list(dict.fromkeys([*columns, *condition.meta.root_names()]))
        for batch in batches(needed, pushed, most):
            frame = polars.from_arrow(batch)
            kept = frame if condition is None else frame.filter(condition)
            yield kept if columns is None else kept.select(columns)

    shape = polars.from_arrow(schema.empty_table()).schema
    frame: pl.LazyFrame = plugins.register_io_source(read, schema=shape, is_pure=True)
    return frame


def translate_filter(condition: pl.Expr, table: StructType) -> Predicate:
    """Return a predicate that is true wherever a filter of Polars is true, TRUE in doubt.

    Polars has no contract for how it describes a filter, so whatever looks unknown counts as TRUE.
    """
    try:
        if len(condition.meta.serialize(format="json")) > _MOST_TEXT:
            return Predicate.TRUE
        found = _Translator(table).translate(condition, is_whole=False)
    except (*_UNKNOWN, RecursionError):
        return Predicate.TRUE
    return Predicate.TRUE if found is None else found


@dataclass(frozen=True, slots=True)
class _Translator:
    table: StructType

    def translate(self, condition: pl.Expr, *, is_whole: bool) -> Predicate | None:
        """Return the predicate of an expression, or None.

        Args:
            condition: The expression.
            is_whole: Whether the answer must mean the same, as below a NOT. Else it may be true for
                more rows.
        """
        (kind, node), *_ = json.loads(condition.meta.serialize(format="json")).items()
        inputs = condition.meta.pop()[::-1]
        if kind == "BinaryExpr" and node["op"] in ("And", "Or"):
            return self._joined(node["op"], inputs, is_whole=is_whole)
        if kind == "BinaryExpr":
            return self._comparison(_COMPARISONS[node["op"]], *inputs)
        if kind != "Function":
            return None
        (group, name), *_ = node["function"].items()
        if (group, name) == ("Boolean", "Not"):
            child = self.translate(inputs[0], is_whole=True)
            return None if child is None else ~child
        return self._function(name, inputs, is_whole=is_whole)

    def _known(self, predicate: Predicate) -> Predicate | None:
        return known_predicate(predicate, self.table)

    def _joined(self, op: str, inputs: list[pl.Expr], *, is_whole: bool) -> Predicate | None:
        left, right = (self._attempt(each, is_whole=is_whole) for each in inputs)
        if left is not None and right is not None:
            return left & right if op == "And" else left | right
        if op == "Or" or is_whole:
            return None
        return right if left is None else left

    def _attempt(self, condition: pl.Expr, *, is_whole: bool) -> Predicate | None:
        try:
            return self.translate(condition, is_whole=is_whole)
        except _UNKNOWN:
            return None

    def _comparison(self, op: ComparisonOp, left: pl.Expr, right: pl.Expr) -> Predicate | None:
        if not right.meta.is_literal():  # a constant on the left, or two columns
            return None
        return self._known(Comparison(op, _column(left), literal(_value(right))))

    def _function(self, name: object, inputs: list[pl.Expr], *, is_whole: bool) -> Predicate | None:
        column = _column(inputs[0])
        if name == "IsNull":
            return self._known(IsNull(column))
        if name == "IsNotNull":
            return self._known(~IsNull(column))
        if name == "StartsWith":
            return self._known(StartsWith(column, _value(inputs[1])))
        if isinstance(name, dict) and "IsBetween" in name:
            low, high = _BOUNDS[name["IsBetween"]["closed"]]
            first = self._comparison(low, *inputs[:2])
            second = self._comparison(high, inputs[0], inputs[2])
            return None if first is None or second is None else first & second
        if isinstance(name, dict) and "IsIn" in name and not name["IsIn"]["nulls_equal"]:
            values = list(_value(inputs[1]))
            if is_whole and (None in values or not values):
                return None
            listed = tuple(literal(value) for value in values if value is not None)
            return self._known(In(column, listed)) if listed else Predicate.FALSE
        return None


def _column(expression: pl.Expr) -> Column:
    if not expression.meta.is_column():
        raise ValueError("not a column")
    return Column((expression.meta.output_name(),))


def _value(expression: pl.Expr) -> Any:
    if not expression.meta.is_literal():
        raise ValueError("not a constant")
    series = frame_library("polars").select(expression).to_series()
    return series[0]
