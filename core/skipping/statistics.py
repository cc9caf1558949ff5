"""The statistics of a files table as typed Arrow columns (spec 9.1).

The reader reads the texts of all files as one stream of JSON lines. It reads texts that this can't
handle again, one by one. Damaged parts count as absent, and absent statistics never skip a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from optimist.core.data.partition_values import arrow_type_of
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.schema.stats_property import has_bounds
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, StructType
from optimist.core.skipping.wide_bounds import credible_decimals, widened
from optimist.core.values.decimals import exactly_at_scale, is_in_range
from optimist.core.values.foreign_json import parse_exact_json

__all__ = ["ColumnStatistics", "FileStatistics", "stats_table"]

ColumnPath: TypeAlias = tuple[str, ...]

_BATCH_ROWS = 65_536
_SMALLEST_BATCH = 512
_MIN_BLOCK_BYTES = 1 << 22
_WORTH_THREADS = 3 * _MIN_BLOCK_BYTES
_LONG_DIGITS = 19
_DOUBLE_DIGITS = 15
_DECIMAL_DIGITS = 38
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_TEXT_TYPES = frozenset({"date", "timestamp", "timestamp_ntz", "string"})
_DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"
_WALL_CLOCK_PATTERN = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"
_INSTANT_PATTERN = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})$"


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column's statistics, one value per file, null where a file has none.

    `low` and `high` have the column's Arrow type, and are as wide as their texts may mean. They are
    None for a type without bounds.
    """

    column: ResolvedColumn
    low: pa.ChunkedArray | None
    high: pa.ChunkedArray | None
    null_count: pa.ChunkedArray


class FileStatistics:
    """The statistics of one files table, parsed on first use and kept.

    Keep it together with the table, for example in a snapshot, so that the second scan parses
    nothing. Threads may share it. At worst, two of them parse the same column.
    """

    def __init__(self, files: pa.Table, schema: StructType) -> None:
        self.files = files
        self.schema = schema
        self._num_records: pa.ChunkedArray | None = None
        self._tight_bounds: pa.ChunkedArray | None = None
        self._columns: dict[ColumnPath, ColumnStatistics] = {}

    @property
    def num_records(self) -> pa.ChunkedArray:
        """`numRecords` of each file: physical rows, deleted ones included; null where unknown."""
        return self._parse([]) if self._num_records is None else self._num_records

    @property
    def has_tight_bounds(self) -> pa.ChunkedArray:
        """Whether each file's bounds are values of its rows, as far as its writer says."""
        if self._tight_bounds is None:
            self._parse([])
        return pc.fill_null(self._tight_bounds, True)

    def is_loaded(self, paths: Iterable[ColumnPath]) -> bool:
        """Return whether the columns of these paths (in the schema's spelling) are parsed."""
        return all(path in self._columns for path in paths)

    def load(self, paths: Iterable[ColumnPath]) -> None:
        """Parse the columns of these paths that are not parsed yet, in one pass."""
        found = [_resolve_leaf(path, self.schema) for path in dict.fromkeys(paths)]
        missing = [item for item in found if item is not None and item.path not in self._columns]
        if missing:
            self._parse(missing)

    def column(self, path: ColumnPath) -> ColumnStatistics | None:
        """Return a leaf column's statistics, by its logical path in any case, or None."""
        resolved = _resolve_leaf(path, self.schema)
        if resolved is None:
            return None
        self.load([resolved.path])
        return self._columns[resolved.path]

    def _parse(self, columns: Sequence[ResolvedColumn]) -> pa.ChunkedArray:
        table = _parse_columns(self.files.column("stats"), columns)
        for position, column in enumerate(columns):
            is_bounded = has_bounds(column.data_type)
            self._columns[column.path] = ColumnStatistics(
                column,
                table.column(f"min.{position}") if is_bounded else None,
                table.column(f"max.{position}") if is_bounded else None,
                table.column(f"nullCount.{position}"),
            )
        self._num_records = table.column("numRecords")
        self._tight_bounds = table.column("tightBounds")
        return self._num_records


