"""`_metadata` of the arrow plane's rows: each row's file, its position there, and its identity.

The fields are those of Spark's own file sources, and, where a table tracks its rows, `row_id` and
`row_commit_version` (spec 6.5). `*` does not show the column; a query must name it. If the table
has a column called `_metadata`, that column hides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import types as st

from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.data.row_tracking import tracking_columns
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.schema.types import StructField
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.rows.row_shape import free_name

__all__ = ["METADATA", "RowMetadata", "metadata_type"]

METADATA = "_metadata"
_FILE_FIELDS = {
    "file_path": st.StringType(),
    "file_name": st.StringType(),
    "file_size": st.LongType(),
    "file_block_start": st.LongType(),
    "file_block_length": st.LongType(),
    "file_modification_time": st.TimestampType(),
}
_ROW_INDEX = "row_index"
_SAFE = "/:!$&'()*+,;=@-._~"
"""Characters that Java's `URI` does not escape in a path."""


def metadata_type(view: FilesView) -> st.StructType | None:
    """Return the type of the column, or None if the table has a column of that name."""
    if view.schema.find(METADATA) is not None:
        return None
    types = {**_FILE_FIELDS, _ROW_INDEX: st.LongType()}
    if view.has_active("rowTracking"):
        types |= dict.fromkeys(_tracked_fields(view), st.LongType())
    return st.StructType([st.StructField(name, kind, True) for name, kind in types.items()])


@dataclass(frozen=True, slots=True)
class RowMetadata:
    """Makes the column for the rows of a batch.

    Attributes:
        index: The index of this column.
        num_columns: How many other columns there are.
        fields: The fields that are wanted, in order.
        tracked: The columns to read from files for them, after the other columns.
    """

    index: int
    num_columns: int
    fields: tuple[str, ...]
    tracked: tuple[StructField, ...]

    @classmethod
    def of(cls, view: FilesView, schema: st.StructType) -> RowMetadata | None:
        """Return the column as a query wants it, or None if the query does not want it.

        Args:
            view: The version.
            schema: All columns that are wanted.
        """
        if METADATA not in schema.names or metadata_type(view) is None:
            return None
        index = schema.names.index(METADATA)
        wanted = schema.fields[index].dataType
        fields = tuple(wanted.names) if isinstance(wanted, st.StructType) else ()
        found = _tracked_fields(view) if view.has_active("rowTracking") else {}
        tracked = tuple(found[name] for name in fields if name in found)
        taken = [*view.schema.names]
        # A table may have columns of its own with the names of these two.
        free = tuple(replace(item, name=free_name(item.name, taken)) for item in tracked)
        return cls(index, len(schema.fields) - 1, fields, free)

    def beside(
        self, columns: Sequence[pa.Array], part: FilePart, positions: Positions
    ) -> list[pa.Array]:
        """Return the columns of a batch, with this column inserted at its index.

        Args:
            columns: The other columns, the tracked ones, and perhaps more; at least one.
            part: The part of a file that the rows come from.
            positions: Returns the rows' positions in the file.
        """
        own = list(columns[: self.num_columns])
        tracked = iter(columns[self.num_columns :])
        num_rows = len(columns[0])
        parts = []
        for name in self.fields:
            if name == _ROW_INDEX:
                parts.append(positions())
            elif name in _FILE_FIELDS:
                parts.append(pa.repeat(_value_of_file(name, part), num_rows))
            else:
                parts.append(next(tracked))
        own.insert(self.index, pa.StructArray.from_arrays(parts, names=list(self.fields)))
        return own


def _tracked_fields(view: FilesView) -> dict[str, StructField]:
    found = tracking_columns(view.metadata.configuration)
    return {item.name.removeprefix(f"{METADATA}."): item for item in found}


def _value_of_file(name: str, part: FilePart) -> pa.Scalar:
    if name == "file_path":
        return pa.scalar(_url(part.path))
    if name == "file_name":
        return pa.scalar(quote(part.path.rpartition("/")[2], safe=_SAFE))
    if name == "file_size":
        return pa.scalar(part.file_size, pa.int64())
    if name == "file_block_start":
        return pa.scalar(part.start, pa.int64())
    if name == "file_block_length":
        end = part.file_size if part.end is None else part.end
        return pa.scalar(None if end is None else end - part.start, pa.int64())
    micros = None if part.modification_time is None else part.modification_time * 1000
    return pa.scalar(micros, pa.timestamp("us", "UTC"))


def _url(path: str) -> str:
    """Return the path as the native plane shows it: a percent-encoded URL."""
    if scheme_of(path) in ("", "file"):
        return "file:" + quote(strip_file_scheme(path), safe=_SAFE)
    return quote(path, safe=_SAFE)
