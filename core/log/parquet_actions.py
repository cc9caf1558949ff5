"""The rows of one Parquet file of a checkpoint or sidecar, column by column (spec 5.8).

Such a file has one nullable struct column per kind of action. Statistics show which row groups lack
a kind, and those are skipped. No Python object is made per file of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.file_table import FILES_SCHEMA, STRING_MAP_TYPE, TOMBSTONES_SCHEMA, conform
from optimist.core.log.limits import ensure_bounded, most_unpacked_bytes
from optimist.core.log.parquet_batches import bounded_batches
from optimist.core.log.parsed_columns import (
    filled_maps,
    partition_value_maps,
    statistics_texts,
    without_times,
)
from optimist.core.values.legacy_calendar import LegacyCalendar

__all__ = [
    "AddReader",
    "action_rows",
    "add_batches",
    "ensure_utf8",
    "has_file_actions",
    "remove_batches",
]

_BATCH_ROWS = 32_768
_RENDERED_BATCH_ROWS = 16_384
"""Structs grow when they become text, and an Arrow array of text ends at 2 GiB."""
_KEY_LEAVES = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "add": "path",
    "remove": "path",
    "sidecar": "path",
    "checkpointMetadata": "version",
}
"""A leaf that every row of the action has. A row group with only nulls in it lacks the action."""

_WITHOUT_TEXTS = frozenset({"protocol", "checkpointMetadata"})
"""Kinds whose keys are numbers, for which a footer's statistics are dear (see `ColumnChunks`).

