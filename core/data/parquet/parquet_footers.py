"""Facts from the footers of Parquet files that no log has yet: columns, rows, statistics.

A footer is foreign: the writer of the file chose it. Types come from the stored columns and not
from other engines' notes beside them. Field metadata, which could hold rules of another table, is
left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.data.parquet.fields_by_id import named_by_ids, stored_otherwise
from optimist.core.data.parquet.footer_statistics import FooterStatistics
from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.unreadable_files import UNREADABLE, read_surely
from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.stats_property import leaf_columns
from optimist.core.schema.types import StructType, schema_from_json, schema_to_json

__all__ = ["Footer", "FooterReader", "FooterWish", "stored_columns"]

_INT96 = "INT96"
_UNREAD_BY_SPARK = (
    (
        lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns",
        "times in nanoseconds",
        'in microseconds: pandas and pyarrow take coerce_timestamps="us"',
    ),
    (pa.types.is_float16, "floating-point numbers of 16 bits", "with 32 bits"),
)


@dataclass(frozen=True, slots=True)
class FooterWish:
    """The facts that are wanted of footers. A small value that tasks of Spark may carry.

    Attributes:
        access: The access to the files.
        partition_columns: Columns whose values are in the names of the files' directories.
        num_stats_columns: The number of leaf columns to collect statistics for. -1 for all, None
            for no statistics at all.
        string_prefix_length: How many UTF-16 units of a text are kept as a bound.
        table_schema: The table's schema as JSON, once it is known.
        by_id: Whether the table finds columns by their ids. Then its schema must be known, and
            files have the same types.
    """

    access: DataAccess | None
    partition_columns: tuple[str, ...] = ()
    num_stats_columns: int | None = 32
    string_prefix_length: int = 32
    table_schema: str | None = None
    by_id: bool = False


@dataclass(frozen=True, slots=True)
class Footer:
    """The facts of one footer.

    Attributes:
        schema: The file's columns as a nullable schema in JSON. If columns are found by their ids,
            the table's schema.
        stats: `add.stats` by the table's schema if that is known, else by the file's own. None
            without statistics.
    """

    schema: str
    stats: str | None


class FooterReader:
    """A reader of footers that computes the common facts of files with the same columns once.

    Several threads may share one reader.
    """

    def __init__(self, wish: FooterWish) -> None:
        """Make a reader that has seen no file.

        Args:
            wish: The wanted facts.
        """
        self._wish = wish
        self._newest: tuple[pq.ParquetSchema, pa.Schema, _Shape] | None = None

    def __call__(self, path: str) -> Footer:
        """Read one footer.

        Args:
            path: The full path of the file.

        Raises:
            TableError: The file is not Parquet, or is damaged (kind
                `OPTIMIST_UNREADABLE_DATA_FILE`).
            SchemaError: It has a column that no Delta table can have (kind
                `DELTA_UNSUPPORTED_DATA_TYPES`), or a column with another type than the table's
                column of the same id (`DELTA_FAILED_TO_MERGE_FIELDS`).
            StorageError: The store failed.
        """
        metadata, arrow = _read_footer(path, self._wish.access)
        newest = self._newest
        if newest and newest[0].equals(metadata.schema) and newest[1].equals(arrow, True):
            return newest[2].footer(metadata)
        shape = self._shape(path, metadata, arrow)
        self._newest = metadata.schema, arrow, shape
        return shape.footer(metadata)

    def _shape(self, path: str, metadata: pq.FileMetaData, arrow: pa.Schema) -> _Shape:
        try:
            arrow = _to_read_schema(arrow, metadata.schema)
            if self._wish.by_id and self._wish.table_schema is not None:
                return _shape_by_id(path, arrow, self._wish)
            schema = from_arrow_schema(arrow)
        except SchemaError as error:
            raise SchemaError(
                f"The file {shown(path)} has columns that the table can't have. {error.args[0]}",
                kind=error.kind,
                path=path,
            ) from None
        own = schema.without_field_keys(lambda _: True).as_nullable()
        return _Shape(schema_to_json(own), _build_statistics(arrow, own, self._wish))


def stored_columns(path: str, access: DataAccess | None) -> pa.Schema:
    """Return the columns of one file as they are read, with their ids, from its footer.

    Raises:
        TableError: As `FooterReader`.
        SchemaError: Arrow reads a column that Spark does not (kind `DELTA_UNSUPPORTED_DATA_TYPES`).
        StorageError: The store failed.
    """
    metadata, arrow = _read_footer(path, access)
    return _to_read_schema(arrow, metadata.schema)


def _read_footer(path: str, access: DataAccess | None) -> tuple[pq.FileMetaData, pa.Schema]:
    with storage_errors("read", path):
        try:
            metadata = read_surely(path, access, pq.read_metadata)
            # Fields keep their ids. Writers' notes about the whole file do not count.
            return metadata, metadata.schema.to_arrow_schema().remove_metadata()
        except FileNotFoundError:
            raise
        except UNREADABLE as error:
            raise _unreadable_file(path, str(error)) from None


@dataclass(frozen=True, slots=True)
class _Shape:
    """The common facts of files with the same columns.

    Attributes:
        schema: See `Footer.schema`.
        statistics: Takes the statistics. None without statistics.
    """

    schema: str
    statistics: FooterStatistics | None

    def footer(self, metadata: pq.FileMetaData) -> Footer:
        """Return the facts of a file's footer."""
        statistics = self.statistics
        return Footer(self.schema, None if statistics is None else statistics.of(metadata))


