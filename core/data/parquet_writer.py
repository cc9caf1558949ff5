"""Rows in Arrow to data files: one Parquet file per partition, with statistics (spec 10.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from optimist.core.actions import AddFile
from optimist.core.arrow_types import to_arrow_schema
from optimist.core.clock import Clock
from optimist.core.data.filesystem import filesystem_for, make_durable
from optimist.core.data.footer_statistics import nan_free_columns, stats_from_footer
from optimist.core.data.partition_values import (
    partition_directory,
    partition_schema,
    serialize_partition_values,
    uri_reference,
)
from optimist.core.data.stats_columns import stats_columns
from optimist.core.paths import join
from optimist.core.schema import StructType

__all__ = ["FileWriter", "arrow_rows", "delete_files"]

_COMPRESSION = "snappy"
_ROW_GROUP_ROWS = 1_000_000
_GROUP_ROW = "__row"


@dataclass(frozen=True, slots=True)
class FileWriter:
    """Writes data files below one table.

    Attributes:
        table_path: The table's directory.
        schema: The table's schema; the rows must have exactly its columns, by name.
        partition_columns: Names of the partition columns, in order.
        configuration: The table's properties; they choose the columns that get statistics.
        string_prefix_length: Text in statistics is shortened to so many UTF-16 units.
        clock: Gives modification times and unique names.
    """

    table_path: str
    schema: StructType
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    string_prefix_length: int
    clock: Clock

    def write(self, rows: pa.Table, *, data_change: bool = True) -> tuple[AddFile, ...]:
        """One file per partition that has rows; none is part of the table before a commit.

        If one can't be written, those written before it are removed again.
        """
        filesystem, root = filesystem_for(self.table_path)
        written: list[AddFile] = []
        try:
            for values, part in self._partitions(rows):
                written.append(self._write_one(filesystem, root, values, part, data_change))
            make_durable(filesystem, root, [join(root, unquote(item.path)) for item in written])
        except BaseException:
            delete_files(self.table_path, written)
            raise
        return tuple(written)

    def _partitions(self, rows: pa.Table) -> Iterator[tuple[Mapping[str, str | None], pa.Table]]:
        fields = partition_schema(self.schema, self.partition_columns)
        if not fields.fields:
            if rows.num_rows:
                yield {}, rows
            return
        # Empty text is null in a partition (spec 10.2), so both must fall into one group.
        for name in self.partition_columns:
            rows = rows.set_column(
                rows.schema.get_field_index(name), name, _without_empty_text(rows[name])
            )
        numbered = rows.append_column(_GROUP_ROW, pa.array(range(rows.num_rows), pa.int64()))
        groups = numbered.group_by(list(self.partition_columns), use_threads=False).aggregate(
            [(_GROUP_ROW, "list")]
        )
        keys = groups.select(list(self.partition_columns)).to_pylist()
        for position, key in enumerate(keys):
            chosen = groups[f"{_GROUP_ROW}_list"].slice(position, 1).combine_chunks().flatten()
            values = serialize_partition_values(key, fields)
            yield values, rows.take(chosen).drop_columns(list(self.partition_columns))

    def _write_one(
        self,
        filesystem: fs.FileSystem,
        root: str,
        values: Mapping[str, str | None],
        rows: pa.Table,
        data_change: bool,
    ) -> AddFile:
        name = f"part-00000-{self.clock.new_uuid()}.c000.{_COMPRESSION}.parquet"
        relative = join(partition_directory(values), name) if values else name
        if values:
            filesystem.create_dir(join(root, partition_directory(values)), recursive=True)
        path = join(root, relative)
        footers: list[pq.FileMetaData] = []
        pq.write_table(
            rows,
            path,
            filesystem=filesystem,
            compression=_COMPRESSION,
            row_group_size=_ROW_GROUP_ROWS,
            store_schema=False,
            metadata_collector=footers,
        )
        return AddFile(
            path=uri_reference(relative),
            partition_values=values,
            size=filesystem.get_file_info(path).size,
            modification_time=self.clock.now_ms(),
            data_change=data_change,
            stats=self._stats(footers[0], rows),
        )

    def _stats(self, footer: pq.FileMetaData, rows: pa.Table) -> str:
        columns = stats_columns(self.schema, self.partition_columns, self.configuration)
        return stats_from_footer(
            footer,
            self.schema,
            columns,
            string_prefix_length=self.string_prefix_length,
            nan_free=nan_free_columns(rows),
        )


def delete_files(table_path: str, files: Sequence[AddFile]) -> None:
    """Remove files that were written but will never be committed."""
    filesystem, root = filesystem_for(table_path)
    for item in files:
        path = join(root, unquote(item.path))
        if filesystem.get_file_info(path).type is not fs.FileType.NotFound:
            filesystem.delete_file(path)


def arrow_rows(rows: pa.Table, schema: StructType) -> pa.Table:
    """The rows with exactly the table's columns: by name in any case, in its order, with its types.

    Columns the rows lack are null.
    """
    wanted = to_arrow_schema(schema)
    present = {name.lower(): name for name in rows.column_names}
    columns = [
        rows[present[field.name.lower()]].cast(field.type)
        if field.name.lower() in present
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.table(columns, schema=wanted)


def _without_empty_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
