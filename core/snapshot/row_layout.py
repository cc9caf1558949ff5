"""The facts about a table that the reader of data files needs."""

from __future__ import annotations

from optimist.core.data.parquet.parquet_reader import RowLayout
from optimist.core.plugins.data_access import DataAccess
from optimist.core.schema.types import StructType
from optimist.core.snapshot.files_view import FilesView

__all__ = ["row_layout"]


def row_layout(
    view: FilesView,
    schema: StructType,
    *,
    zone: str = "UTC",
    batch_rows: int = 32_768,
    access: DataAccess | None = None,
) -> RowLayout:
    """Return the layout for reading some columns of a view (see `RowLayout`)."""
    return RowLayout(
        schema,
        view.partition_columns,
        zone,
        batch_rows,
        access,
        data_paths=view.data_paths,
        by_id=view.properties.column_mapping_mode == "id",
    )