def stats_table(files: pa.Table, paths: Sequence[ColumnPath], schema: StructType) -> pa.Table:
    """Return the statistics of the given columns as one table, one row per file.

    Columns: `numRecords` (int64), and `tightBounds` (bool: null if absent, which means true; false
    if a bound is wider than written). For the i-th path: `min.i` and `max.i` (of the column's type,
    absent for types without bounds) and `nullCount.i` (int64). Paths are logical, in any case.

    Raises:
        KeyError: The schema has no such leaf column.
    """
    columns = []
    for path in paths:
        resolved = _resolve_leaf(path, schema)
        if resolved is None:
            raise KeyError(path)
        columns.append(resolved)
    return _parse_columns(files.column("stats"), columns)


def _resolve_leaf(path: ColumnPath, schema: StructType) -> ResolvedColumn | None:
    column = resolve_column(path, schema)
    is_struct = column is not None and isinstance(column.data_type, StructType)
    return None if is_struct else column


def _parse_columns(texts: pa.ChunkedArray, columns: Sequence[ResolvedColumn]) -> pa.Table:
    reader = _Reader(columns)
    batches = [
        chunk.slice(start, _BATCH_ROWS)
        for chunk in texts.chunks
        for start in range(0, len(chunk), _BATCH_ROWS)
    ]
    tables = [reader.read(batch) for batch in batches]
    table = pa.concat_tables(tables) if tables else reader.schema.empty_table()
    for position, column in enumerate(columns):
        if has_bounds(column.data_type):
            table = _widen_bounds(table, column, position)
    return table


def _widen_bounds(table: pa.Table, column: ResolvedColumn, position: int) -> pa.Table:
    names = (f"min.{position}", f"max.{position}")
    low, high = (table.column(name) for name in names)
    wide_low, wide_high = widened(low, high, column)
    for name, values in zip(names, (wide_low, wide_high), strict=True):
        table = _replace_column(table, name, values)
    if not column.was_float:
        return table
    # Only a bound that equals some row's value may count as the least or the greatest value.
    is_met = pc.and_kleene(pc.equal(low, wide_low), pc.equal(high, wide_high))
    tight = pc.if_else(pc.fill_null(is_met, True), table.column("tightBounds"), False)
    return _replace_column(table, "tightBounds", tight)


