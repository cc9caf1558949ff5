"""One open Parquet file of a checkpoint."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow.parquet as pq

from optimist.core.values.column_chunks import ColumnChunks

__all__ = ["CheckpointFile"]


class CheckpointFile(pq.ParquetFile):  # type: ignore[misc]  # pyarrow has no types
    """A Parquet file of a checkpoint or sidecar.

    Args:
        source: The file's bytes.
        chunks: What its footer says, if that was read before. Then it is not read again.

    Attributes:
        chunks: What its footer says of the column chunks. `metadata` must not be asked for that.
    """

    def __init__(self, source: BinaryIO, chunks: ColumnChunks | None = None) -> None:
        # Spark may write timestamps as INT96. In nanoseconds they would end in the year 2262.
        footer = None if chunks is None else chunks.metadata
        super().__init__(
            source,
            metadata=footer,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        self.chunks = ColumnChunks(self.metadata) if chunks is None else chunks