Each row is one action, so they are not in a row group in which every row is an add or a remove.
"""

_PARTITION_KEYS = "add.partitionValues.key_value.key"


def action_rows(file: CheckpointFile, size_bytes: int, column: str) -> Iterator[dict[str, Any]]:
    """Yield the bodies of one kind of action, without nulls. For kinds with few rows.

    Raises:
        ValueError: The rows unpack to more than a sound file of this size does.
    """
    unpacked_bytes = 0
    for array in _struct_batches(file, size_bytes, column, None):
        unpacked_bytes += array.nbytes
        ensure_bounded(unpacked_bytes, size_bytes)
        for row in array.to_pylist(maps_as_pydicts="strict"):
            yield _drop_nulls(row)


def has_file_actions(file: CheckpointFile) -> bool:
    """Return whether the footer shows adds or removes in the file, or leaves it open."""
    return any(
        _field_names(file, column) and _groups_with_values(file, column)
        for column in ("add", "remove")
    )


class AddReader:
    """A reader of the adds of one open file, by row groups and columns.

    A column that an old writer left out gets the values that its absence means. If statistics or
    partition values exist only as structs, they are converted to the log's JSON form.

    Args:
        file: The file.
        size_bytes: Its size in the store.

    Attributes:
        groups: The row groups that may hold adds, as far as the footer shows.
        num_adds: The number of adds, if the footer shows it.
    """

    def __init__(self, file: CheckpointFile, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._parsed = _needed_parsed_columns(file)
        self._has_old_days = LegacyCalendar.of(file.metadata.metadata) is not None
        present = _field_names(file, "add")
        self.groups = _groups_with_values(file, "add") if present else []
        nulls = _null_counts(file, "add.path") if present else [file.metadata.num_rows]
        known = [count for count in nulls if count is not None]
        is_known = len(known) == len(nulls)
        self.num_adds = file.metadata.num_rows - sum(known) if is_known else None

    def batches(
        self, schema: pa.Schema = FILES_SCHEMA, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the adds as batches of `schema`.

        Args:
            schema: The columns to read, of those of `FILES_SCHEMA`. The rows do not depend on them.
            groups: The row groups to read; None for all.

        Raises:
            ValueError: An add lacks its path, its size or a part of its vector, counts bytes or
                rows below zero, or has a path or partition values that are not UTF-8. Or a row
                group unpacks to more than a sound file of this size does.
        """
        parsed = [name for name, plain in self._parsed if plain in schema.names]
        arrays = _struct_batches(
            self._file,
            self._size_bytes,
            "add",
            [*schema.names, *parsed],
            max_rows=_RENDERED_BATCH_ROWS if parsed else _BATCH_ROWS,
            groups=self.groups if groups is None else groups,
        )
        for array in arrays:
            batch = conform(self._render(array) if parsed else array, schema)
            _ensure_sound(batch)
            ensure_utf8(batch)
            yield _fill_defaults(_clear_data_change(batch))

    def _render(self, array: pa.StructArray) -> pa.StructArray:
        """Return the adds with text in the place of structs."""
        columns = dict(zip(array.type.names, array.flatten(), strict=True))
        statistics = columns.pop("stats_parsed", None)
        if statistics is not None:
            if self._has_old_days:  # days that readers would misread, so their bounds are unknown
                statistics = without_times(statistics)
            texts = statistics_texts(statistics)
            plain = columns.get("stats")
            filled = texts if plain is None else pc.coalesce(plain.cast(pa.string()), texts)
            columns["stats"] = filled
        values = columns.pop("partitionValues_parsed", None)
        if values is not None:
            maps = partition_value_maps(values)
            plain = columns.get("partitionValues")
            columns["partitionValues"] = maps if plain is None else filled_maps(plain, maps)
        return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def add_batches(file: CheckpointFile, size_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield all adds as batches of `FILES_SCHEMA` (see `AddReader`)."""
    return AddReader(file, size_bytes).batches()


def _ensure_sound(batch: pa.RecordBatch) -> None:
    """Refuse adds that lack what each add has, as far as the batch has the columns."""
    present = {name: batch.column(name) for name in batch.schema.names}
    for name in ("path", "size"):
        if name in present and present[name].null_count:
            raise ValueError(f"an add lacks its {name}")
    counts = [present["size"]] if "size" in present else []
    vectors = present["deletionVector"].drop_null() if "deletionVector" in present else ()
    if len(vectors):
        for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"):
            if pc.struct_field(vectors, name).null_count:
                raise ValueError(f"a deletion vector lacks its {name}")
        names = ("cardinality", "sizeInBytes", "offset")
        counts += [pc.struct_field(vectors, name) for name in names]
    for count in counts:
        least = pc.min(count).as_py()
        if least is not None and least < 0:
            raise ValueError(f"an add claims {least} bytes or rows")


def ensure_utf8(batch: pa.RecordBatch) -> None:
    """Refuse a path or a partition value that is not UTF-8, which Parquet may hold and JSON not.

    Raises:
        ValueError: There is one.
    """
    for name in ("path", "partitionValues"):
        try:
            if name in batch.schema.names:
                batch.column(name).validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"the {name} of an add is not UTF-8 ({error})") from None


def remove_batches(file: CheckpointFile, size_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the removes as batches of `TOMBSTONES_SCHEMA`."""
    for array in _struct_batches(file, size_bytes, "remove", TOMBSTONES_SCHEMA.names):
        yield _clear_data_change(conform(array, TOMBSTONES_SCHEMA))


def _struct_batches(
    file: CheckpointFile,
    size_bytes: int,
    column: str,
    fields: list[str] | None,
    *,
    max_rows: int = _BATCH_ROWS,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.StructArray]:
    """Yield the non-null rows of a struct column, with these of its fields (None: all).

    If the file has none of the fields, the rows have the column's key, because rows count.
    """
    present = _field_names(file, column)
    if groups is None:
        groups = _groups_with_values(file, column) if present else []
    wanted = [column] if fields is None else [f"{column}.{n}" for n in fields if n in present]
    if fields is not None and not wanted and _KEY_LEAVES[column] in present:
        wanted = [f"{column}.{_KEY_LEAVES[column]}"]
    if not groups or not wanted:
        return
    most_bytes = most_unpacked_bytes(size_bytes)
    for batch in bounded_batches(file, wanted, groups, max_rows=max_rows, max_bytes=most_bytes):
        array = batch.column(0)
        if array.null_count:
            array = array.drop_null()
        if len(array):
            yield array


def _field_names(file: CheckpointFile, column: str) -> frozenset[str]:
    schema = file.schema_arrow
    index = schema.get_field_index(column)
    if index < 0:
        return frozenset()
    kind = schema.field(index).type
    if not pa.types.is_struct(kind):
        raise ValueError(f"the column {column!r} is not a struct")
    return frozenset(field.name for field in kind)


def _groups_with_values(file: CheckpointFile, column: str) -> list[int]:
    """Return the row groups that may hold a kind of action."""
    if column in _WITHOUT_TEXTS:
        paths = [_null_counts(file, f"{kind}.path") for kind in ("add", "remove")]
        return [group for group, nulls in enumerate(zip(*paths, strict=True)) if 0 not in nulls]
    nulls = _null_counts(file, f"{column}.{_KEY_LEAVES[column]}")
    return [
        group
        for group, count in enumerate(nulls)
        if count != file.metadata.row_group(group).num_rows
    ]


def _null_counts(file: CheckpointFile, leaf: str) -> list[int | None]:
    """Return the nulls per row group, None where unknown."""
    leaves, count = file.chunks.paths, file.num_row_groups
    if leaf not in leaves:
        return [None] * count
    index = leaves.index(leaf)
    found = (file.chunks.statistics(group, index) for group in range(count))
    return [item.null_count if item is not None and item.has_null_count else None for item in found]


def _needed_parsed_columns(file: CheckpointFile) -> tuple[tuple[str, str], ...]:
    """Return the struct columns that hold values which plain ones lack, with those columns."""
    present = _field_names(file, "add")
    pairs = (
        ("stats_parsed", "stats", "add.stats"),
        ("partitionValues_parsed", "partitionValues", _PARTITION_KEYS),
    )
    return tuple(
        (name, plain)
        for name, plain, leaf in pairs
        if name in present and _has_gaps(file, present, plain, leaf)
    )


def _has_gaps(file: CheckpointFile, present: frozenset[str], name: str, leaf: str) -> bool:
    """Return whether an add may lack the column, as far as the footer shows."""
    if name not in present:
        return True
    nulls, without_add = _null_counts(file, leaf), _null_counts(file, "add.path")
    return None in nulls or nulls != without_add


def _clear_data_change(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Set `dataChange` to false, as in every state (spec 5.6), whatever the checkpoint has."""
    if "dataChange" not in batch.schema.names:
        return batch
    return _replace_column(batch, "dataChange", pa.repeat(pa.scalar(False), batch.num_rows))


def _fill_defaults(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fill in values that old writers left out of adds, as for the adds of commits."""
    present = {name: batch.column(name) for name in batch.schema.names}
    times, values = present.get("modificationTime"), present.get("partitionValues")
    if times is not None and times.null_count:
        batch = _replace_column(batch, "modificationTime", pc.fill_null(times, 0))
    if values is not None and values.null_count:
        # Keep the entries, and use offsets without nulls: an absent map becomes an empty one.
        whole = pa.MapArray.from_arrays(values.offsets, values.keys, values.items)
        batch = _replace_column(batch, "partitionValues", whole.cast(STRING_MAP_TYPE))
    return batch


def _replace_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    columns = list(batch.columns)
    columns[batch.schema.get_field_index(name)] = values
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _drop_nulls(value: Any) -> Any:
    """Drop null entries, because Parquet has every column in every row and JSON does not."""
    if isinstance(value, dict):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    return value
