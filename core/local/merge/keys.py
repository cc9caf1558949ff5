"""Join keys of a MERGE on Arrow: which columns are compared, and which rows match (spec 10.15).

Only the key columns are joined, encoded so that equal values have equal bytes: NaN is one value,
-0.0 is 0.0, and for `<=>` null is a value. So the other columns can have any type.

Columns of different types are cast to the type in which Spark compares them in ANSI mode. A text
that is no value of that type is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.merge.resolved import JoinKey
from optimist.core.data.column_shape import value_at
from optimist.core.local.merge.scope import Sides
from optimist.core.predicates.functions.casts import cast_value
from optimist.core.predicates.functions.common_types import common_type, is_number
from optimist.core.predicates.functions.value import DOUBLE, STRING, Arguments, Value
from optimist.core.predicates.text import quote_path
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType

__all__ = ["ColumnKey", "KeyGroups", "Path", "column_key", "exact_common_type"]

_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
"""The decimal types in which Spark compares integers with decimals."""
_OF_TEXTS = ("boolean", "date", "timestamp", "timestamp_ntz")
"""The types of other columns to which Spark casts a text beside them."""
_COERCED = {
    frozenset(("date", "timestamp")): PrimitiveType("timestamp"),
    frozenset(("date", "timestamp_ntz")): PrimitiveType("timestamp_ntz"),
    frozenset(("timestamp", "timestamp_ntz")): PrimitiveType("timestamp"),
}
_NO_ROWS = pa.table({})
_PAIRS = 1 << 20
"""At most so many pairs of rows are in memory at a time."""

Path = tuple[str, ...]
_Cast: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ColumnKey(JoinKey[Path]):
    """A column of the table and a column of the source that must be equal.

    Attributes:
        data_type: The type in which they are compared.
        casts: Cast the values of the table and those of the source to that type.
        keeps_order: Whether the table's column sorts as its values of that type do.
    """

    data_type: DataType = field(kw_only=True)
    casts: tuple[_Cast, _Cast] = field(kw_only=True, compare=False)
    keeps_order: bool = field(kw_only=True)

    def of_target(self, rows: pa.Table) -> pa.Array:
        """Return the table's values, encoded: two are equal if and only if their bytes are.

        Raises:
            SchemaError: A text is no value of the type (kind `CAST_INVALID_INPUT`).
            UsageError: Only Spark casts a value (kind `OPTIMIST_NEEDS_SPARK`).
        """
        return _encoded(self.casts[0](value_at(rows, self.target)), self.data_type)

    def of_source(self, rows: pa.Table) -> pa.Array:
        """Return the source's values, encoded in the same way."""
        return _encoded(self.compared_source(rows), self.data_type)

    def compared_source(self, rows: pa.Table) -> pa.Array:
        """Return the source's values in the type in which they are compared."""
        return self.casts[1](value_at(rows, self.source))


def column_key(
    paths: Sequence[Path], sides: Sides, *, is_null_safe: bool, casts_texts: bool = False
) -> ColumnKey | None:
    """Return the key for two columns, or None if they are no key: only Spark can compare them.

    Args:
        paths: The columns, as clauses for matches name them.
        sides: The columns of both sides.
        is_null_safe: Whether null equals null.
        casts_texts: Whether values are also cast as Spark does it in ANSI mode.
    """
    found = dict(map(sides.scopes["MATCHED"].find, paths))
    if len(found) != 2:
        return None
    target, source = found[sides.target_alias], found[sides.source_alias]
    if not (target.has_plain_order and source.has_plain_order):
        return None
    data_type = exact_common_type(target.data_type, source.data_type)
    if data_type is None and casts_texts:
        data_type = _coerced_type(target.data_type, source.data_type)
    if data_type is None:
        return None
    named = ((sides.target_alias, target), (sides.source_alias, source))
    casts = [
        _cast_to(data_type, column.data_type, quote_path((alias, *column.path)), sides.zone)
        for alias, column in named
    ]
    keeps_order = target.data_type != STRING or data_type == STRING
    return (
        None
        if casts[0] is None or casts[1] is None
        else ColumnKey(
            target.path,
            source.path,
            is_null_safe,
            data_type=data_type,
            casts=(casts[0], casts[1]),
            keeps_order=keeps_order,
        )
    )


def _cast_to(data_type: DataType, source: DataType, name: str, zone: str) -> _Cast | None:
    """Return the cast of a column, or None if only Spark has it."""
    if exact_common_type(source, data_type) == data_type:
        # Integers beyond 2^53 are rounded to the nearest double, as Java does.
        is_safe, arrow_type = str(data_type) != "double", to_arrow_type(data_type)
        return lambda values: values.cast(arrow_type, safe=is_safe)

    def cast(values: Any) -> Any:
        value = cast_value(Arguments([Value(source, lambda _: values)], name, zone), data_type)
        return None if value is None else value.compute(_NO_ROWS)

    empty = to_arrow_type(source)
    return None if cast(pa.array([], empty)) is None else cast


