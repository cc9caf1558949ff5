"""The columns that a MERGE compares, and which rows are equal in them (spec 10.15).

Only the key columns are joined, in a form in which equal values have equal bytes: NaN is one value,
-0.0 is 0.0, and for `<=>` null is a value. So it does not matter what else the rows hold.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.column_shape import value_at
from optimist.core.data.row_numbers import row_numbers
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.merge.scope import Scope
from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.resolution import ResolvedColumn
from optimist.core.predicates.text import quote_path
from optimist.core.predicates.tree import Column, Comparison, In, IsNull, Literal, NullSafeEqual
from optimist.core.requests.arguments import at_least_one, ensure_text
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType

__all__ = ["JoinKey", "SourceKeys", "join_key", "join_keys", "target_predicate"]

_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
_UNORDERED = ("boolean", "binary", *_FLOATS)
_RANGES = 64
"""So many values, or ranges of them, tell which files can hold matching rows."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column of the table and one of the source that must be equal.

    Attributes:
        own: The table's column.
        other: The source's column.
        data_type: The type in which they are compared.
        is_null_safe: Whether null equals null.
    """

    own: Path
    other: Path
    data_type: DataType
    is_null_safe: bool = False


def join_keys(on: str | Sequence[str], scope: Scope) -> tuple[tuple[JoinKey, ...], str]:
    """The keys that a condition asks for, and the condition as SQL.

    Args:
        on: Names of columns that both sides have, or SQL text: equalities, joined by AND.
        scope: The table's side, then the source's.

    Raises:
        UsageError: It is anything else (kind `OPTIMIST_NEEDS_SPARK`), or names no such column.
    """
    own, other = scope.sides
    if not isinstance(on, str):
        for name in at_least_one(on, "predicate"):
            ensure_text(name, "predicate")
        pairs = [(quote_path((own, name)), quote_path((other, name))) for name in on]
        on = " AND ".join(f"{one} = {two}" for one, two in pairs)
    parts = Predicate.parse(on).conjuncts()
    return tuple(_key(part, scope, on) for part in parts), on


def _key(part: Predicate, scope: Scope, text: str) -> JoinKey:
    key = None
    if isinstance(part, NullSafeEqual) or (isinstance(part, Comparison) and part.op == "="):
        key = _key_of(part, scope)
    if key is None:
        raise UsageError(
            f"The part {quoted(part)} of the condition {quoted(text)} is not an equality of a "
            "column of the table and a column of the source that can be compared without Spark. "
            f"{RUN_WITH_SPARK}",
            kind="OPTIMIST_NEEDS_SPARK",
            part=str(part),
        )
    return key


def _key_of(part: Comparison | NullSafeEqual, scope: Scope) -> JoinKey | None:
    if not isinstance(part.right, Column):
        return None
    places = dict([scope.place(part.left.path), scope.place(part.right.path)])
    own, other = (places.get(alias) for alias in scope.sides)
    if own is None or other is None:
        return None
    return join_key(own, other, is_null_safe=isinstance(part, NullSafeEqual))


def join_key(
    own: ResolvedColumn, other: ResolvedColumn, *, is_null_safe: bool = False
) -> JoinKey | None:
    """The key that asks two columns to be equal; None if only Spark knows whether they are."""
    data_type = _common(own.data_type, other.data_type)
    if data_type is None or not (own.has_plain_order and other.has_plain_order):
        return None
    return JoinKey(own.path, other.path, data_type, is_null_safe)


def _common(one: DataType, other: DataType) -> DataType | None:
    """The type in which Spark compares the two, if all values of both are exact in it."""
    names = {str(one), str(other)}
    if names <= set(_INTEGERS):
        return PrimitiveType("long")
    if names <= set(_FLOATS):
        return PrimitiveType("double")
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        return DecimalType(whole + scale, scale) if whole + scale <= 38 else None
    is_plain = isinstance(one, PrimitiveType) and one.name not in ("void", "variant")
    return one if one == other and is_plain else None


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The keys of the source's rows, brought once into the form in which they are joined.

    Attributes:
        keys: What must be equal.
        rows: The keys, and as `other` the numbers of the rows that have them.
        is_unique: Whether there is one key, and no value of it twice.
    """

    keys: tuple[JoinKey, ...]
    rows: pa.Table
    is_unique: bool

    @classmethod
    def of(cls, source: pa.Table, keys: tuple[JoinKey, ...]) -> SourceKeys:
        """The keys of a source."""
        rows = _encoded(source, [(key.other, key) for key in keys], "other")
        is_one = rows.column_names == ["other", "key0"]
        return cls(keys, rows, is_one and len(pc.unique(rows["key0"])) == rows.num_rows)

    def matching(self, own: pa.Table) -> tuple[pa.Array, pa.Array]:
        """The pairs of rows that match, as numbers of rows of the table and of the source."""
        left = _encoded(own, [(key.own, key) for key in self.keys], "own")
        first, numbers = _one_array(self.rows["key0"]), _one_array(self.rows["other"])
        if self.is_unique:
            place = _one_array(pc.index_in(left["key0"], value_set=first))
            return _one_array(left["own"].filter(pc.is_valid(place))), numbers.take(
                place.drop_null()
            )
        # Few rows of a file match, and to join them alone takes a fraction of the time.
        left = left.filter(pc.is_in(left["key0"], value_set=first))
        names = [name for name in left.column_names if name != "own"]
        pairs = left.join(self.rows, names, join_type="inner", use_threads=False)
        return _one_array(pairs["own"]), _one_array(pairs["other"])


