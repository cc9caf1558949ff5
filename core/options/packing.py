"""How the Parquet files of one call are packed, where its caller chooses that."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FilePacking"]


@dataclass(frozen=True, slots=True)
class FilePacking:
    """The packing of Parquet files. None leaves a part to the table, or to Arrow.

    Attributes:
        codec: The codec by Spark's name.
        level: The codec's level, which Arrow must know.
        row_group_rows: The most rows of a row group.
        page_bytes: The size at which a data page ends.
        dictionary_bytes: The size up to which a column chunk keeps its dictionary.
        batch_rows: The rows that are encoded at a time.
    """

    codec: str | None = None
    level: int | None = None
    row_group_rows: int | None = None
    page_bytes: int | None = None
    dictionary_bytes: int | None = None
    batch_rows: int | None = None