def _replace_column(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


@dataclass(frozen=True, slots=True)
class _Item:
    """One wanted value: its path in the JSON, its type there, and its final type."""

    name: str
    path: ColumnPath
    json_type: pa.DataType
    data_type: DataType
    is_count: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        return arrow_type_of(self.data_type)


_NUM_RECORDS = _Item("numRecords", ("numRecords",), pa.int64(), PrimitiveType("long"), True)
_TIGHT_BOUNDS = _Item("tightBounds", ("tightBounds",), pa.bool_(), PrimitiveType("boolean"))


class _Reader:
    """A reader of batches of statistics texts into tables of one schema."""

    def __init__(self, columns: Sequence[ResolvedColumn]) -> None:
        self.items = (_NUM_RECORDS, _TIGHT_BOUNDS, *_items_of_columns(columns))
        self.schema = pa.schema([(item.name, item.arrow_type) for item in self.items])
        self._json_schema = pa.schema(
            [("s", _nested_type([(i.path, i.json_type) for i in self.items]))]
        )
        self._has_floats = any(pa.types.is_floating(item.json_type) for item in self.items)

    def read(self, texts: pa.Array) -> pa.Table:
        """Return one row per text, in order, for any texts."""
        texts = texts.cast(pa.string()) if texts.type != pa.string() else texts
        table = self._read_fast(texts)
        if table is not None:
            return table
        odd = self._needs_slow_read(texts)  # only now: nearly all batches have no such text
        plain = self._read_or_split(texts.filter(pc.invert(odd)))
        slow = self._read_slowly(texts.filter(odd))
        # Sorting by `odd` lists plain rows before odd ones, as the two tables do. The inverse of
        # that sort gives the index of each row.
        indices = pc.sort_indices(pc.sort_indices(odd))
        return pa.concat_tables([plain, slow]).combine_chunks().take(indices)

    def _needs_slow_read(self, texts: pa.Array) -> pa.Array:
        odd = pc.or_(pc.match_substring(texts, "\n"), pc.match_substring(texts, "\r"))
        if self._has_floats:
            # NaN and the infinities are texts, which the fast reader rejects in a number's column.
            odd = pc.or_(odd, pc.match_substring_regex(texts, r'"-?(NaN|Infinity)"'))
        return pc.fill_null(odd, False)

    def _read_or_split(self, texts: pa.Array) -> pa.Table:
        table = self._read_fast(texts)
        if table is not None:
            return table
        if len(texts) <= _SMALLEST_BATCH:
            return self._read_slowly(texts)
        # One damaged text spoils its whole batch. Halving leaves few texts to the slow reader.
        middle = len(texts) // 2
        halves = (texts.slice(0, middle), texts.slice(middle))
        return pa.concat_tables([self._read_or_split(half) for half in halves])

    def _read_fast(self, texts: pa.Array) -> pa.Table | None:
        # Each text is wrapped. A text without an object, or with two, then breaks the line or the
        # count, and never shifts the rows after it.
        filled = pc.if_else(pc.equal(pc.utf8_trim_whitespace(texts), ""), "null", texts)
        filled = pc.fill_null(filled, "null")
        lines = pc.binary_join_element_wise('{"s":', filled, "}\n", "")
        lengths = pc.binary_length(lines)
        if len(texts) == 0:
            return self.schema.empty_table()
        data = lines.buffers()[2].slice(0, pc.sum(lengths).as_py())
        block = max(_MIN_BLOCK_BYTES, pc.max(lengths).as_py() + 1)
        try:
            table = pj.read_json(
                pa.BufferReader(data),
                read_options=pj.ReadOptions(
                    block_size=block, use_threads=len(data) > _WORTH_THREADS
                ),
                parse_options=pj.ParseOptions(
                    explicit_schema=self._json_schema, unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(texts):
            return None
        root = table.column("s")
        values = [_to_column_type(self._extract(root, item), item) for item in self.items]
        return pa.table(values, schema=self.schema)

    def _extract(self, root: pa.ChunkedArray, item: _Item) -> pa.ChunkedArray:
        level, indices = self._json_schema.field("s").type, []
        for name in item.path:
            indices.append(level.get_field_index(name))
            level = level.field(indices[-1]).type
        return pc.struct_field(root, indices)

    def _read_slowly(self, texts: pa.Array) -> pa.Table:
        rows = [_parse_text(text) for text in texts.to_pylist()]
        columns = [
            _to_column_type(
                pa.array([_find_value(row, item) for row in rows], type=item.json_type), item
            )
            for item in self.items
        ]
        return pa.table([_to_chunked(column) for column in columns], schema=self.schema)


def _items_of_columns(columns: Sequence[ResolvedColumn]) -> Iterable[_Item]:
    for position, column in enumerate(columns):
        path, data_type = column.physical_path, column.data_type
        if has_bounds(data_type):
            json_type = _json_type(data_type)
            yield _Item(f"min.{position}", ("minValues", *path), json_type, data_type)
            yield _Item(f"max.{position}", ("maxValues", *path), json_type, data_type)
        count_path = ("nullCount", *path)
        yield _Item(f"nullCount.{position}", count_path, pa.int64(), PrimitiveType("long"), True)


def _json_type(data_type: DataType) -> pa.DataType:
    if isinstance(data_type, DecimalType):
        return pa.decimal128(38, data_type.scale)
    name = str(data_type)
    if name in _INTEGERS:
        return pa.int64()
    if name in _TEXT_TYPES:
        return pa.string()
    return arrow_type_of(data_type)


def _nested_type(items: Sequence[tuple[ColumnPath, pa.DataType]]) -> pa.DataType:
    grouped: dict[str, list[tuple[ColumnPath, pa.DataType]]] = {}
    for path, kind in items:
        grouped.setdefault(path[0], []).append((path[1:], kind))
    fields = []
    for name, below in grouped.items():
        is_leaf = not below[0][0]
        fields.append(pa.field(name, below[0][1] if is_leaf else _nested_type(below)))
    return pa.struct(fields)


def _to_column_type(values: Any, item: _Item) -> Any:
    """Convert the values to the column's own type. Values that do not fit become null."""
    name = str(item.data_type)
    if item.is_count:
        return pc.if_else(pc.greater_equal(values, 0), values, pa.scalar(None, values.type))
    if values.type == item.arrow_type and not isinstance(item.data_type, DecimalType):
        return values
    if name in ("date", "timestamp", "timestamp_ntz"):
        return _parse_times(values, name, item.arrow_type)
    if isinstance(item.data_type, DecimalType):
        values = credible_decimals(values, item.data_type)
    try:
        return values.cast(item.arrow_type)
    except pa.ArrowInvalid:
        fitting = [_value_or_null(value, item.arrow_type) for value in values.to_pylist()]
        return _to_chunked(pa.array(fitting, type=item.arrow_type))


def _value_or_null(value: object, arrow_type: pa.DataType) -> object:
    try:
        pa.scalar(value, type=arrow_type)
    except (pa.ArrowInvalid, OverflowError):
        return None
    return value


def _parse_times(texts: Any, name: str, arrow_type: pa.DataType) -> Any:
    patterns = {"date": _DATE_PATTERN, "timestamp": _INSTANT_PATTERN}
    pattern = patterns.get(name, _WALL_CLOCK_PATTERN)
    if name == "timestamp_ntz":
        # Some writers put a Z after wall-clock times, or a bare date after a column was widened.
        texts = pc.replace_substring_regex(texts, pattern="Z$", replacement="")
        is_date = pc.match_substring_regex(texts, _DATE_PATTERN)
        texts = pc.if_else(is_date, pc.binary_join_element_wise(texts, "T00:00:00", ""), texts)
    texts = pc.if_else(
        pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, pa.string())
    )
    try:
        return texts.cast(arrow_type)
    except pa.ArrowInvalid:
        parsed = [_cast_one(text, arrow_type) for text in texts.to_pylist()]
        return _to_chunked(pa.array(parsed, type=arrow_type))


def _cast_one(text: str | None, arrow_type: pa.DataType) -> object:
    try:
        return pa.scalar(text, pa.string()).cast(arrow_type).as_py()
    except (pa.ArrowInvalid, OverflowError, ValueError):
        return None


def _to_chunked(values: Any) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _parse_text(text: str | None) -> Mapping[str, Any]:
    try:
        parsed = parse_exact_json(text or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _find_value(row: Mapping[str, Any], item: _Item) -> Any:
    """Return the item's value in a row if it has the right type, else None."""
    value: Any = row
    for name in item.path:
        value = value.get(name) if isinstance(value, dict) else None
    if item is _TIGHT_BOUNDS:
        return None if value is None else value is True  # a damaged one promises nothing
    if pa.types.is_boolean(item.json_type):
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or value is None:
        return None
    if pa.types.is_string(item.json_type):
        return value if isinstance(value, str) and _is_unicode(value) else None
    number = _parse_number(value, is_text_allowed=pa.types.is_floating(item.json_type))
    return None if number is None else _to_json_type(number, item.json_type)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _parse_number(value: Any, *, is_text_allowed: bool) -> Decimal | None:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):  # NaN and the infinities, written without quotes
        return Decimal.from_float(value)
    if is_text_allowed and value in ("NaN", "Infinity", "-Infinity"):
        return Decimal(value)
    return None


def _to_json_type(number: Decimal, json_type: pa.DataType) -> Any:
    if pa.types.is_floating(json_type):
        return float(number)
    if not number.is_finite():
        return None
    if pa.types.is_integer(json_type):
        # Check the size first: the digits of 1e999999999 alone would fill the memory.
        is_whole = number.adjusted() < _LONG_DIGITS and number == int(number)
        return (
            _value_or_null(int(number), json_type) if is_whole and not _is_rounded(number) else None
        )
    return _to_decimal(number, json_type.scale)


def _is_rounded(number: Decimal) -> bool:
    """Return whether a whole number may have been a double: it is large, and has an exponent."""
    return number.as_tuple().exponent != 0 and number.adjusted() >= _DOUBLE_DIGITS


def _to_decimal(number: Decimal, scale: int) -> Decimal | None:
    # Arrow would write all digits out before it finds that they are too many.
    try:
        return exactly_at_scale(number, scale) if _has_room(number, scale) else None
    except InvalidOperation:
        return None


def _has_room(number: Decimal, scale: int) -> bool:
    return is_in_range(number, _DECIMAL_DIGITS, scale)