def _encoded(rows: pa.Table, columns: Sequence[tuple[Path, JoinKey]], number: str) -> pa.Table:
    """The key columns in joinable form, and the numbers of the rows; no row that can't match."""
    encoded: dict[str, Any] = {number: row_numbers(rows.num_rows)}
    for at, (path, key) in enumerate(columns):
        values = _joinable(value_at(rows, path), key.data_type)
        if key.is_null_safe:
            encoded[f"null{at}"] = pc.is_null(values)
            values = pc.fill_null(values, _some_value(values.type))
        encoded[f"key{at}"] = values
    table = pa.table(encoded)
    return table.drop_null() if any(column.null_count for column in table.columns) else table


def _joinable(values: Any, data_type: DataType) -> pa.Array:
    """The values in a form in which two are equal where Spark compares them as equal."""
    plain = _one_array(values.cast(to_arrow_type(data_type)))
    if str(data_type) not in _FLOATS:
        return plain
    numbers = pc.add(plain, 0.0)  # -0.0 becomes 0.0
    numbers = pc.if_else(pc.is_nan(numbers), math.nan, numbers)
    return numbers.view(pa.int64())


def _some_value(arrow_type: pa.DataType) -> pa.Scalar:
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        return pa.scalar(b"").cast(arrow_type)
    if pa.types.is_decimal(arrow_type):
        return pa.scalar(Decimal(0), arrow_type)
    number = pa.int32() if pa.types.is_date(arrow_type) else pa.int64()
    return pa.scalar(0, number).cast(arrow_type)


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def target_predicate(source: pa.Table, keys: Sequence[JoinKey]) -> Predicate:
    """A predicate that is true for every row of the table that can match the source."""
    if not source.num_rows:
        return Predicate.FALSE
    parts = [part for key in keys if (part := _wanted(source, key)) is not None]
    return reduce(and_, parts) if parts else Predicate.TRUE


def _wanted(source: pa.Table, key: JoinKey) -> Predicate | None:
    values = value_at(source, key.other)
    column = Column(key.own)
    is_null = IsNull(column) if key.is_null_safe and values.null_count else None
    if values.null_count == len(values):
        return Predicate.FALSE if is_null is None else is_null
    if str(key.data_type) in _UNORDERED:
        return None
    ordered = pc.unique(values.drop_null()).sort()
    try:
        literals = [_literal(value) for value in _bounds(ordered)]
    except ValueError:  # no text, or no time that Python knows
        return None
    lows, highs = literals[::2], literals[1::2]
    if len(ordered) <= _RANGES:
        wanted: Predicate = In(column, tuple(lows))
    else:
        pairs = zip(lows, highs, strict=True)
        wanted = reduce(or_, (_between(column, low, high) for low, high in pairs))
    return wanted if is_null is None else wanted | is_null


def _literal(value: object) -> Literal:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return Literal(value, "timestamp_ntz")
    return literal(value)


def _between(column: Column, low: Literal, high: Literal) -> Predicate:
    return Comparison(">=", column, low) & Comparison("<=", column, high)


def _bounds(ordered: pa.Array) -> Iterator[object]:
    """The least and the greatest value of each of some runs of the values, one after the other."""
    size = -(-len(ordered) // _RANGES)
    for start in range(0, len(ordered), size):
        yield ordered[start].as_py()
        yield ordered[min(start + size, len(ordered)) - 1].as_py()