def exact_common_type(target: DataType, source: DataType) -> DataType | None:
    """Return the type in which Spark compares two types, or None if in doubt.

    It holds every value of both, except that a double may round a whole number.
    """
    found, names = common_type((target, source)), {str(target), str(source)}
    if names & {"void", "variant"}:
        return None
    if str(found) in _INTEGERS:
        return PrimitiveType("long")
    if str(found) in _FLOATS:
        return DOUBLE if names <= set(_FLOATS) or names <= {*_INTEGERS, "double"} else None
    return found if isinstance(found, PrimitiveType | DecimalType) else None


def _coerced_type(target: DataType, source: DataType) -> DataType | None:
    """Return the type to which ANSI mode casts columns of two different types, or None."""
    sides = (target, source)
    names = {str(side) for side in sides}
    if all(map(is_number, sides)):
        return DOUBLE if names & {*_FLOATS} else None
    if STRING not in sides:
        return _COERCED.get(frozenset(names))
    other = source if target == STRING else target
    if is_number(other):
        return PrimitiveType("long") if str(other) in _INTEGERS else DOUBLE
    return other if str(other) in _OF_TEXTS else None


@dataclass(frozen=True, slots=True)
class _Level:
    """The values of one key, and the codes of these values together with those of earlier keys.

    Attributes:
        key: The key.
        values: The values, each once.
        codes: The codes that there are, in order; the place of a code here is its group's number.
    """

    key: ColumnKey
    values: pa.Array
    codes: np.ndarray

    @classmethod
    def of(cls, key: ColumnKey, values: pa.Array, above: np.ndarray) -> _Level:
        """Give numbers to the values of the source, whose rows are in groups by earlier keys."""
        distinct = pc.unique(values)
        level = cls(key, distinct if key.is_null_safe else distinct.drop_null(), above[:0])
        codes = level._combined(values, above)
        return cls(key, level.values, _sorted_distinct(codes[codes >= 0]))

    def groups(self, values: pa.Array, above: np.ndarray) -> np.ndarray:
        """Return the group of each row, -1 for a row that is in none.

        Args:
            values: The values of the key.
            above: The groups of the rows by earlier keys.
        """
        codes = self._combined(values, above)
        if not len(self.codes):
            return np.full_like(codes, -1)
        if self.codes[-1] == len(self.codes) - 1:  # every code up to there is one of them
            return np.where(codes < len(self.codes), codes, -1)
        found = np.searchsorted(self.codes, codes)
        found[found == len(self.codes)] = 0
        return np.where(self.codes[found] == codes, found, -1)

    def _combined(self, values: pa.Array, above: np.ndarray) -> np.ndarray:
        found = pc.index_in(values, value_set=self.values, skip_nulls=not self.key.is_null_safe)
        number = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where((above < 0) | (number < 0), -1, above * len(self.values) + number)


def _sorted_distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the different numbers in order; `np.unique` takes ten times as long by hashes."""
    ordered = np.sort(numbers)
    is_first = np.diff(ordered, prepend=-1) != 0
    found: np.ndarray = ordered[is_first]
    return found


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """Rows of the source in groups of equal keys. Without keys all rows are one group.

    Attributes:
        levels: The keys.
        order: The numbers of the rows, group by group.
        starts: Where each group begins in `order`.
        sizes: How many rows each group has.
    """

    levels: tuple[_Level, ...]
    order: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, source: pa.Table, numbers: np.ndarray, keys: Sequence[ColumnKey]) -> KeyGroups:
        """Group rows of the source.

        Args:
            source: The rows.
            numbers: Their numbers.
            keys: What must be equal.
        """
        groups = np.zeros(len(numbers), np.int64)
        levels = []
        for key in keys:
            values = key.of_source(source)
            levels.append(_Level.of(key, values, groups))
            groups = levels[-1].groups(values, groups)
        order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
        count = len(levels[-1].codes) if levels else min(1, len(order))
        sizes = np.bincount(groups[order], minlength=count)
        return cls(tuple(levels), numbers[order], np.cumsum(sizes) - sizes, sizes)

    def pairs(
        self, target: pa.Table, is_wanted: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the pairs of rows with equal keys, a bounded number at a time.

        Args:
            target: Rows of the table.
            is_wanted: Which of them can match; None for all.

        Yields:
            The indices of the table's rows, and the numbers of the source's.
        """
        if not len(self.sizes):
            return
        groups = np.zeros(target.num_rows, np.int64)
        for level in self.levels:
            groups = level.groups(level.key.of_target(target), groups)
        rows = np.flatnonzero(groups >= 0 if is_wanted is None else (groups >= 0) & is_wanted)
        groups = groups[rows]
        sizes, starts = self.sizes[groups], self.starts[groups]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        for first in range(0, total, _PAIRS):
            places = np.arange(first, min(first + _PAIRS, total))
            hit = np.searchsorted(ends, places, side="right")
            within = places - (ends[hit] - sizes[hit])
            yield rows[hit], self.order[starts[hit] + within]


def _encoded(values: Any, data_type: DataType) -> pa.Array:
    """Encode the values: two have equal bytes if and only if Spark finds them equal."""
    plain = _one_array(values)
    if str(data_type) not in _FLOATS:
        return plain
    numbers = pc.add(plain, 0.0)  # -0.0 becomes 0.0
    numbers = pc.if_else(pc.is_nan(numbers), math.nan, numbers)
    return numbers.view(pa.int64())


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
