"""The statistics JSON of a new data file, from its Parquet footer (spec 9.1 to 9.3)."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from optimist.core.data.statistics.string_bounds import lower_bound, upper_bound
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema.arrow_types import num_leaves, storage_type
from optimist.core.schema.stats_property import has_bounds
from optimist.core.schema.types import DecimalType, StructType
from optimist.core.values.column_chunks import ColumnChunks
from optimist.core.values.legacy_calendar import LegacyCalendar

__all__ = ["ColumnPath", "FooterStatistics", "nan_free_columns", "stats_from_footer"]

ColumnPath: TypeAlias = tuple[str, ...]

_JVM_WRITER = "parquet-mr"
_TEXT = json.JSONEncoder(ensure_ascii=False)
_EPOCH = dt.datetime(1970, 1, 1)
_MICROS_PER_UNIT = {"milliseconds": 1000, "microseconds": 1}


_ReadBound: TypeAlias = Callable[[Any, str], Any]
"""Reads one end, `min` or `max`, of a row group's statistics. Returns None without one."""


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    """A leaf column of a table, as files store it.

    Attributes:
        path: Its physical path.
        index_in_file: Its index among the files' leaves. None if footers have nothing about it.
        is_missing: Whether the files lack it, so that all its values are null.
        is_float: Whether NaN may be among its values.
        read_bound: Reads a bound. None without bounds.
    """

    path: ColumnPath
    index_in_file: int | None
    is_missing: bool
    is_float: bool
    read_bound: _ReadBound | None


@dataclass(frozen=True, slots=True)
class _Summary:
    """The statistics of all row groups of a file for one leaf column. Unknown bounds are None."""

    low: Any = None
    high: Any = None
    null_count: int | None = None


class FooterStatistics:
    """A reader of the statistics of data files with the same columns, from their footers.

    A bound is left out if a footer does not give one for certain: INT96 timestamps, columns with
    NaN, infinities, text that is not UTF-8, and old dates and times in the calendar of Spark 2,
    which readers would misread. Null counts of lists and maps are left out, because a footer counts
    their elements.
    """

    def __init__(
        self,
        stored: pa.Schema,
        schema: StructType,
        stats_columns: Sequence[ColumnPath],
        *,
        string_prefix_length: int = 32,
    ) -> None:
        """Find each column's index in the files.

        Args:
            stored: The files' columns, by the table's physical names.
            schema: The table's schema. Columns that the files lack are all null.
            stats_columns: Logical paths of the leaves that get statistics (see `stats_columns`).
            string_prefix_length: Text with more UTF-16 units than this is shortened.
        """
        leaves = dict(_parquet_leaves(stored))
        self._columns = [_find_stored_column(path, schema, leaves) for path in stats_columns]
        self._string_prefix_length = string_prefix_length

    def of(
        self,
        metadata: pq.FileMetaData,
        *,
        tight_bounds: bool | None = None,
        nan_free: Collection[ColumnPath] = (),
    ) -> str:
        """Return `add.stats` for one file.

        Args:
            metadata: The file's footer.
            tight_bounds: The value of `tightBounds`. None leaves it out.
            nan_free: Physical paths of float columns that certainly hold no NaN. Arrow's writer
                ignores NaN, so its bounds of other float columns are not used. Spark's writer shows
                NaN as a bound.
        """
        calendar = LegacyCalendar.of(metadata.metadata)
        shows_nan = str(metadata.created_by or "").startswith(_JVM_WRITER)
        chunks = ColumnChunks(metadata)
        minimums: dict[str, Any] = {}
        maximums: dict[str, Any] = {}
        null_counts: dict[str, Any] = {}
        for column in self._columns:
            is_trusted = shows_nan or not column.is_float or column.path in nan_free
            summary = _summarize_groups(chunks, column, is_trusted)
            if calendar is not None and calendar.rebases(summary.low):
                summary = _Summary(null_count=summary.null_count)
            low, high = _shorten(summary, self._string_prefix_length)
            _set_at_path(minimums, column.path, low)
            _set_at_path(maximums, column.path, high)
            _set_at_path(null_counts, column.path, summary.null_count)
        fields: dict[str, Any] = {"numRecords": metadata.num_rows}
        fields |= {"minValues": minimums, "maxValues": maximums, "nullCount": null_counts}
        if tight_bounds is not None:
            fields["tightBounds"] = tight_bounds
        return _json_text(fields)


def stats_from_footer(
    metadata: pq.FileMetaData,
    schema: StructType,
    stats_columns: Sequence[ColumnPath],
    *,
    string_prefix_length: int = 32,
    tight_bounds: bool | None = None,
    nan_free: Collection[ColumnPath] = (),
) -> str:
    """Return `add.stats` for one data file (see `FooterStatistics`)."""
    stored = metadata.schema.to_arrow_schema()
    statistics = FooterStatistics(
        stored, schema, stats_columns, string_prefix_length=string_prefix_length
    )
    return statistics.of(metadata, tight_bounds=tight_bounds, nan_free=nan_free)


