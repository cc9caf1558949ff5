"""Join keys of a MERGE on Arrow: which columns are compared, and which rows match (spec 10.15).

Only the key columns are joined, encoded so that equal values have equal bytes: NaN is one value,
-0.0 is 0.0, and for `<=>` null is a value. So the other columns can have any type.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.merge.resolved import JoinKey
from optimist.core.data.column_shape import value_at
from optimist.core.data.row_numbers import row_numbers
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.merge.scope import Sides
from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.text import quote_path
from optimist.core.predicates.tree import Column, Comparison, In, IsNull, Literal, NullSafeEqual
from optimist.core.requests.arguments import at_least_one, ensure_text
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType

__all__ = ["ColumnKey", "SourceKeys", "column_key", "join_keys", "target_predicate"]

_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
_UNORDERED = ("boolean", "binary", *_FLOATS)
_RANGES = 64
"""At most so many values, or ranges of values, tell which files can hold matching rows."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnKey(JoinKey[Path]):
    """A column of the table and a column of the source that must be equal.

    Attributes:
        data_type: The type in which they are compared.
    """

    data_type: DataType = field(kw_only=True)


def join_keys(on: str | Sequence[str], sides: Sides) -> tuple[tuple[ColumnKey, ...], str]:
    """Return the keys that a condition asks for, and the condition as SQL.

    Args:
        on: Names of columns that both sides have, or SQL text: equalities, joined by AND.
        sides: The columns of both sides.

    Raises:
        UsageError: It is anything else (kind `OPTIMIST_NEEDS_SPARK`), or names no such column.
    """
    if not isinstance(on, str):
        for name in at_least_one(on, "predicate"):
            ensure_text(name, "predicate")
        aliases = (sides.target_alias, sides.source_alias)
        pairs = [[quote_path((alias, name)) for alias in aliases] for name in on]
        on = " AND ".join(" = ".join(pair) for pair in pairs)
    parts = Predicate.parse(on).conjuncts()
    return tuple(_key_of(part, sides, on) for part in parts), on


def _key_of(part: Predicate, sides: Sides, text: str) -> ColumnKey:
    key = None
    is_equality = isinstance(part, Comparison) and part.op == "="
    if isinstance(part, (Comparison, NullSafeEqual)) and isinstance(part.right, Column):
        paths = (part.left.path, part.right.path)
        if is_equality or isinstance(part, NullSafeEqual):
            key = column_key(paths, sides, is_null_safe=not is_equality)
    if key is None:
        raise UsageError(
            f"The part {quoted(part)} of the condition {quoted(text)} is not an equality of a "
            "column of the table and a column of the source that can be compared without Spark. "
            f"{RUN_WITH_SPARK}",
            kind="OPTIMIST_NEEDS_SPARK",
            part=str(part),
        )
    return key


def column_key(paths: Sequence[Path], sides: Sides, *, is_null_safe: bool) -> ColumnKey | None:
    """Return the key for two columns, or None if only Spark can compare them.

    Args:
        paths: The columns, as clauses for matches name them.
        sides: The columns of both sides.
        is_null_safe: Whether null equals null.
    """
    found = dict(map(sides.scopes["MATCHED"].find, paths))
    if len(found) != 2:
        return None
    target, source = found[sides.target_alias], found[sides.source_alias]
    data_type = _common_type(target.data_type, source.data_type)
    if data_type is None or not (target.has_plain_order and source.has_plain_order):
        return None
    return ColumnKey(target.path, source.path, is_null_safe, data_type=data_type)