def _shape_by_id(path: str, arrow: pa.Schema, wish: FooterWish) -> _Shape:
    text = wish.table_schema or ""
    table = schema_from_json(text)
    named = named_by_ids(arrow, table, path)
    column = stored_otherwise(named, table)
    if column is not None:
        raise SchemaError(
            f"The column {shown(column)} has another type there than in the table. Nothing was "
            "written. Write the file again with the engine of the table.",
            kind="DELTA_FAILED_TO_MERGE_FIELDS",
            column=column,
        )
    return _Shape(text, _build_statistics_for(named, table, wish))


def _build_statistics(
    stored: pa.Schema, own: StructType, wish: FooterWish
) -> FooterStatistics | None:
    table = own if wish.table_schema is None else schema_from_json(wish.table_schema)
    # Statistics are keyed by exact names, so columns in another case would not be found.
    return _build_statistics_for(stored, table, wish, is_found=not _differs_in_case(own, table))


def _build_statistics_for(
    stored: pa.Schema, table: StructType, wish: FooterWish, *, is_found: bool = True
) -> FooterStatistics | None:
    if wish.num_stats_columns is None:
        return None
    indexed = TableProperties(data_skipping_num_indexed_cols=wish.num_stats_columns)
    columns = stats_columns(table, wish.partition_columns, indexed) if is_found else ()
    prefix = wish.string_prefix_length
    return FooterStatistics(stored, table, columns, string_prefix_length=prefix)


def _differs_in_case(own: StructType, table: StructType) -> bool:
    names = {path for path, _ in leaf_columns(table)}
    folded = {tuple(part.lower() for part in path) for path in names}
    return any(
        path not in names and tuple(part.lower() for part in path) in folded
        for path, _ in leaf_columns(own)
    )


def _to_read_schema(arrow: pa.Schema, parquet: pq.ParquetSchema) -> pa.Schema:
    """Return the Arrow schema with INT96 as a point in time, which Arrow reads without a zone.

    Raises:
        SchemaError: Arrow reads a column that Spark does not.
    """
    columns = (parquet.column(index) for index in range(len(parquet.names)))
    return pa.schema([_to_read_field(item, columns) for item in arrow])


def _to_read_field(field: pa.Field, columns: Iterator[pq.ColumnSchema]) -> pa.Field:
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        plain = field.with_type(kind.storage_type)
        found = _to_read_field(plain, columns)
        return field if found == plain else found
    if pa.types.is_struct(kind):
        inner = [_to_read_field(kind.field(index), columns) for index in range(kind.num_fields)]
        return field.with_type(pa.struct(inner))
    if pa.types.is_map(kind):
        key = _to_read_field(kind.key_field, columns)
        return field.with_type(pa.map_(key, _to_read_field(kind.item_field, columns)))
    if pa.types.is_nested(kind):
        return field.with_type(pa.list_(_to_read_field(kind.value_field, columns)))
    column = next(columns, None)
    if column is None:
        return field
    if column.physical_type == _INT96:
        return field.with_type(pa.timestamp("us", tz="UTC"))
    for is_unread, what, way_out in _UNREAD_BY_SPARK:
        if is_unread(kind):
            raise SchemaError(
                f"The column {shown(column.path)} holds {what}, which Spark does not read. Nothing "
                f"was written. Write the files again {way_out}.",
                kind="DELTA_UNSUPPORTED_DATA_TYPES",
                column=column.path,
                type=str(kind),
            )
    return field


def _unreadable_file(path: str, reason: str) -> TableError:
    return TableError(
        f"The file {shown(path)} can't be read as Parquet: {shown(reason)}. Nothing was written. "
        "Move it away, or restore it.",
        kind="OPTIMIST_UNREADABLE_DATA_FILE",
        path=path,
    )