def nan_free_columns(table: pa.Table) -> frozenset[ColumnPath]:
    """Return the paths of a file's float columns without NaN, also those in structs."""
    found: list[ColumnPath] = []
    for name in table.column_names:
        pending: list[tuple[ColumnPath, Any]] = [((name,), table.column(name))]
        while pending:
            path, values = pending.pop()
            if pa.types.is_struct(values.type):
                pending += [
                    ((*path, values.type.field(i).name), pc.struct_field(values, [i]))
                    for i in range(values.type.num_fields)
                ]
            elif pa.types.is_floating(values.type) and not pc.any(pc.is_nan(values)).as_py():
                found.append(path)
    return frozenset(found)


def _parquet_leaves(schema: pa.Schema) -> Iterator[tuple[ColumnPath, int | None]]:
    """Yield physical path and column index of each leaf. Lists and maps have no index."""
    index = 0
    pending: list[tuple[ColumnPath, pa.Field]] = [((item.name,), item) for item in schema]
    while pending:
        path, field = pending.pop(0)
        kind = storage_type(field.type)
        if pa.types.is_struct(kind):
            pending = [((*path, child.name), child) for child in kind] + pending
            continue
        width = num_leaves(kind)
        yield path, None if pa.types.is_nested(kind) else index
        index += width


def _find_stored_column(
    path: ColumnPath, schema: StructType, leaves: dict[ColumnPath, int | None]
) -> _StoredColumn:
    column = resolve_column(path, schema)
    if column is None:
        raise ValueError(f"the schema has no column {'.'.join(path)}")
    own, kind = column.physical_path, column.data_type
    # A struct instead of the leaf means a file of another schema: give no statistics for it.
    is_other_shape = own not in leaves and any(leaf[: len(own)] == own for leaf in leaves)
    return _StoredColumn(
        own,
        leaves.get(own),
        is_missing=own not in leaves and not is_other_shape,
        is_float=str(kind) in ("float", "double"),
        read_bound=_READERS.get("decimal" if isinstance(kind, DecimalType) else str(kind))
        if has_bounds(kind)
        else None,
    )


def _summarize_groups(chunks: ColumnChunks, column: _StoredColumn, is_trusted: bool) -> _Summary:
    metadata = chunks.metadata
    num_rows_of = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if column.is_missing:
        return _Summary(null_count=sum(num_rows_of))
    if column.index_in_file is None:
        return _Summary()
    statistics = [
        (chunks.statistics(group, column.index_in_file), num_rows)
        for group, num_rows in enumerate(num_rows_of)
    ]
    null_counts = [
        item.null_count if item and item.has_null_count else None for item, _ in statistics
    ]
    total = None if None in null_counts else sum(count or 0 for count in null_counts)
    read = column.read_bound
    if read is None or not is_trusted:
        return _Summary(null_count=total)
    bounds = [
        _group_bounds(item, read)
        for (item, num_rows), nulls in zip(statistics, null_counts, strict=True)
        if nulls != num_rows
    ]
    known = [item for item in bounds if item is not None]
    if not known or len(known) < len(bounds):
        return _Summary(null_count=total)
    return _Summary(min(low for low, _ in known), max(high for _, high in known), total)


def _group_bounds(statistics: Any, read: _ReadBound) -> tuple[Any, Any] | None:
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        low, high = read(statistics, "min"), read(statistics, "max")
    except (ValueError, OverflowError, TypeError, KeyError):
        # A text that is not UTF-8, a date beyond year 9999, or another type has no bounds.
        return None
    return None if low is None or high is None else (low, high)


def _read_plain(kind: type) -> _ReadBound:
    def read(statistics: Any, end: str) -> Any:
        value = getattr(statistics, end)
        return value if type(value) is kind else None

    return read


def _read_float(statistics: Any, end: str) -> float | None:
    value = float(getattr(statistics, end))
    return value if math.isfinite(value) else None


def _read_date(statistics: Any, end: str) -> dt.date | None:
    value = getattr(statistics, end)
    return value if type(value) is dt.date else None


def _read_timestamp(statistics: Any, end: str) -> dt.datetime | None:
    logical = json.loads(statistics.logical_type.to_json())
    if logical.get("Type") != "Timestamp" or logical["timeUnit"] not in _MICROS_PER_UNIT:
        return None
    micros = getattr(statistics, f"{end}_raw") * _MICROS_PER_UNIT[logical["timeUnit"]]
    # Both ends are cut to milliseconds. Readers know that and add one to the upper (spec 9.5).
    value = _EPOCH + dt.timedelta(milliseconds=micros // 1000)
    return value.replace(tzinfo=dt.timezone.utc) if logical["isAdjustedToUTC"] else value


_READERS: dict[str, _ReadBound] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), _read_plain(int)),
    **dict.fromkeys(("float", "double"), _read_float),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _read_timestamp),
    "string": _read_plain(str),
    "decimal": _read_plain(Decimal),
    "date": _read_date,
}


def _shorten(summary: _Summary, prefix_length: int) -> tuple[Any, Any]:
    if not isinstance(summary.low, str):
        return summary.low, summary.high
    return lower_bound(summary.low, prefix_length), upper_bound(summary.high, prefix_length)


def _set_at_path(target: dict[str, Any], path: ColumnPath, value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        target = target.setdefault(name, {})
    target[path[-1]] = value


def _json_text(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{_TEXT.encode(key)}:{_json_text(part)}" for key, part in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return _TEXT.encode(text + ("Z" if value.tzinfo else ""))
    if isinstance(value, dt.date):
        return _TEXT.encode(value.isoformat())
    return _TEXT.encode(value)