def _common_type(target: DataType, source: DataType) -> DataType | None:
    """Return the type in which Spark compares two types, or None if it is not exact for both."""
    names = {str(target), str(source)}
    if names <= set(_INTEGERS):
        return PrimitiveType("long")
    if names <= set(_FLOATS):
        return PrimitiveType("double")
    if isinstance(target, DecimalType) and isinstance(source, DecimalType):
        scale = max(target.scale, source.scale)
        whole = max(target.precision - target.scale, source.precision - source.scale)
        return DecimalType(whole + scale, scale) if whole + scale <= 38 else None
    is_plain = isinstance(target, PrimitiveType) and target.name not in ("void", "variant")
    return target if target == source and is_plain else None


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The keys of the source's rows, brought once into the form in which they are joined.

    Attributes:
        keys: What must be equal.
        rows: The values of the keys, and the row numbers as the column `source`.
        is_unique: Whether there is one key, and each value of it stands in one row.
    """

    keys: tuple[ColumnKey, ...]
    rows: pa.Table
    is_unique: bool

    @classmethod
    def of(cls, source: pa.Table, keys: tuple[ColumnKey, ...]) -> SourceKeys:
        """Encode the keys of a source."""
        rows = _encode_keys(source, [(key.source, key) for key in keys], "source")
        is_one = rows.column_names == ["source", "key0"]
        return cls(keys, rows, is_one and len(pc.unique(rows["key0"])) == rows.num_rows)

    def matching(self, target: pa.Table) -> tuple[pa.Array, pa.Array]:
        """Return the pairs of matching rows, as row numbers of the table and of the source."""
        left = _encode_keys(target, [(key.target, key) for key in self.keys], "target")
        first, numbers = _one_array(self.rows["key0"]), _one_array(self.rows["source"])
        if self.is_unique:
            found = _one_array(pc.index_in(left["key0"], value_set=first))
            matching = _one_array(left["target"].filter(pc.is_valid(found)))
            return matching, numbers.take(found.drop_null())
        # Few rows of a file match, and to join them alone takes a fraction of the time.
        left = left.filter(pc.is_in(left["key0"], value_set=first))
        names = [name for name in left.column_names if name != "target"]
        pairs = left.join(self.rows, names, join_type="inner", use_threads=False)
        return _one_array(pairs["target"]), _one_array(pairs["source"])


def _encode_keys(
    rows: pa.Table, columns: Sequence[tuple[Path, ColumnKey]], number: str
) -> pa.Table:
    """Return the keys in joinable form and the row numbers, without rows that cannot match.

    Args:
        rows: The rows of one side.
        columns: The columns of this side, each with its key.
        number: The name for the column of the row numbers.
    """
    encoded: dict[str, Any] = {number: row_numbers(rows.num_rows)}
    for at, (path, key) in enumerate(columns):
        values = _joinable(value_at(rows, path), key.data_type)
        if key.is_null_safe:
            encoded[f"null{at}"] = pc.is_null(values)
            values = pc.fill_null(values, _filler(values.type))
        encoded[f"key{at}"] = values
    table = pa.table(encoded)
    return table.drop_null() if any(column.null_count for column in table.columns) else table


def _joinable(values: Any, data_type: DataType) -> pa.Array:
    """Encode the values: two have equal bytes if and only if Spark finds them equal."""
    plain = _one_array(values.cast(to_arrow_type(data_type)))
    if str(data_type) not in _FLOATS:
        return plain
    numbers = pc.add(plain, 0.0)  # -0.0 becomes 0.0
    numbers = pc.if_else(pc.is_nan(numbers), math.nan, numbers)
    return numbers.view(pa.int64())


def _filler(arrow_type: pa.DataType) -> pa.Scalar:
    """Return a value to fill in for null, which the column beside it marks as null."""
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        return pa.scalar(b"").cast(arrow_type)
    if pa.types.is_decimal(arrow_type):
        return pa.scalar(Decimal(0), arrow_type)
    number = pa.int32() if pa.types.is_date(arrow_type) else pa.int64()
    return pa.scalar(0, number).cast(arrow_type)


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def target_predicate(source: pa.Table, keys: Sequence[ColumnKey]) -> Predicate:
    """Return a predicate that is true for every row that can match the source."""
    if not source.num_rows:
        return Predicate.FALSE
    parts = [part for key in keys if (part := _key_predicate(source, key)) is not None]
    return reduce(and_, parts) if parts else Predicate.TRUE


def _key_predicate(source: pa.Table, key: ColumnKey) -> Predicate | None:
    """Return the predicate of one key, or None if it says nothing."""
    values = value_at(source, key.source)
    column = Column(key.target)
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
    """Split sorted values into runs, and yield the least and the greatest value of each run."""
    size = -(-len(ordered) // _RANGES)
    for start in range(0, len(ordered), size):
        yield ordered[start].as_py()
        yield ordered[min(start + size, len(ordered)) - 1].as_py()
